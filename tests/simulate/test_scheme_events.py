"""Every scheme's events in `--trace rp` are there by their names, and agree with its counters."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("dcqcn_gym._core")

from dcqcn_gym.core.knobs import schemes
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.simulation.run import Extras, simulate
from dcqcn_gym.simulation.trace import parse_trace

EVENTS = {
    "dcqcn": {"cut", "increase", "cnp"},
    "dcqcn-plus": {"cut", "increase", "cnp"},
    "timely": {"cut", "increase"},
    "dolce-rc": {"cut", "increase", "judged"},
    "dolce-rc-plus": {"message"},
}
VALUES = {
    "dcqcn": ["rate", "target", "alpha", "stage"],
    "dcqcn-plus": ["rate", "target", "alpha", "stage", "timer_ps"],
    "timely": ["rate", "rtt", "gradient", "stage"],
    "dolce-rc": ["rate", "target", "arm", "reward"],
    "dolce-rc-plus": ["rate", "mct", "ecn_ratio", "reward"],
}


@pytest.mark.parametrize("scheme", schemes())
def test_events_and_counters_of_every_scheme(scheme: str, tmp_path: Path) -> None:
    changes = {"scheme": scheme, "initial": "dolce-rc", "warmup_us": 0}
    backend = changed_scenario(load_scenario("mini-storm"), changes, "test")
    trace = parse_trace("rp", "10us", "switches", "all", "csv", backend.fabric)
    summary = simulate(backend, tmp_path, intervals=2, extras=Extras(trace=trace))
    with (tmp_path / "trace_rp.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0])[5:] == VALUES[scheme]
    assert {row["scheme"] for row in rows} == {scheme}
    seen = Counter(row["event"] for row in rows)
    assert set(seen) == EVENTS[scheme]
    for event, total in (("cut", "rate_cuts"), ("increase", "rate_increases")):
        assert seen[event] == summary[total]
        assert (seen[event] > 0) == (event in EVENTS[scheme])
