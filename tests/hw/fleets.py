"""Small fleets for tests: agents in this process, with certificates and ports of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devices import NIC, nic_tree

from dcqcn_gym.core.config import validate
from dcqcn_gym.hw.agent.server import Agent, load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.controller import Controller
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
def nic_fleet(folder: Path, count: int, clock: Any = None) -> Iterator[dict[str, Agent]]:
    """Run agents of NICs ``nic-0``, ``nic-1``, ... until the block ends."""
    names = [f"nic-{i}" for i in range(count)]
    write_all(folder / "certs", names, ["controller"])
    agents: dict[str, Agent] = {}
    try:
        for name in names:
            agents[name] = load_agent(nic_agent_file(folder, name), "nic", clock)
            agents[name].start()
        yield agents
    finally:
        for agent in agents.values():
            agent.close()


def fleet_of(agents: dict[str, Agent], **more: Any) -> Fleet:
    """Return the fleet's file for agents that run."""
    nics = [{"name": name, "address": agent.address} for name, agent in agents.items()]
    tls = {"ca": "certs/ca.pem", "cert": "certs/controller.pem", "key": "certs/controller.key"}
    return validate({"nics": nics, "tls": tls, "attempts": 1, **more}, Fleet, source="fleet")


@contextmanager
def controller_of(folder: Path, fleet: Fleet) -> Iterator[Controller]:
    """Open a controller until the block ends."""
    controller = Controller(fleet, folder)
    try:
        controller.open()
        yield controller
    finally:
        controller.close()
