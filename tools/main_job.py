"""How often is what PARALEON finds in the main job worth deploying? ``python tools/main_job.py``.

Runs the search of ``make tune`` (60 ms of FB_Hadoop at 30 % of the uplinks of 128 hosts) with
seeds 1 to 10, each judged on five held-out seeds, and prints what its setting and the rule's come
to. What is finished in ``--out`` is not run again. About 25 CPU seconds a seed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from dcqcn_gym.report.answer import TriedRow, answer_of
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.runs.table import Table, print_tables

COLUMNS = ["seed", "setting", "slowdowns", "guardrails crossed", "verdict"]


def tried(seed: int, out: Path) -> dict[str, TriedRow]:
    """Run a seed's search, or read what it left; return what was tried on held-out traffic."""
    folder = out / f"paraleon-{seed}"
    if not (folder / "best.json").exists():
        command = [sys.executable, "-m", "dcqcn_gym", "tune", "--scenario", "fb-hadoop-uplink30",
                   "--tuner", "paraleon", "--seed", str(seed), "--intervals", "60", "--no-report",
                   "--quiet", "--out", str(folder)]  # fmt: skip
        subprocess.run(command, check=True)
    return {row.name: row for row in answer_of(load_report_data(folder)).rows}


def main() -> None:
    """Run every search and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="the first so many")
    parser.add_argument("--out", type=Path, default=Path("runs/main-job"))
    options = parser.parse_args()
    names = {"candidate": "PARALEON's", "advise": "the rule's", "expert": "the experts'"}
    seeds = range(1, options.seeds + 1)
    every = {seed: tried(seed, options.out) for seed in seeds}
    rows = [
        [str(seed), said, row.slowdowns, row.crossed, row.verdict]
        for name, said in names.items()
        for seed, row in ((seed, every[seed][name]) for seed in seeds)
    ]
    print_tables([Table(COLUMNS, rows)])


if __name__ == "__main__":
    main()
