"""Tune through the agents and devices of a digital fabric, with one seed, as a Markdown table.

``same`` compares the run with the engine's own, byte by byte; ``bytes`` measures what a fleet's
control carries. The logs lie in ``--out``; the same command continues them.

    python tools/fleet/fleet_study.py same --out runs/same --scenario fb-hadoop --intervals 30
    python tools/fleet/fleet_study.py bytes --out runs/bytes --write docs/measured/results.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

import fleet_bytes
import fleet_same

from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.markdown_page import insert
from dcqcn_gym.runs.claim import claim


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", choices=("same", "bytes"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scenario", default="mini-fb-hadoop")
    parser.add_argument("--intervals", type=int, default=100, help="of a tuning run, at least 2")
    parser.add_argument("--write", type=Path, help="put the table into this Markdown file")
    given = parser.parse_args()
    name, intervals = given.scenario, given.intervals
    with claim(given.out, "fleet"):
        scenario = load_scenario(name)
        if given.study == "same":
            same = fleet_same.produce(given.out, scenario, intervals)
            text = fleet_same.markdown(name, intervals, same)
        else:
            costs = fleet_bytes.produce(given.out, scenario, intervals)
            text = fleet_bytes.markdown(name, intervals, costs)
    if given.write is not None:
        insert(given.write, f"fleet {given.study} {name}", text)
    print(text, end="")


if __name__ == "__main__":
    main()
