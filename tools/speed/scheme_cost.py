"""What each scheme costs: bytes of state, control bytes on the wire, instructions per packet.

Bytes come from the C++ types themselves, control bytes from the counters of a run, instructions
from valgrind: they depend on compiler and processor family, not on the load of the machine.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcqcn_gym import _core
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.core.knobs import schemes
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.markdown import Marked, code
from dcqcn_gym.runs.table import Table

__all__ = ["SCHEMES", "Cost", "cost_of", "instructions_between", "markdown", "scenario_of"]

SCHEMES = schemes()
"""Every scheme of the engine, the default first."""

FLOWS = 64
BEGIN_MS, END_MS = 5, 10
"""Between these instants is measured: after the first flows have met."""


@dataclass(frozen=True)
class Cost:
    """What one scheme costs in the incast of :func:`scenario_of`.

    ``state`` are bytes by name (docs/reference/schemes.md), rates are means over the network in
    bytes a second, ``instructions`` those of the whole engine per data packet, None without
    valgrind.
    """

    scheme: str
    state: Mapping[str, int]
    data_packets: int
    data_bytes_per_s: float
    cnp_bytes_per_s: float
    field_bytes_per_s: float
    instructions: float | None

    @property
    def control_share(self) -> float:
        """CNPs and fields over the data that they control."""
        return (self.cnp_bytes_per_s + self.field_bytes_per_s) / self.data_bytes_per_s


def scenario_of(scheme: str) -> Scenario:
    """Return an incast of flows without an end: 8 senders, one switch, 100 Gb/s, 1 us."""
    initial = "dcqcn-plus" if scheme == "dcqcn-plus" else "dcqcn-paper"
    return Scenario.model_validate(
        {
            "name": f"cost-{scheme}",
            "topology": {"kind": "single-switch", "hosts": 9, "delay_us": 1},
            "scheme": scheme,
            "initial": initial,
            "warmup_us": 0,
            "workloads": [
                {"kind": "streams", "flows": FLOWS, "hosts": list(range(1, 9)), "dsts": [0],
                 "within_us": 1000},
            ],
        }
    )  # fmt: skip


def cost_of(scheme: str, instructions: bool = True) -> Cost:
    """Measure one scheme; RunError if valgrind fails."""
    scenario = scenario_of(scheme)
    state = dict(_core.scheme_sizes(scheme))
    with closing(NativeBackend()) as world:
        world.open(scenario, 1)
        world.apply(scenario.initial_setting())
        reports = [world.advance() for _ in range(END_MS)][BEGIN_MS:]
    packets = count(r.data_packets for r in reports)
    wire, seconds = scenario.wire.sizes(), (END_MS - BEGIN_MS) * 1e-3
    sent = count(int(r.host_tx_bytes.sum()) for r in reports)
    cnps, acks = (count(getattr(r, name) for r in reports) for name in ("cnps", "acks"))
    fields = packets * state["data_fields"] + acks * state["ack_fields"]
    return Cost(
        scheme=scheme,
        state=state,
        data_packets=packets,
        data_bytes_per_s=sent / seconds,
        cnp_bytes_per_s=cnps * wire["cnp"] / seconds,
        field_bytes_per_s=fields / seconds,
        instructions=_per_packet(scenario, packets) if instructions else None,
    )


_PROBE = """
import array, importlib.util, json, sys
spec = importlib.util.spec_from_file_location("dcqcn_gym._core", sys.argv[1])
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
job = json.load(open(sys.argv[2]))
def table(rows):
    flat = array.array("d", [value for row in rows for value in row])
    return memoryview(flat).cast("B").cast("d", shape=[len(rows), len(rows[0])])
simulation = core.Simulation(job["text"], 1)
simulation.apply(table(job["nic"]), table(job["ecn"]))
simulation.advance(int(sys.argv[3]))
"""


def _per_packet(scenario: Scenario, packets: int) -> float | None:
    """Return instructions per data packet between the two instants; None without valgrind."""
    if shutil.which("valgrind") is None:
        return None
    return instructions_between(scenario, BEGIN_MS * 10**9, END_MS * 10**9) / packets


def instructions_between(scenario: Scenario, begin_ps: int, end_ps: int) -> int:
    """Return the instructions of the engine between two instants; RunError without valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise RunError("valgrind is not installed; it counts instructions")
    simulation = _core.Simulation(compile_scenario(scenario), 1)
    tables = same_everywhere(scenario.initial_setting(), simulation.n_hosts, simulation.n_ports)
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.json")
        nic, ecn = (rows.tolist() for rows in tables)
        job.write_text(json.dumps({"text": compile_scenario(scenario), "nic": nic, "ecn": ecn}))
        return _count(valgrind, job, end_ps) - _count(valgrind, job, begin_ps)


def _count(valgrind: str, job: Path, end_ps: int) -> int:
    command = [
        valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
        sys.executable, "-I", "-S", "-c", _PROBE, str(_core.__file__), str(job), str(end_ps),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise RunError(f"valgrind could not count instructions: {done.stderr.strip()[-200:]}")
    return int(found[1].replace(",", ""))


_COLUMNS: Mapping[str, Callable[[Cost], str]] = {
    "flow, sender, B": lambda c: str(c.state["sender"]),
    "flow, receiver, B": lambda c: str(c.state["receiver"]),
    "connection, B": lambda c: str(c.state["connection"]),
    "port, B": lambda c: _port(c.state),
    "fields: data, ACK, CNP, B": lambda c: ", ".join(
        str(c.state[name]) for name in ("data_fields", "ack_fields", "cnp_fields")
    ),
    "CNPs, MB/s": lambda c: f"{c.cnp_bytes_per_s / 1e6:.2f}",
    "fields, MB/s": lambda c: f"{c.field_bytes_per_s / 1e6:.2f}",
    "control, share of data": lambda c: f"{c.control_share:.2%}",
    "instructions per data packet": lambda c: (
        "" if c.instructions is None else f"{c.instructions:.0f}"
    ),
}


def _port(state: Mapping[str, Any]) -> str:
    listed = f" + {state['listed']} a listed flow" if state["listed"] else ""
    return f"{state['nic']}{listed}"


def markdown(costs: list[Cost]) -> str:
    """Return the table of docs/reference/schemes.md."""
    rows = [[code(c.scheme), *(Marked(cell(c)) for cell in _COLUMNS.values())] for c in costs]
    return Table(["scheme", *_COLUMNS], rows).markdown()
