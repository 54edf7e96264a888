"""Small fleets for tests: agents in this process, with certificates and ports of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devices import NIC, nic_tree
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent.server import AgentServer, load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.drivers import Values
from dcqcn_gym.hw.fleet import Fleet

TLS = 'ca = "../certs/ca.pem"\ncert = "../certs/{0}.pem"\nkey = "../certs/{0}.key"\n'


def nic_agent_file(folder: Path, name: str, more: str = "") -> Path:
    """Write a NIC's tree and its agent's file; return the file."""
    own = folder / name
    own.mkdir(parents=True)
    nic_tree(own / "root", "newer")
    settings = "".join(f'{key} = "{value}"\n' for key, value in NIC.items())
    file = own / "agent.toml"
    file.write_text(
        f'device = "{name}"\ndriver = "mlx5"\nlisten = "127.0.0.1:0"\njournal = "journal"\n'
        f'root = "root"\ncommands = "recorded"\n{more}\n[tls]\n{TLS.format(name)}\n'
        f"[settings]\n{settings}"
    )
    return file


@contextmanager
def nic_fleet(
    folder: Path, count: int, clock: Any = None, more: str = ""
) -> Iterator[dict[str, AgentServer]]:
    """Run agents of NICs ``nic-0``, ``nic-1``, ... until the block ends.

    ``more`` is added to their files.
    """
    names = [f"nic-{i}" for i in range(count)]
    write_all(folder / "certs", names, ["controller"])
    agents: dict[str, AgentServer] = {}
    try:
        for name in names:
            agents[name] = load_agent(nic_agent_file(folder, name, more), "nic", clock)
            agents[name].start()
        yield agents
    finally:
        for agent in agents.values():
            agent.close()


def fleet_of(agents: dict[str, AgentServer], **more: Any) -> Fleet:
    """Return the fleet's file for agents that run."""
    nics = [{"name": name, "address": agent.address} for name, agent in agents.items()]
    tls = {"ca": "certs/ca.pem", "cert": "certs/controller.pem", "key": "certs/controller.key"}
    return validate({"nics": nics, "tls": tls, "attempts": 1, **more}, Fleet, source="fleet")


def fleet_file(
    folder: Path, agents: dict[str, AgentServer], name: str = "fleet", **more: Any
) -> str:
    """Write the fleet's file of agents that run; return its path."""
    file = folder / f"{name}.toml"
    model = fleet_of(agents, **more).model_dump(mode="json", exclude_none=True)
    file.write_text(toml_text(model))
    return str(file)


@contextmanager
def controller_of(folder: Path, fleet: Fleet) -> Iterator[Controller]:
    """Open a controller until the block ends."""
    controller = Controller(fleet, folder)
    try:
        controller.agents.open()
        yield controller
    finally:
        controller.close()


def restarted(folder: Path, agent: AgentServer, name: str) -> AgentServer:
    """End an agent and start it again where it listened; return the new one."""
    agent.close()
    file = folder / name / "agent.toml"
    file.write_text(file.read_text().replace("127.0.0.1:0", agent.address))
    again = load_agent(file)
    again.start()
    return again


def rates(folder: Path) -> list[int]:
    """Return the rp_ai_rate that the NICs hold, in their order."""
    places = "nic-*/*/sys/kernel/debug/mlx5/*/cc_params/rp_ai_rate"
    return [int(file.read_text()) for file in sorted(folder.glob(places))]


def strike(agent: AgentServer, *at: str, error: bool = False) -> None:
    """Have a real driver be met by Ctrl-C, or by an error, at its writes of these rates in turn."""
    driver, left = agent.guard._driver, list(at)
    write = driver.apply

    def apply(values: Values) -> None:
        struck = values.get("rp_ai_rate") in left[:1]
        if struck:
            left.pop(0)
        if struck and error:
            raise DeviceError("rp_ai_rate: the device said no")
        write(values)
        if struck:
            os.kill(os.getpid(), signal.SIGINT)  # it reaches the main thread

    driver.apply = apply  # type: ignore[method-assign]


def typed(*words: str) -> tuple[int, str]:
    """Type a command of `dcqcn-gym hw`; return its status and what it said, errors too."""
    done = CliRunner().invoke(app, ["hw", *words], env={"COLUMNS": "200"})
    return done.exit_code, f"{done.output}{done.exception or ''}"
