"""Is a run over the whole path the run that the engine alone makes? Logs compared byte by byte.

PARALEON tunes a scenario twice: on ``native-devices`` (the engine behind the devices' roundings)
and over controller, gRPC, agents, files and Redis on the digital fabric. From the second line on
(the first names the backend) the two logs must be the same: every setting, every figure, what is
recommended. ``python tools/fleet/fleet_study.py same --write docs/measured/results.md``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.fabric.native_fabric import fabric_for_now
from dcqcn_gym.runs.log import read_run, short_json, write_json
from dcqcn_gym.runs.loop import run as run_to_log
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.runs.table import Table

__all__ = ["SEED", "Same", "compare_logs", "markdown", "native_log", "produce"]

SEED = 1


@dataclass(frozen=True)
class Same:
    """What two logs had in common: everything, or :func:`produce` raises."""

    hosts: int
    switches: int
    intervals: int
    settings: int
    """Different settings that PARALEON chose."""
    transactions: int
    """Changes that all devices applied, as steps of the run."""
    log_bytes: int
    """Bytes that were compared."""
    seconds_an_interval: float
    """Of the run over the whole path, on the machine that made it."""


def native_log(out: Path, scenario: Scenario, intervals: int) -> Path:
    """Return the log of the run on ``native-devices``, made if it is not there."""
    path = out / "native-devices.jsonl"
    RunJob(RunSpec(scenario, "paraleon", SEED, intervals, "native-devices"), path).run()
    return path


def produce(out: Path, scenario: Scenario, intervals: int) -> Same:
    """Make both logs and compare them; BackendError names the first line that differs."""
    out.mkdir(parents=True, exist_ok=True)
    near, far = native_log(out, scenario, intervals), out / "fabric.jsonl"
    seconds, transactions = _over_the_fabric(scenario, intervals, far)
    compared = compare_logs(near, far)
    log = read_run(far)
    same = Same(
        scenario.n_hosts, scenario.fabric.n_nodes - scenario.n_hosts, len(log.intervals),
        len({short_json(line["setting"]) for line in log.intervals}), transactions, compared,
        seconds / len(log.intervals),
    )  # fmt: skip
    write_json(out / "same.json", vars(same))
    return same


def _over_the_fabric(scenario: Scenario, intervals: int, path: Path) -> tuple[float, int]:
    """Make the log over the fabric; return its seconds and how many changes were made."""
    with fabric_for_now(scenario) as fabric:
        backend = f"hardware:{fabric.fleet}"
        begun = time.monotonic()
        run_to_log(RunSpec(scenario, "paraleon", SEED, intervals, backend), path)
        seconds = time.monotonic() - begun
        audit = (fabric.fleet.parent / "audit.jsonl").read_text(encoding="utf-8")
    return seconds, audit.count('"event": "step"')


def compare_logs(near: Path, far: Path) -> int:
    """Return the bytes of two logs beyond their first lines; raise if they are not the same."""
    ours, theirs = (path.read_bytes().splitlines(keepends=True)[1:] for path in (near, far))
    for number, (a, b) in enumerate(zip_longest(ours, theirs), start=2):
        if a != b:
            raise BackendError(
                f"{near} and {far} differ from line {number} on; expected the same bytes behind "
                "their first lines"
            )
    return len(b"".join(ours))


def markdown(scenario: str, intervals: int, same: Same) -> str:
    """Return the result as a Markdown table, with the command that makes it."""
    columns = (
        "scenario", "hosts", "switches", "intervals, all the same", "different settings",
        "changes of all devices", "bytes compared", "seconds an interval",
    )  # fmt: skip
    row = (
        scenario, f"{same.hosts}", f"{same.switches}", f"{same.intervals}",
        f"{same.settings}", f"{same.transactions}", f"{same.log_bytes:,}",
        f"{same.seconds_an_interval:.1f}",
    )  # fmt: skip
    return (
        f"`python tools/fleet/fleet_study.py same --scenario {scenario} "
        f"--intervals {intervals}`, "
        f"seed {SEED}:\n\n{Table(columns, [row]).markdown()}\n"
    )
