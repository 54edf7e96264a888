"""The wrapper that makes a tuner safe: limits, canary, freeze windows, abort rules."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import outcome
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.abort_rules import AbortRules, Seen
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.groups import DeviceSetting, cluster_setting, resolve
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.monitor import NoMonitor
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import Outcome, TunerContext, make_tuner
from dcqcn_gym.tuners.canary import FLAGS, canary_of, lowest_change, spread
from dcqcn_gym.tuners.safe import SafeTuner
from dcqcn_gym.tuners.safe_settings import Safety, bounded, safe_arguments

MINI = load_scenario("mini-fb-hadoop")
FSD = FlowSizeDistribution()
HARMFUL = {"rp_min_rate": 10_000, "rp_ai_rate": 10_000}


def safe_run(
    folder: Path, intervals: int, backend: str = "fake", **arguments: Any
) -> tuple[Run, list[dict[str, Any]]]:
    """Run a tuner behind the wrapper; return the log and the state after every interval."""
    states: list[dict[str, Any]] = []
    spec = RunSpec(MINI, "safe", 1, intervals, backend, arguments)
    path = folder / "run.jsonl"
    run(spec, path, watch=lambda _, state, __: states.append(dict(state)))
    return read_run(path), states


def plain(line: dict[str, Any]) -> dict[str, float]:
    """Return the setting of a line that is the same on every device."""
    assert "cluster" not in line["setting"]
    values: dict[str, float] = line["setting"]
    return values


def test_no_proposal_leaves_the_limits_or_takes_a_longer_step(tmp_path: Path) -> None:
    limits = {"kmin": {"low": 90, "high": 120, "step": 10}, "rp_ai_rate": {"step": 20}}
    log, _ = safe_run(tmp_path, 40, tuner="random", limits=limits)
    values = [plain(line) for line in log.intervals]
    assert all(90 <= v["kmin"] <= 120 for v in values[1:])
    for before, after in itertools.pairwise(values):
        assert abs(after["kmin"] - before["kmin"]) <= 10 or before["kmin"] < 90
        assert abs(after["rp_ai_rate"] - before["rp_ai_rate"]) <= 20
    assert {v["kmin"] for v in values} == {90, 100, 110}


def test_a_step_of_every_knob_keeps_the_thresholds_in_order() -> None:
    space = KnobSpace(line_rate_bps=25e9)
    random = np.random.default_rng(3)
    now = default_setting(25e9)
    options = Safety(max_step=0.1, limits={"kmax": {"high": 300.0}})  # type: ignore[dict-item]
    for _ in range(200):
        wanted = space.setting(random.uniform(-1, 1, space.n), now)
        found = cluster_setting(bounded(options, wanted, now, space))
        moved = np.abs(space.encode(found) - space.encode(now))
        held, then = dict(now), dict(found)
        for i, name in enumerate(space.knobs):
            if name not in ("kmin", "kmax"):  # their places in the box depend on each other
                whole = abs(then[name] - held[name]) <= 2  # rounded to a whole unit beyond a step
                assert moved[i] <= 0.2 + 0.05 or whole
        assert found["kmin"] <= found["kmax"] <= 300
        assert bounded(Safety(), wanted, now, space) == wanted
        now = found


def test_what_sites_let_a_tuner_turn_is_marking_and_the_floor() -> None:
    given = safe_arguments(Path("site"), "keeper", {})
    options = Safety(**{k: v for k, v in given.items() if k not in ("tuner", "arguments")})
    space = KnobSpace(line_rate_bps=25e9)
    random = np.random.default_rng(5)
    now = default_setting(25e9)
    for _ in range(50):
        wanted = space.setting(random.uniform(-1, 1, space.n), now)
        found = cluster_setting(bounded(options, wanted, now, space))
        turned = {name for name in found if found[name] != now[name]}
        assert turned == {name for name in options.knobs if wanted[name] != now[name]}
    with pytest.raises(UnknownNameError, match="knob"):
        bounded(Safety(knobs=("rp_gdd",)), wanted, now, space)


def test_only_the_canary_has_the_candidate_until_it_is_widened(tmp_path: Path) -> None:
    canary = {"intervals": 3, "baseline": 4, "groups": [["nic:1"], ["nic:1", "switch:16"]],
              **dict.fromkeys(FLAGS, 1e9)}  # fmt: skip
    log, states = safe_run(
        tmp_path, 24, tuner="fixed", arguments={"kmin": 77.0, "rp_gd": 13.0}, canary=canary,
        abort={"max_paused": None},
    )  # fmt: skip
    groups = [set(line["setting"]) & {"nic:1", "port:16:0"} for line in log.intervals]
    first = plain(log.intervals[0])
    assert groups[:4] == [set()] * 4  # the groups are compared before anything changes
    assert groups[4:7] == [{"nic:1"}] * 3
    assert groups[7:10] == [{"nic:1", "port:16:0"}] * 3
    middle = log.intervals[8]["setting"]
    assert middle["cluster"] == first
    assert middle["nic:1"]["rp_gd"] == 13
    assert middle["port:16:0"]["kmin"] == 77
    for line in log.intervals[10:]:
        assert (plain(line)["kmin"], plain(line)["rp_gd"]) == (77, 13)
    assert states[-1]["confirmed"] == 1
    assert log.end is not None
    assert log.end["recommended"]["kmin"] == 77


def test_a_canary_that_fares_worse_is_the_end_of_a_candidate(tmp_path: Path) -> None:
    log, states = safe_run(
        tmp_path, 45, "native", tuner="fixed", arguments=HARMFUL, canary={}, abort={}
    )
    assert states[-1]["rejected"] == 1
    assert states[-1]["confirmed"] == 0
    assert "the canary fares worse: rtt" in states[-1]["why"]
    bad = HARMFUL["rp_ai_rate"]
    holders = [
        sum(v["rp_ai_rate"] == bad for n, v in line["setting"].items() if n.startswith("nic:"))
        if "cluster" in line["setting"]
        else 16 * (line["setting"]["rp_ai_rate"] == bad)
        for line in log.intervals
    ]
    assert max(holders) == 4
    assert log.end is not None
    assert log.end["recommended"] == plain(log.intervals[0])


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2 / 3), (1.0, 0.0), (2.0, -2 / 3)])
def test_a_canary_that_sends_less_is_worse(share: float, expected: float) -> None:
    backend = make_backend("fake")
    backend.open(MINI, 1)
    backend.apply(MINI.initial_setting())
    report = backend.advance()
    canary = canary_of([f"nic:{h}" for h in spread(0.25, 16)], MINI.fabric.devices)
    sent = np.full(report.host_tx_bytes.shape, 1_000_000, dtype=report.host_tx_bytes.dtype)
    sent[sorted(canary.hosts)] = round(share * 1_000_000)
    found = canary.differences(replace(report, host_tx_bytes=sent))["goodput"]
    assert found == pytest.approx(expected)


def test_a_setting_that_changes_nothing_is_seldom_rejected() -> None:
    backend = make_backend("native")
    backend.open(MINI, 1)
    backend.apply(MINI.initial_setting())
    devices = MINI.fabric.devices
    canary = canary_of([*(f"nic:{h}" for h in spread(0.25, 16)), "switch:16"], devices)
    seen = [canary.differences(backend.advance()) for _ in range(180)][20:]
    backend.close()
    random = np.random.default_rng(1)
    borne = {"pause": 0.005, "drops": 1e-4, "rtt": 0.3, "goodput": 0.5}
    trials = range(20, 150, 5)
    rejected = [
        any(
            lowest_change([d[f] for d in seen[t : t + 10]], [d[f] for d in seen[t - 20 : t]],
                          block=5, confidence=0.95, random=random) > limit
            for f, limit in borne.items()
        )
        for t in trials
    ]  # fmt: skip
    assert len(trials) == 26
    assert np.count_nonzero(rejected) <= 3


def test_the_bound_of_the_bootstrap_is_that_of_theory() -> None:
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        before, during = random.normal(0, 1, 60), random.normal(0.5, 1, 60)
        bound = lowest_change(
            during.tolist(), before.tolist(), block=1, confidence=0.95, random=random
        )
        hits += bound <= 0.5
        exact = during.mean() - before.mean() - 1.645 * np.sqrt(2 / 60)
        assert abs(bound - exact) < 0.12
    assert 180 <= hits <= 199  # 190 expected
    slow = np.repeat(random.normal(0, 1, 12), 10)  # ten equal values in a row
    alone, blocks = (
        lowest_change(slow.tolist(), [0.0, 0.0], block=b, confidence=0.95, random=random)
        for b in (1, 10)
    )
    assert blocks < alone  # what follows from its neighbour is less evidence
    assert np.isnan(lowest_change([np.nan], [1.0], block=2, confidence=0.95, random=random))


def test_nothing_changes_in_a_freeze_window(tmp_path: Path) -> None:
    log, states = safe_run(tmp_path, 30, tuner="random", freeze_ms=[[20.0, 28.0]])
    begins = [line["start_ps"] / 1e9 for line in log.intervals]
    frozen = [line for line, ms in zip(log.intervals, begins, strict=True) if 20 <= ms < 28]
    assert len(frozen) == 8
    assert len({str(line["setting"]) for line in frozen}) == 1
    assert len({str(line["setting"]) for line in log.intervals}) > 10
    assert states[-1]["rejected"] == 0


def test_a_trial_that_a_freeze_window_meets_is_taken_back(tmp_path: Path) -> None:
    canary = {"intervals": 50, "baseline": 2, **dict.fromkeys(FLAGS, 1e9)}
    log, states = safe_run(tmp_path, 30, tuner="random", canary=canary, freeze_ms=[[25.0, 99.0]])
    assert not any("cluster" in line["setting"] for line in log.intervals)  # never began: too long
    assert states[-1]["confirmed"] == 0


def test_an_abort_rule_takes_a_trial_back_at_once(tmp_path: Path) -> None:
    abort = {"min_utility": 1.0, "patience": 2, "cooldown": 5}
    log, states = safe_run(tmp_path, 12, tuner="random", watch=3, abort=abort)
    settings = [str(line["setting"]) for line in log.intervals]
    assert settings[0] == settings[1] != settings[2]  # on trial for two intervals, then back
    assert settings[2:] == [settings[2]] * 10  # the limit stays broken: nothing new is tried
    assert states[2]["why"].startswith("utility")
    assert (states[-1]["aborts"], states[-1]["rejected"]) == (1, 1)
    assert states[-1]["confirmed"] == 0
    assert log.end is not None
    assert log.end["recommended"] == log.intervals[2]["setting"]


@pytest.mark.parametrize("rules", [
    {"max_paused": 0.2}, {"max_drops": 5}, {"max_errors": 1}, {"min_goodput": 0.5},
    {"min_utility": 0.5},
])  # fmt: skip
def test_every_rule_of_an_abort_is_broken_by_its_own_figure(rules: dict[str, Any]) -> None:
    good, bad = Seen(0.1, 0, 0, 1000.0, 0.9), Seen(0.3, 9, 5, 100.0, 0.1)
    kept = AbortRules(**rules, patience=2)
    assert [kept.broken(s) for s in (good, bad, good, bad)] == [""] * 4
    assert "for 2 intervals" in kept.broken(bad)
    kept.forget()
    assert not kept.broken(bad)
    assert not any(AbortRules(patience=1).broken(bad) for _ in range(5))


@pytest.mark.parametrize("tuner", ["paraleon-tiers", "ucb1", "do-nothing", "default", "per-group"])
def test_every_kind_of_tuner_fits_inside(tuner: str, tmp_path: Path) -> None:
    canary = {"intervals": 2, "baseline": 2, "block": 1}
    log, states = safe_run(tmp_path, 20, tuner=tuner, canary=canary, max_step=0.3)
    assert len(log.intervals) == 20
    assert states[-1]["tuner"] is not None
    for line in log.intervals:
        assert "utility" in line


def test_a_canary_of_settings_per_group_has_its_own_part() -> None:
    devices = MINI.fabric.devices
    base = MINI.initial_setting()
    ours: DeviceSetting = {"cluster": base, "hosts": base.replace({"rp_gd": 13.0}),
            "tor": base.replace({"kmin": 70})}  # fmt: skip
    canary = canary_of(["nic:2", "switch:17"], devices)
    nic, ecn = resolve(canary.mixed(base, ours), devices)
    gd, kmin = base.table.nic.index("rp_gd"), base.table.ecn.index("kmin")
    assert [h for h in range(16) if nic[h, gd] == 13] == [2]
    changed = {devices.port_node[p] for p in np.flatnonzero(ecn[:, kmin] == 70).tolist()}
    assert changed == {17}


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    spec = RunSpec(MINI, "safe", 1, 5, "fake", {"limits": {"kmim": {"low": 1}}})
    with pytest.raises(UnknownNameError, match="did you mean 'kmin'"):
        spec.check()
    with pytest.raises(ConfigError, match="has no end"):
        make_tuner("safe", {"tuner": "safe"})
    with pytest.raises(ConfigError, match="none is left to compare with"):
        RunSpec(MINI, "safe", 1, 5, "fake", {"canary": {"groups": [["hosts"]]}}).check()
    blind = MINI.model_copy(update={"monitor": NoMonitor()})
    with pytest.raises(ConfigError, match="needs to see the flow-size distribution"):
        RunSpec(blind, "safe", 1, 5, "fake", {"tuner": "per-group"}).check()
    file = tmp_path / "safe.toml"
    for text, words in (
        ("max_stp = 0.1\n", "max_stp"),
        ("[limits]\nkmin = { low = 9, high = 2 }\n", "low = 9 is above high = 2"),
        ("freeze_ms = [[5, 2]]\n", r"freeze_ms = \[5, 2\]"),
        ('tuner = "random"\n', "tuner"),
    ):
        file.write_text(text)
        words_ = ["tune", "--safe", str(file), "--backend", "fake", "--out", str(tmp_path / "o")]
        done = CliRunner().invoke(app, words_)
        assert isinstance(done.exception, ConfigError)
        with pytest.raises(ConfigError, match=words):
            raise done.exception
        assert str(file) in str(done.exception)
        assert not (tmp_path / "o").exists()


def test_the_command_puts_a_tuner_behind_a_file(tmp_path: Path, in_threads: None) -> None:
    file = tmp_path / "safe.toml"
    file.write_text("max_step = 0.2\n[limits]\nkmin = { low = 50 }\n")
    out = tmp_path / "out"
    words = ["tune", "--scenario", "mini-fb-hadoop", "--backend", "fake", "--tuner", "random"]
    words += ["--intervals", "4", "--eval-seeds", "1", "--no-report", "--safe", str(file)]
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--quiet"])
    assert done.exit_code == 0, done.output
    header = read_run(out / "run.jsonl").header
    assert header["tuner"] == "safe"
    assert header["tuner_args"] == {"max_step": 0.2, "limits": {"kmin": {"low": 50}},
                                    "tuner": "random", "arguments": {}}  # fmt: skip


@pytest.mark.parametrize(
    ("window", "may"),
    [([14.0, 20.0], True), ([13.9, 20.0], False), ([2.0, 10.0], True), ([2.0, 10.1], False)],
)
def test_a_trial_ends_an_interval_before_a_freeze_window(window: list[float], may: bool) -> None:
    tuner = make_tuner("safe", {"tuner": "random", "watch": 3, "freeze_ms": [window]})
    assert isinstance(tuner, SafeTuner)
    tuner.start(TunerContext(KnobSpace(), default_setting(), 1, 100))
    tuner._now_ms, tuner._step_ms = 10.0, 1.0  # three intervals from 10 ms on, and one to spare
    assert tuner._may_begin() is may


def test_an_abort_after_a_confirmation_goes_back_to_the_first_setting() -> None:
    tuner = make_tuner(
        "safe",
        {"tuner": "fixed", "arguments": {"kmin": 77.0}, "watch": 1,
         "abort": {"min_utility": 0.5, "patience": 1, "cooldown": 3}},
    )  # fmt: skip
    tuner.start(TunerContext(KnobSpace(), default_setting(), 1, 100))
    candidate = tuner.ask()
    assert candidate is not None
    tuner.tell(outcome(cluster_setting(candidate), 0.9, FSD))
    assert tuner.state()["confirmed"] == 1
    assert tuner.ask() is None  # in force already
    tuner.tell(outcome(cluster_setting(candidate), 0.1, FSD))
    assert tuner.state()["aborts"] == 1
    assert tuner.ask() == default_setting()


def test_the_tuner_inside_learns_that_a_rejected_candidate_is_worth_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tuner = make_tuner(
        "safe", {"tuner": "random", "watch": 3, "abort": {"min_utility": 0.5, "patience": 1}}
    )
    assert isinstance(tuner, SafeTuner)
    tuner.start(TunerContext(KnobSpace(), default_setting(), 1, 100))
    seen: list[Outcome] = []
    monkeypatch.setattr(tuner._inner, "tell", seen.append)
    candidate = tuner.ask()
    assert candidate is not None
    tuner.tell(outcome(cluster_setting(candidate), 0.2, FSD))
    assert [(o.setting, o.utility) for o in seen] == [(candidate, 0.0)]


@pytest.mark.parametrize(("ours", "expected"), [(10, 0.1), (0, 0.0), (90, 0.9)])
def test_a_canary_that_drops_more_is_worse(ours: int, expected: float) -> None:
    backend = make_backend("native")
    backend.open(MINI, 1)
    backend.apply(MINI.initial_setting())
    report = backend.advance()
    backend.close()
    devices = MINI.fabric.devices
    canary = canary_of(["switch:16"], devices)
    own = np.isin(report.port_node, [devices.port_node[p] for p in canary.ports])
    dropped = np.where(own, ours, 0).astype(report.port_dropped_packets.dtype)
    sent = np.where(own, 100 - ours, 100).astype(report.port_tx_packets.dtype)
    both = replace(report, port_dropped_packets=dropped, port_tx_packets=sent)
    assert canary.differences(both)["drops"] == pytest.approx(expected)
