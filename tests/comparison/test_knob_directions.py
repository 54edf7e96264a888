"""Directions of knobs: by hand, of what was measured, and on the pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dcqcn_gym.benchmarks.papers.tuned import under_setting
from dcqcn_gym.comparison.plan import Case
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.knobs import KNOBS
from knob_directions import (
    Line,
    directions,
    directions_table,
    grid_of,
    grids_of,
    measure,
    read_directions,
)

ROOT = Path(__file__).resolve().parents[2]
CASE = Case(scenario="mini-llm-alltoall")


def _lines(knob: str, tp: dict[float, float], rtt: dict[float, float]) -> list[Line]:
    return [Line(knob, v, s, tp[v] * s, rtt[v] * s) for v in tp for s in (1, 2, 3)]


def test_directions_by_hand() -> None:
    """Kmax as the table has it, time_reset the other way round, gd without any effect."""
    lines = _lines("kmax", {1: 1, 2: 2, 3: 3}, {1: 5, 2: 6, 3: 7})
    lines += _lines("rp_time_reset", {1: 1, 2: 2, 3: 3}, {1: 5, 2: 5, 3: 5})
    lines += _lines("rp_gd", {1: 1, 2: 1.005, 3: 1}, {1: 5, 2: 5, 3: 5.01})
    found = {one.knob.name: one for one in directions(lines)}
    assert found["kmax"].verdict == "agrees: throughput and delay"
    assert found["rp_time_reset"].verdict == "disagrees: throughput"
    assert found["rp_gd"].verdict == "no effect here"
    assert found["kmax"].tp_change.mean == pytest.approx(2.0)
    mixed = [replace(one, tp=one.tp if one.seed < 3 else 1 / one.tp) for one in lines[:9]]
    (unclear,) = directions(mixed)
    assert unclear.verdict == "agrees: delay"


def test_the_kept_directions_are_of_every_knob_and_value() -> None:
    lines = read_directions()
    for name, knob in KNOBS.items():
        # numpy's pow may differ in a last digit from that of the machine that measured
        values = {f"{line.value:.12g}" for line in lines if line.knob == name}
        assert values == {f"{value:.12g}" for value in grid_of(knob, CASE).axes[0].values}
        assert {line.seed for line in lines if line.knob == name} == set(range(1, 6))


def test_a_file_without_directions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"knob": "kmax"}\n')
    with pytest.raises(RunError, match="holds no measurement of directions"):
        read_directions(tmp_path / "a.jsonl")


@pytest.mark.slow
def test_directions_are_measured_for_every_knob(tmp_path: Path) -> None:
    grids = grids_of(CASE, 2)
    assert [grid.axes[0].knob.name for grid in grids] == list(KNOBS)
    lines = measure(grids[0], 2, 1, tmp_path, workers=2)
    assert [line.seed for line in lines] == [1, 2, 1, 2]
    assert {line.knob for line in lines} == {next(iter(KNOBS))}


@pytest.mark.slow
def test_the_kept_directions_come_out_again() -> None:
    kept = {(line.knob, line.value, line.seed): line for line in read_directions()}
    grid = grid_of(KNOBS["rp_gd"], CASE)
    assert len(grid.points) > 1
    for point in grid.points:
        values, _ = under_setting(CASE.loaded, grid.setting(point), 1, 20)
        line = kept["rp_gd", point[0], 1]
        assert values["throughput"] == pytest.approx(line.tp, rel=1e-5)
        assert values["rtt"] == pytest.approx(line.rtt, rel=1e-5)


def test_the_pages_say_what_was_measured() -> None:
    """Where the measurement disagrees with the knob table, the page of knobs names the knob."""
    found = directions(read_directions())
    assert [one.knob.name for one in found] == list(KNOBS)
    page = (ROOT / "docs" / "reference" / "simulate.md").read_text(encoding="utf-8")
    assert directions_table(found).markdown() in page
    knobs = (ROOT / "docs" / "reference" / "knobs.md").read_text(encoding="utf-8")
    (said,) = (part for part in knobs.split("\n\n") if part.startswith("**Measured directions.**"))
    for one in found:
        disagrees = one.verdict.startswith("disagrees")
        assert (f"`{one.knob.name}`" in said) == disagrees, one.knob.name
