"""The two simulators on the same flows: exact to the picosecond on every case."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.parity import CASES, case, compare, run


def differing_fields(
    ours: Sequence[IntervalReport], theirs: Sequence[IntervalReport]
) -> Iterator[str]:
    """Yield ``interval k: field`` for every report field that is not the same."""
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for name in type(a).__dataclass_fields__:
            mine, other = getattr(a, name), getattr(b, name)
            same = np.array_equal(mine, other) if isinstance(mine, np.ndarray) else mine == other
            if not same:
                yield f"interval {k}: {name}"


QUICK = {
    "acks-over-headroom",
    "classes",
    "connections",
    "hadoop-light",
    "incast-8",
    "jobs",
    "storage",
}
"""One of each kind; the schemes have theirs in ``test_ns3_schemes.py``."""


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_every_case_is_exact(name: str) -> None:
    scenario = case(name)
    setting = scenario.initial_setting()
    native, ns3 = (run(b, scenario, 1, scenario.intervals, setting) for b in ("native", "ns3"))
    assert list(differing_fields(native, ns3)) == []
    result = compare(scenario, 1, native, ns3)
    assert result.identical
    assert result.within_bounds
    assert result.fct_max == result.utility_max == 0.0
    assert result.packet_hops[0] > 0


def test_the_cases_are_what_they_say() -> None:
    def totals(name: str) -> tuple[int, int, int]:
        scenario = case(name)
        reports = run("native", scenario, 1, 6, scenario.initial_setting())
        return tuple(sum(getattr(r, f) for r in reports) for f in ("pauses", "marks", "drops"))

    assert totals("idle") == (0, 0, 0)
    assert totals("pfc-storm")[0] > 500
    assert totals("incast-32")[1] > 0
    assert totals("classes")[2] > 0
    assert totals("lossy")[2] > 0
    assert totals("card")[2] > 0
    for name in ("acks-as-data", "ecmp-table", "odd-rates", "storage", "parameter-server"):
        assert totals(name)[1] > 0
    assert totals("acks-as-data")[0] > 0
    assert totals("acks-over-headroom")[2] == 0


@pytest.mark.parametrize("name", ["acks-as-data", "ecmp-table"])
def test_the_key_of_the_case_changes_what_happens(name: str) -> None:
    values = case(name).model_dump(mode="json", exclude_unset=True)
    for key in ("ack_class", "ecmp_table"):
        values["switch"].pop(key, None)
    scenarios = case(name), Scenario.model_validate(values)
    setting = scenarios[0].initial_setting()
    with_key, without = (run("native", s, 1, 6, setting) for s in scenarios)
    assert list(differing_fields(with_key, without))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fb-hadoop", "influx", "llm-alltoall"])
def test_paper_scale_is_exact(name: str) -> None:
    scenario = load_scenario(name)
    setting = scenario.initial_setting()
    native, ns3 = (run(b, scenario, 2, 2, setting) for b in ("native", "ns3"))
    assert list(differing_fields(native, ns3)) == []


def test_differences_are_found_and_measured() -> None:
    scenario = case("incast-8")
    setting = scenario.initial_setting()
    ours = run("native", scenario, 1, 2, setting)
    flows = ours[0].finished
    slower = dataclasses.replace(flows, fct_ps=flows.fct_ps * 102 // 100)
    theirs = [dataclasses.replace(ours[0], finished=slower, pauses=99), ours[1]]
    result = compare(scenario, 1, ours, theirs)
    assert not result.identical
    assert not result.within_bounds
    assert result.fct_of_mean == pytest.approx(0.02, rel=1e-3)
    assert result.pauses[1] != result.pauses[0]
    assert list(differing_fields(ours, theirs)) == ["interval 0: pauses", "interval 0: finished"]


def test_the_command_writes_table_and_plot(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app,
        [
            "ns3",
            "parity",
            "-s",
            "mini-fb-hadoop",
            "--seeds",
            "1",
            "--intervals",
            "2",
            "--out",
            str(tmp_path),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "identical" in done.output
    (row,) = json.loads((tmp_path / "parity.json").read_text())["rows"]
    assert row["identical"] is True
    assert row["flows"][0] > 100
    picture = (tmp_path / "parity.svg").read_text()
    assert "mini-fb-hadoop (1)" in picture
    assert picture.count('class="dot"') == 3


def test_nothing_to_compare_is_an_error() -> None:
    found = CliRunner().invoke(app, ["ns3", "parity", "--scenario", ","])
    assert "expected names separated by commas" in str(found.exception)
