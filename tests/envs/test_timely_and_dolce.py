"""TIMELY, Dolce-RC and Dolce-RC+ in a scenario: knobs, options, counters, mixes, tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import Setting, knob_table
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.entries import Entry, changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run

LINES = {
    "timely": "scheme name=timely pacing=packet",
    "dolce-rc": "scheme name=dolce-rc ratio=slots memory=pair arithmetic=float",
    "dolce-rc-plus": "scheme name=dolce-rc-plus memory=pair",
}
"""{scheme: its line in a compiled scenario}"""
KNOBS: dict[str, dict[str, float]] = {
    "timely": {"timely_t_low": 5},
    "dolce-rc": {"dolce_alpha_0": 1.0},
    "dolce-rc-plus": {"dolce_arms": 2},
}
"""{scheme: knobs, in the table's units, that change what it does}"""


def scenario(scheme: Any) -> Scenario:
    """Return the mini storm with low marking thresholds, so that there are marks."""
    changes = {"scheme": scheme, "initial": "dolce-rc", "warmup_us": 0}
    return changed_scenario(load_scenario("mini-storm"), changes, "test")


def reports(opened: Scenario, setting: Setting | None = None) -> list[IntervalReport]:
    backend = NativeBackend()
    backend.open(opened, 1)
    backend.apply(opened.initial_setting() if setting is None else setting)
    return [backend.advance() for _ in range(2)]


@pytest.mark.parametrize("scheme", LINES)
def test_the_scheme_brings_its_knobs(scheme: str) -> None:
    backend, table = scenario(scheme), knob_table(scheme)
    lines = [x for x in compile_scenario(backend).splitlines() if x.startswith("scheme ")]
    assert lines == [LINES[scheme]]
    assert backend.table == table
    assert DcqcnEnv(backend).space.knobs == table.tuned == backend.knobs
    first = reports(backend)
    setting = backend.initial_setting().replace(KNOBS[scheme])
    assert reports(backend, setting)[1] != first[1]


def test_what_the_schemes_count() -> None:
    timely = reports(scenario("timely"))[0]
    assert timely.cnps == 0
    assert timely.rate_cuts > 0
    dolce = reports(scenario("dolce-rc"))[0]
    assert dolce.cnps > 0
    assert dolce.rate_cuts > 0
    assert dolce.scheme_counters["qualified_cnps"] > 0
    assert all(dolce.scheme_counters[f"arm_{i}"] > 0 for i in range(4))
    plus = reports(scenario("dolce-rc-plus"))[0]
    assert plus.cnps == 0
    assert plus.scheme_counters["messages"] > 0
    arms = [plus.scheme_counters[f"rate_{i}"] > 0 for i in range(8)]
    assert arms == [i < 6 for i in range(8)]


@pytest.mark.parametrize(
    ("scheme", "line"),
    [
        (
            {"name": "dolce-rc", "ratio": "count", "memory": "qp", "arithmetic": "fixed"},
            "scheme name=dolce-rc ratio=count memory=qp arithmetic=fixed",
        ),
        ({"name": "dolce-rc-plus", "memory": "qp"}, "scheme name=dolce-rc-plus memory=qp"),
    ],
)
def test_options_reach_the_engine(scheme: dict[str, str], line: str) -> None:
    """What they change there is tested by builtin_schemes_test."""
    backend = scenario(scheme)
    assert line in compile_scenario(backend).splitlines()
    assert Scenario.model_validate(backend.model_dump(mode="json")) == backend
    assert reports(backend)


def test_all_schemes_side_by_side() -> None:
    groups = [{"hosts": [*range(i, 16, 4)], "scheme": name} for i, name in enumerate(LINES)]
    mix = scenario({"name": "mix", "groups": groups})
    assert set(knob_table("dolce-rc").nic) < set(mix.table.nic)
    counters = reports(mix)[0].scheme_counters
    assert counters["arm_0"] > 0  # only NICs that run it or DCQCN send CNPs
    assert counters["rate_5"] > 0


@pytest.mark.parametrize("scheme", LINES)
def test_paraleon_tunes_its_knobs(scheme: str, tmp_path: Path) -> None:
    row = Entry("paraleon", changes={"scheme": scheme}, given_name="paraleon")
    spec = row.spec(load_scenario("mini-storm"), seed=1, intervals=3, backend="native")
    run(spec, tmp_path / "run.jsonl")
    log = read_run(tmp_path / "run.jsonl")
    tuned = knob_table(scheme).tuned
    moved = {n for n in tuned if len({i["setting"][n] for i in log.intervals}) > 1}
    assert moved
