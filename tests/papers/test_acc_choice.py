"""Choosing a network of ACC: scores by hand, the command on measured cells, one real run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from acc_choice import _figure, choose, measure
from dcqcn_gym.benchmarks.papers.acc import CURVES
from dcqcn_gym.benchmarks.papers.figure import Cell, Size
from dcqcn_gym.benchmarks.papers.results import study_of
from dcqcn_gym.runs.log import encode_line
from dcqcn_gym.runs.table import print_tables

NETWORKS = ("acc-mini", "acc-websearch")
CURVE = next(iter(CURVES))
TIMES = {"SECN1": 1.0, "SECN2": 2.0, "acc-mini": 0.9, "acc-websearch": 0.5, CURVE: 0.8}
"""Completion times of a row, of whatever unit; other curves have 3."""


def lay_out(out: Path) -> None:
    """Write the cells that the command would measure, with times and rewards by row."""
    rows = (*NETWORKS, *CURVES, "SECN1", "SECN2")
    for folder, size, judged in (
        ("choosing", "quick", ()),
        ("judging", "full", (NETWORKS[1], CURVE, "SECN1", "SECN2")),
    ):
        figure = _figure(rows, judged)
        study = study_of(figure, size, out / folder)
        study.begin(out / folder)
        (out / folder / "cells").mkdir()
        for cell, job in zip(figure.sizes[size].cells(), study.jobs.values(), strict=True):
            time = TIMES.get(cell.row, 3.0) * (1 + 0.01 * cell.seed)
            values = {
                **dict.fromkeys(("mean", "mice", "mice p99", "elephants"), time),
                "unfinished": 0.0,
                "sent": 1 / time,
                "short": 0.5,
            }
            line = {
                "row": cell.row, "x": cell.x, "seed": cell.seed, "values": values, "series": {},
                "hops": 1, "cpu_s": 0.0,
            }  # fmt: skip
            job.path.write_bytes(encode_line(line))


def test_it_chooses_the_best_network_and_the_best_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path)
    print_tables(choose(NETWORKS, tmp_path, 1))
    said = capsys.readouterr().out
    order = [said.index(f"  {row}  ") for row in ("acc-websearch", CURVE, "acc-mini", "SECN1")]
    assert order == sorted(order)  # the best first
    judged = said[said.index("Judging acc-websearch") :].splitlines()
    against = next(line for line in judged if line.startswith(f"  {CURVE}   "))
    assert against.split()[6] == f"{100 * math.log(0.5 / 0.8):+.1f}"
    assert "-37.5 [-37.5, -37.5]" in against
    # 0.2, its weight of throughput, times the mean of 1/0.5 - 1/0.8 over seeds that are 1 % apart
    gain = 0.2 * 0.75 * sum(1 / (1 + 0.01 * seed) for seed in range(1, 7)) / 6
    assert f"own reward minus that of {CURVE}   {gain:.4f}" in said


def test_a_network_runs_on_held_out_traffic_and_repeats() -> None:
    size = Size({}, 1, 2, {"hosts": 16, "drain_ms": 4, "seeds_from": 100})
    first, again = (measure(Cell("acc-mini", 0.9, 1), size) for _ in range(2))
    assert first == again
    assert first.values["mean"] > first.values["mice"] > 0
    held = measure(Cell(CURVE, 0.9, 1), size)
    assert held.values["mean"] != first.values["mean"]
    assert 0 < held.values["sent"] < 1
