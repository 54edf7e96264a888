"""The whole campaign: 19 causes of old, kinds of faults, counters that lie, and random runs.

A run is a fleet of its own, one operation while faults strike, and the way back; files alone judge
it (`fleet_oracle.py`). A run that went wrong is a line like others; the same command goes on.

    python tests/hw/campaign.py --lines runs/campaign.jsonl --write tests/hw/fleet-campaign.txt
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counting import COUNTER_FAULTS
from fault_cases import run_case
from faulty_network import FaultyFleet, make_certificates
from fleet_campaign import KILLED, KINDS, STRUCK, Campaign, Run, run_kind
from fleet_causes import CAUSES

from dcqcn_gym.core.sums import count

__all__ = ["PLAN", "campaign_table", "run_of_plan"]

RANDOM, COUNTERS = "random", "counters"
COLUMNS = ("done", "refused", "split")
PLAN: tuple[tuple[str, str], ...] = (
    *(("cause", name) for _ in range(5) for name in CAUSES),
    *KINDS,
    *(("tune", KILLED),) * 5,
    *((COUNTERS, name) for _ in range(6) for name in COUNTER_FAULTS),
    *((RANDOM, RANDOM),) * 400,
)
"""Run -> its kind; a run's number is its seed."""


def run_of_plan(number: int, folder: Path, certs: Path) -> Run:
    """Carry out a run in an empty folder; AssertionError says what is wrong."""
    kind = PLAN[number]
    if kind[0] == COUNTERS:  # four changes, each within an interval that is held against the truth
        case = run_case(number, folder, certs, (kind[1],))
        return Run(kind, done=case.confirmed, refused=4 - case.confirmed)
    if kind[0] != "cause":
        return run_kind(kind, number, folder, certs, strikes=1)
    (folder / "certs").symlink_to(certs)
    fleet = FaultyFleet(folder, number)
    try:
        campaign = Campaign(fleet, kind)
        campaign.meet(CAUSES[kind[1]])
        campaign.go_back()
        return campaign.run
    finally:
        fleet.close()


def campaign_table(lines: Sequence[dict[str, Any]]) -> str:
    """Return a row per cause and fault: runs, operations done and refused, splits, wrong ones."""
    head = (
        f"{'cause or fault':<42} {'runs':>5} {'done':>5} {'refused':>8} {'split':>6} {'wrong':>6}"
    )
    rows = [head]
    for name in (*CAUSES, *STRUCK, *COUNTER_FAULTS, RANDOM, "all"):
        own = [line for line in lines if name in (line["kind"][1], "all")]
        cells = [count(line[key] for line in own) for key in ("done", "refused", "split")]
        wrong = count(bool(line["wrong"]) for line in own)
        rows.append(
            f"{name:<42} {len(own):>5} {cells[0]:>5} {cells[1]:>8} {cells[2]:>6} {wrong:>6}"
        )
    return "\n".join(rows) + "\n"


def _line(number: int, certs: Path) -> dict[str, Any]:
    """Carry out a run; return its line."""
    run, wrong = Run(PLAN[number]), ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = run_of_plan(number, Path(folder), certs)
        except Exception as error:  # an error of the campaign itself is no good end either
            wrong = f"{type(error).__name__}: {error}"
    return {"run": number, "kind": PLAN[number], "done": run.done, "refused": run.refused,
            "split": run.split, "wrong": wrong}  # fmt: skip


def main() -> None:
    """Run what has no line yet, then print the table and every wrong one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lines", type=Path, required=True, help="a line per run; goes on with it")
    parser.add_argument("--run", type=int, action="append", help="these alone, again; repeatable")
    parser.add_argument("--write", type=Path, help="a file for the table")
    given = parser.parse_args()
    given.lines.parent.mkdir(parents=True, exist_ok=True)
    text = given.lines.read_text(encoding="utf-8") if given.lines.exists() else ""
    found = {line["run"]: line for line in map(json.loads, text.splitlines())}
    todo = given.run or [number for number in range(len(PLAN)) if number not in found]
    with tempfile.TemporaryDirectory() as certs:
        make_certificates(Path(certs))
        for number in todo:
            found[number] = _line(number, Path(certs))
            with given.lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found[number]) + "\n")
    lines = [found[number] for number in sorted(found)]
    table, wrong = campaign_table(lines), [line for line in lines if line["wrong"]]
    print(table)
    for line in wrong:
        print(f"run {line['run']}, {'/'.join(line['kind'])}: {line['wrong']}")
    if given.write is not None:
        given.write.write_text(table, encoding="utf-8")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
