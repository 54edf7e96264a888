"""Schemes other than DCQCN in a scenario: their own knobs, mixes, logs, presets."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import Devices, resolve, setting_of
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import DCQCN, Setting, default_setting, knob_table
from dcqcn_gym.core.presets import PRESETS, dcqcn_static_setting
from dcqcn_gym.core.scheme_tables import table_of, table_of_schemes
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.backends.report_dict import report_from_dict, report_to_dict
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.entries import Entry, changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run

PLUS = knob_table("dcqcn-plus")
BOTH = table_of_schemes(["dcqcn", "dcqcn-plus"])
MIX = {"name": "mix", "groups": [{"hosts": [0, 1, 3], "scheme": "dcqcn-plus"}]}
LINES: dict[str, tuple[str, dict[str, float]]] = {
    "dcqcn-plus": ("scheme name=dcqcn-plus", {"plus_cut": 90}),
    "timely": ("scheme name=timely pacing=packet", {"timely_t_low": 5}),
    "dolce-rc": (
        "scheme name=dolce-rc ratio=slots memory=pair arithmetic=float",
        {"dolce_alpha_0": 1.0},
    ),
    "dolce-rc-plus": ("scheme name=dolce-rc-plus memory=pair", {"dolce_arms": 2}),
}
"""{scheme: (its line in a compiled scenario, a knob that changes what it does)}"""
DOLCE = {"initial": "dolce-rc"}


def scenario(scheme: Any, **changes: Any) -> Scenario:
    """Return the mini storm with low marking thresholds, so that there are CNPs."""
    storm = changed_scenario(
        load_scenario("mini-storm"), {"initial": "dcqcn-plus", "warmup_us": 0}, "test"
    )
    return changed_scenario(storm, {"scheme": scheme, **changes}, "test")


def reports(opened: Scenario, setting: Setting | None = None) -> list[IntervalReport]:
    backend = NativeBackend()
    backend.open(opened, 1)
    backend.apply(opened.initial_setting() if setting is None else setting)
    return [backend.advance() for _ in range(2)]


def scheme_lines(opened: Scenario) -> list[str]:
    return [x for x in compile_scenario(opened).splitlines() if x.startswith("scheme ")]


@pytest.mark.parametrize("name", LINES)
def test_the_scheme_brings_its_knobs(name: str) -> None:
    (line, change), table = LINES[name], knob_table(name)
    opened = scenario(name, **({} if name == "dcqcn-plus" else DOLCE))
    assert scheme_lines(opened) == [line]
    assert opened.table == opened.initial_setting().table == table
    env = DcqcnEnv(opened)
    assert env.space.knobs == table.tuned == opened.knobs
    assert env.observation_space.shape is not None
    assert Scenario.model_validate(opened.model_dump(mode="json")) == opened
    other = opened.initial_setting().replace(change)
    assert reports(opened, other)[1] != reports(opened)[1]


def test_its_own_knobs_and_counters_count() -> None:
    plus = scenario("dcqcn-plus")
    first = reports(plus)
    assert first[0].scheme_counters["listed"] > 0
    assert first[0].rate_cuts > 0
    assert set(first[0].scheme_counters) == {"held_increases", "listed"}
    dcqcn = reports(scenario("dcqcn"))
    assert dcqcn[0].scheme_counters == {}
    assert dcqcn[0].cnps != first[0].cnps


def test_what_the_schemes_count() -> None:
    timely = reports(scenario("timely", **DOLCE))[0]
    assert timely.cnps == 0
    assert timely.rate_cuts > 0
    dolce = reports(scenario("dolce-rc", **DOLCE))[0]
    assert dolce.cnps > 0
    assert dolce.rate_cuts > 0
    assert dolce.scheme_counters["qualified_cnps"] > 0
    assert all(dolce.scheme_counters[f"arm_{i}"] > 0 for i in range(4))
    plus = reports(scenario("dolce-rc-plus", **DOLCE))[0]
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
    opened = scenario(scheme, **DOLCE)
    assert scheme_lines(opened) == [line]
    assert Scenario.model_validate(opened.model_dump(mode="json")) == opened
    assert reports(opened)


def test_all_schemes_side_by_side() -> None:
    names = ("timely", "dolce-rc", "dolce-rc-plus")
    groups = [{"hosts": [*range(i, 16, 4)], "scheme": name} for i, name in enumerate(names)]
    mix = scenario({"name": "mix", "groups": groups}, **DOLCE)
    assert set(knob_table("dolce-rc").nic) < set(mix.table.nic)
    counters = reports(mix)[0].scheme_counters
    assert counters["arm_0"] > 0  # only NICs that run it or DCQCN send CNPs
    assert counters["rate_5"] > 0


def test_counters_of_schemes_in_files_of_reports() -> None:
    first = reports(scenario("dcqcn-plus"))[0]
    plain = report_to_dict(first)
    assert report_from_dict(json.loads(json.dumps(plain))) == first
    assert "scheme_counters" not in report_to_dict(replace(first, scheme_counters={}))
    for bad in ({"listed": -1}, {"listed": 0.5}, {"": 1}, ["listed"], {"listed": None}):
        with pytest.raises(ConfigError, match="'scheme_counters': expected an object of names"):
            report_from_dict({**plain, "scheme_counters": bad})


def test_a_mix_has_the_knobs_of_both() -> None:
    mix = scenario(MIX)
    assert scheme_lines(mix) == [
        "scheme name=dcqcn mode=nic",
        "scheme name=dcqcn-plus hosts=0,1,3",
    ]
    assert mix.table == BOTH
    assert BOTH.nic == (*DCQCN.nic, *PLUS.nic)
    assert pickle.loads(pickle.dumps(BOTH)) == BOTH
    both = reports(mix)
    assert both[0].scheme_counters["listed"] > 0
    for knob, value in (("plus_cut", 90), ("np_min_time_between_cnps", 500)):
        changed = mix.initial_setting().replace({knob: value})
        assert reports(mix, changed)[1] != both[1], knob


def test_every_host_of_a_mix_gets_the_columns_of_its_scheme() -> None:
    devices = Devices(3, [0, 1, 2], [0, 0, 0], {}, (DCQCN.nic, PLUS.nic, DCQCN.nic))
    setting = default_setting(table=BOTH)
    other = setting.replace({"plus_cut": 10, "rp_gd": 13})
    rows, _ = resolve({"cluster": setting, "nic:1": other}, devices, BOTH)
    width = max(len(DCQCN.nic), len(PLUS.nic))
    assert rows.shape == (3, width)
    assert np.array_equal(rows[0, : len(DCQCN.nic)], [setting[k] for k in DCQCN.nic])
    assert np.array_equal(rows[1, : len(PLUS.nic)], [other[k] for k in PLUS.nic])
    plain, _ = resolve(setting, devices, BOTH)
    assert np.array_equal(plain[[0, 2]], rows[[0, 2]])
    assert not np.array_equal(plain[1], rows[1])


@pytest.mark.parametrize("scheme", [*LINES, MIX], ids=[*LINES, "mix"])
def test_paraleon_tunes_its_knobs_and_a_resumed_run_repeats(scheme: Any, tmp_path: Path) -> None:
    plus = scheme in ("dcqcn-plus", MIX)
    changes = {"scheme": scheme, **({"initial": "dcqcn-plus"} if plus else {})}
    row = Entry("paraleon", changes=changes, given_name="paraleon on another scheme")
    spec = row.spec(load_scenario("mini-storm"), seed=1, intervals=3, backend="native")
    run(spec, tmp_path / "run.jsonl")
    log = read_run(tmp_path / "run.jsonl")
    assert list(log.intervals[0]["setting"]) == list(spec.scenario.table.knobs)
    assert not plus or log.intervals[0]["scheme"]["listed"] >= 0
    tuned = PLUS.tuned if plus else spec.scenario.table.tuned
    moved = {n for n in tuned if len({i["setting"][n] for i in log.intervals}) > 1}
    assert len(moved) > (5 if plus else 0)
    assert log.end is not None
    found = setting_of(log.end["recommended"])
    assert isinstance(found, Setting)
    assert found.table == spec.scenario.table
    data = (tmp_path / "run.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:2]))
    run(spec, tmp_path / "cut.jsonl", replay=read_run(tmp_path / "cut.jsonl"))
    assert (tmp_path / "cut.jsonl").read_bytes() == data


def test_knobs_tell_their_table() -> None:
    assert table_of(DCQCN.knobs) is DCQCN
    assert table_of(["kmin", "nonsense"]) is DCQCN
    assert table_of(PLUS.knobs) is PLUS
    assert table_of(BOTH.knobs) == BOTH
    assert table_of_schemes(["dcqcn-plus"]) is PLUS


def test_a_knob_of_another_scheme_is_refused_by_both_names() -> None:
    expected = "rp_gd is a knob of scheme 'dcqcn'; expected one of scheme 'dcqcn-plus': plus_timer"
    with pytest.raises(ConfigError, match=expected):
        default_setting(table=PLUS).replace({"rp_gd": 12})
    with pytest.raises(ConfigError, match="plus_cut is a knob of scheme 'dcqcn-plus'"):
        default_setting().replace({"plus_cut": 12})


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("rate", [10e9, 40e9, 400e9])
def test_every_preset_is_legal_in_every_table(name: str, rate: float) -> None:
    for table in (DCQCN, PLUS, BOTH):
        setting = PRESETS[name](rate, table)
        assert setting.table == table
        setting.check(rate)


def test_presets_of_the_papers() -> None:
    def values(name: str, rate: float, *knobs: str) -> list[float]:
        setting = dict(PRESETS[name](rate, DCQCN))
        return [setting[knob] for knob in knobs]

    rates = ("rp_ai_rate", "rp_hai_rate")
    assert values("dcqcn-paper", 10e9, *rates) == [40, 100]
    assert values("dcqcn-paper-scaled", 10e9, *rates) == [10, 25]
    assert values("dcqcn-paper-scaled", 40e9, *rates) == [40, 100]
    timers = ("rp_time_reset", "rp_byte_reset", "rp_rate_reduce_monitor_period")
    assert values("cx4", 40e9, *timers) == [300, 31250, 4]
    assert values("cx4", 40e9, *rates, "np_min_time_between_cnps") == [5, 40, 0]
    assert values("dolce-rc", 100e9, "kmin", "kmax", "rp_time_reset") == [7, 500, 55]
    dolce = dict(PRESETS["dolce-rc"](100e9, knob_table("dolce-rc")))
    assert [dolce[k] for k in ("kmin", "kmax", "dolce_cnp_gap")] == [7, 500, 50]
    plus = dict(PRESETS["dcqcn-plus"](10e9, PLUS))
    assert [plus[k] for k in ("kmin", "kmax", "pmax")] == [20, 200, 0.01]


def test_static_setting_of_dcqcn_plus_by_hand() -> None:
    """540 flows at 10 Gb/s: K = 2 max(540, 432) us, R_AI = 10000 / 5400 = 1.85 Mb/s."""
    found = dict(dcqcn_static_setting(540, 10e9))
    assert (found["rp_time_reset"], found["rp_ai_rate"]) == (1080, 2)
    few = dict(dcqcn_static_setting(8, 1e9))  # 8000 bit at 125 Mb/s take 64 us
    assert (few["rp_time_reset"], few["rp_ai_rate"], few["kmin"]) == (128, 12, 20)
    with pytest.raises(ConfigError, match="flows = 0: expected at least 1"):
        dcqcn_static_setting(0, 10e9)


def test_another_scheme_in_a_row_replaces_the_whole_table() -> None:
    paper = changed_scenario(load_scenario("mini-storm"), {"scheme": {"rp": "paper"}}, "x")
    assert paper.rp == "paper"
    plus = changed_scenario(paper, {"scheme": "dcqcn-plus", "initial": "default"}, "x")
    assert plus.rp == "nic"
    assert plus.knobs == PLUS.tuned
    chosen = changed_scenario(paper, {"knobs": ["kmin", "rp_gd"]}, "x")
    with pytest.raises(ConfigError, match="knobs: rp_gd is a knob of scheme 'dcqcn'"):
        changed_scenario(chosen, {"scheme": "dcqcn-plus", "initial": "default"}, "x")


def queue_of_an_incast(scheme: Any, initial: str, flows: int) -> float:
    """Return the median queue in KB, 0.2 to 0.3 s, of so many flows that 8 senders start in 0.1 s.

    ICNP'18, Fig. 2: 9 hosts on a switch at 10 Gb/s; no flow ends.
    """
    starts = np.sort(np.random.default_rng(1).uniform(0, 1e8, flows))
    rows = [
        {"src": 1 + i % 8, "dst": 0, "bytes": 2**40, "start_ns": float(round(t))}
        for i, t in enumerate(starts)
    ]
    opened = Scenario.model_validate(
        {
            "scheme": scheme,
            "initial": initial,
            "warmup_us": 0,
            "monitor_interval_us": 100_000,
            "topology": {"kind": "single-switch", "hosts": 9, "gbps": 10, "delay_us": 1.0},
            "switch": {"buffer_bytes": 9_000_000},
            "workloads": [{"kind": "flows", "flows": rows}],
        },
        context={"folder": Path()},
    )
    backend = NativeBackend()
    queues: list[float] = []
    backend.open(opened, 1)
    backend.apply(opened.initial_setting())

    def look(_: int, seen: Mapping[str, Any], __: Mapping[str, Any]) -> None:
        queues.append(float(seen["queue_bytes"].max()))

    backend.watch(10**9, range(9, 18), look)
    for _ in range(3):
        backend.advance()
    return float(np.median(queues[200:])) / 1e3


def test_it_ends_an_incast_that_dcqcn_cannot() -> None:
    """ICNP'18, Figs. 4 and 6 at 400 flows: DCQCN stays at the limit of PFC, DCQCN+ at 250 KB."""
    plus = queue_of_an_incast("dcqcn-plus", "dcqcn-plus", 400)
    dcqcn = queue_of_an_incast({"name": "dcqcn", "rp": "paper"}, "dcqcn-paper-scaled", 400)
    assert plus <= 250
    assert dcqcn > 4000
