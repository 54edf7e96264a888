"""Many agents in one process: real guards and journals behind one port, devices in memory.

What a real agent has of its own and these share is the server, its port and its certificate; every
device has a connection of its own, as each is a name and an address (127.x.y.z) of its own.

    python tools/fleet/simulated_agents.py FOLDER --agents 1000
"""

from __future__ import annotations

import argparse
import re
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from dcqcn_gym.core.device_units import device_unit, from_device, to_device
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError, StateError
from dcqcn_gym.core.knobs import DCQCN, NIC_KNOBS, default_setting
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw import certs
from dcqcn_gym.hw.agent.server import _credentials
from dcqcn_gym.hw.agent.service import METHODS, SERVICE, AgentService
from dcqcn_gym.hw.agent.ticker import TICK_S
from dcqcn_gym.hw.drivers.base import Driver, DriverSettings, Edit, Targets, Values, raw_values
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.tls import MOST_REPLY, Tls, TlsFiles
from dcqcn_gym.hw.transaction import Guard

__all__ = ["DOMAIN", "MemoryNic", "address", "lay_out"]

DOMAIN = "simulated.test"
_ROWS = {name: DCQCN[name] for name in NIC_KNOBS}
_START = {name: str(to_device(_ROWS[name], default_setting()[name])) for name in NIC_KNOBS}
_CODES = {ConfigError: grpc.StatusCode.INVALID_ARGUMENT, DeviceError: grpc.StatusCode.ABORTED,
          StateError: grpc.StatusCode.FAILED_PRECONDITION}  # fmt: skip


class MemoryNic(Driver):
    """A NIC that is a dictionary."""

    name, summary, kind, Settings = "memory", "a NIC in memory", "nic", DriverSettings

    def __init__(self) -> None:
        self._held = dict(_START)

    def knobs(self) -> tuple[str, ...]:
        return tuple(_ROWS)

    def read(self) -> dict[str, str]:
        return dict(self._held)

    def stage(self, targets: Targets) -> dict[str, str]:
        raw = raw_values(targets[""], _ROWS, DCQCN, (), self.name)
        return {n: str(v) for n, v in raw.items() if self._held[n] != str(v)}

    def diff(self, before: Values, after: Values) -> list[Edit]:
        return [
            Edit(n, n, device_unit(_ROWS[n]), before.get(n, ""), text)
            for n, text in after.items()
            if before.get(n) != text
        ]

    def apply(self, values: Values) -> None:
        self._held |= values

    def setting(self) -> dict[str, dict[str, float]]:
        return {"": {n: from_device(_ROWS[n], int(text)) for n, text in self._held.items()}}

    def counters(self) -> dict[str, int]:
        return dict.fromkeys(("tx_bytes", "tx_packets", "pause_us"), 0)


def name_of(number: int) -> str:
    """Return the name of an agent."""
    return f"nic-{number}.{DOMAIN}"


def address(number: int, port: int) -> str:
    """Return the address of an agent; every one has its own, on loopback."""
    return f"127.{1 + number // 2**16}.{number // 2**8 % 2**8}.{number % 2**8}:{port}"


class _Agents(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Hands each call to the agent whose name the connection was made to."""

    def __init__(self, folder: Path, count: int) -> None:
        self.guards: list[Guard] = []
        self._services: dict[str, AgentService] = {}
        for number in range(count):
            driver, journal = MemoryNic(), Journal(folder / "journals" / f"{number}")
            guard = Guard(driver, journal)
            guard.start()
            self.guards.append(guard)
            self._services[name_of(number)] = AgentService(
                name_of(number), driver, guard, lambda: 0
            )

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        takes, gives = METHODS[method]

        def answer(request: Any, context: Any) -> Any:
            host = context._rpc_event.call_details.host.decode().partition(":")[0]
            try:
                return getattr(self._services[host], method)(request)
            except DcqcnGymError as error:
                code = next(c for k, c in _CODES.items() if isinstance(error, k))
                context.abort(code, str(error))

        return grpc.unary_unary_rpc_method_handler(
            answer, takes.FromString, gives.SerializeToString
        )


def lay_out(folder: Path, agents: int, port: int, more: Mapping[str, Any]) -> Path:
    """Write the fleet's file of these agents, with default timers unless ``more`` says others."""
    nics = [{"name": name_of(i), "address": address(i, port)} for i in range(agents)]
    tls = {"ca": "certs/ca.pem", "cert": "certs/controller.pem", "key": "certs/controller.key"}
    file = folder / "fleet.toml"
    file.write_text(toml_text({"tls": tls, **more, "nics": nics}))
    return file


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--agents", type=int, required=True)
    given = parser.parse_args()
    folder: Path = given.folder
    certs._NAME = re.compile(r"[a-z*.-]+")  # one certificate for all of them
    certs.write_all(folder / "certs", [f"*.{DOMAIN}"], ["controller"])
    agents = _Agents(folder, given.agents)
    tls = Tls(ca=Path("certs/ca.pem"), cert=Path(f"certs/*.{DOMAIN}.pem"),
              key=Path(f"certs/*.{DOMAIN}.key"))  # fmt: skip
    server = grpc.server(
        ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", MOST_REPLY)]
    )
    server.add_generic_rpc_handlers((agents,))
    port = server.add_secure_port("0.0.0.0:0", _credentials(TlsFiles(tls, folder)))
    server.start()
    lay_out(folder, given.agents, port, {})
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    print(f"{given.agents} agents of {SERVICE} listen", flush=True)
    while not ended.wait(TICK_S):
        for guard in agents.guards:
            guard.tick()
    server.stop(0.1)


if __name__ == "__main__":
    main()
