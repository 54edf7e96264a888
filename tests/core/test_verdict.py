"""The words of the verdict: every rule, and the bound, not the point, that raises a flag."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.score import Flows
from dcqcn_gym.core.verdict import Measured, changes, flags, pooled, scores, verdict

SIZES = (10_000, 300_000, 5_000_000)


def measured(
    seed: int,
    *,
    slow: tuple[float, float, float] = (2.0, 4.0, 6.0),
    goodput: float = 1e11,
    rtt: float = 5e-5,
    pause: float = 0.02,
    unfinished: int = 0,
    each: int = 100,
    run: int = 1,
) -> Measured:
    """Return a made-up run with ``each`` flows a class around the given slowdowns."""
    size = np.repeat(np.array(SIZES, dtype=np.int64), each)
    level = np.repeat(np.array(slow), each)
    random = np.random.default_rng([seed, run])
    wobble = 1 + 0.02 * random.normal(size=size.size)
    finished = np.ones(size.size, dtype=bool)
    finished[:unfinished] = False
    jitter = 1 + 0.005 * random.normal(size=4)
    return Measured(
        Flows(size, np.maximum(level * wobble, 1.0), finished),
        goodput_bps=goodput * jitter[0], rtt_s=rtt * jitter[1],
        pause_share=pause * jitter[2], utility=0.7 * jitter[3],
    )  # fmt: skip


def runs(n: int = 5, **figures: Any) -> list[Measured]:
    return [measured(seed, **figures) for seed in range(n)]


DEFAULT = runs(run=0)


def state(ours: list[Measured], key: str) -> str:
    return next(flag.state for flag in flags(ours, DEFAULT) if flag.key == key)


def test_clear_gain() -> None:
    v = verdict(runs(slow=(1.4, 2.5, 4.0)), DEFAULT)
    assert (v.word, v.deploy) == ("better", "yes")
    assert v.text == f"better: slowdowns are {100 * (1 - math.exp(-v.score.mean)):.0f} % lower"
    assert all(flag.state == "clear" for flag in v.flags)


def test_mice_gain_with_starved_elephants() -> None:
    v = verdict(runs(slow=(1.2, 4.0, 40.0)), DEFAULT)
    assert (v.word, v.deploy) == ("starves", "no")
    assert v.text == "better for mice, worse for elephants"


def test_a_quarter_of_the_throughput_for_shorter_queues() -> None:
    v = verdict(runs(goodput=0.75e11, rtt=3e-5, slow=(1.2, 4.0, 7.0)), DEFAULT)
    assert (v.word, v.deploy) == ("trades", "no")
    assert v.text == "trades 25 % throughput for shorter queues"


def test_nothing_gained() -> None:
    v = verdict(runs(), DEFAULT)
    assert (v.word, v.text, v.deploy) == ("nothing gained", "no measurable gain", "no")
    assert v.score.low is not None
    assert v.score.low < 0 < (v.score.high or 0)


def test_worse_by_the_score_alone() -> None:
    v = verdict(runs(slow=(2.2, 4.4, 6.6)), DEFAULT)  # 10 %: below every limit
    assert (v.word, v.deploy) == ("worse", "no")
    assert v.text == "worse: slowdowns are 10 % higher"


def test_the_default_itself_gains_nothing() -> None:
    v = verdict(DEFAULT, DEFAULT)
    assert (v.word, v.deploy) == ("nothing gained", "no")
    assert not any(flag.state == "up" for flag in v.flags)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"pause": 0.05}, "pause"),
        ({"unfinished": 10}, "unfinished"),
        ({"slow": (2.0, 4.0, 9.0)}, "mean 1MB-"),
        ({"goodput": 0.9e11}, "goodput"),
    ],
)
def test_every_limit_raises_its_flag(change: dict[str, Any], key: str) -> None:
    assert state(runs(**change), key) == "up"
    assert verdict(runs(**change), DEFAULT).deploy == "no"
    assert state(runs(run=2), key) == "clear"


def test_a_worst_device_that_pauses_more_is_a_harm_that_the_mean_hides() -> None:
    def with_worst(share: float, of: list[Measured]) -> list[Measured]:
        return [replace(m, worst_pause=share * (1 + 0.01 * i)) for i, m in enumerate(of)]

    better = runs(slow=(1.5, 3.0, 4.0), run=2)
    assert verdict(better, DEFAULT).deploy == "yes"  # unknown: no flag
    assert all(flag.key != "worst_pause" for flag in verdict(better, DEFAULT).flags)
    found = verdict(with_worst(0.5, better), with_worst(0.1, DEFAULT))
    assert [flag.name for flag in found.flags if flag.state == "up"] == ["pause (worst device)"]
    assert found.deploy == "no"
    assert verdict(with_worst(0.15, better), with_worst(0.1, DEFAULT)).deploy == "yes"
    assert verdict(with_worst(0.5, better), DEFAULT).deploy == "yes"  # one side alone


def test_the_bound_counts_and_not_the_point() -> None:
    slow = [1.9, 1.6, 0.9, 2.4, 1.0]  # 1.46 times on average, but it may be chance
    ours = [measured(s, slow=(2.0, 4.0, 6.0 * f)) for s, f in enumerate(slow)]
    assert state(ours, "mean 1MB-") == "open"
    v = verdict(ours, DEFAULT)
    assert any("mean slowdown of elephants: up to" in note for note in v.notes)


def test_goodput_that_may_be_lost_by_chance_is_open_and_not_up() -> None:
    share = [0.90, 1.06, 0.97, 1.05, 0.92]  # 2 % less on average; by its bounds -10 to +6 %
    ours = [measured(s, goodput=1e11 * f) for s, f in enumerate(share)]
    assert state(ours, "goodput") == "open"
    (row,) = (row for row in changes(ours, DEFAULT) if row.key == "goodput")
    assert row.harm.low is not None
    assert row.harm.high is not None
    assert row.harm.low < 0 < row.harm.mean < 0.03 < row.harm.high
    assert not row.worse
    assert not row.better


def test_a_class_with_few_flows_carries_no_flag() -> None:
    few = runs(each=29, slow=(2.0, 4.0, 60.0))
    assert state(few, "mean 1MB-") == "few"


def test_one_trace_is_no_evidence() -> None:
    same = [measured(0, slow=(1.4, 2.5, 4.0))] * 5
    v = verdict(same, [measured(0, run=0)] * 5)
    assert (v.word, v.deploy) == ("one trace", "unknown")
    assert "one trace, no interval" in v.text
    assert not v.score.known


def test_traffic_that_is_not_drawn_is_one_trace_although_results_differ() -> None:
    ours, default = (
        [replace(m, drawn=False) for m in ones] for ones in (runs(slow=(1.4, 2.5, 4.0)), DEFAULT)
    )
    v = verdict(ours, default)
    assert (v.word, v.deploy) == ("one trace", "unknown")
    assert v.text.endswith("(the traffic is the same on every seed: one trace, no interval)")
    assert {v.score.low} | {flag.cost.change.low for flag in v.flags} == {None}


def test_one_seed_is_no_evidence_either() -> None:
    v = verdict(runs(1, slow=(1.4, 2.5, 4.0)), DEFAULT[:1])
    assert v.deploy == "unknown"
    assert "one seed, no interval" in v.text


def test_without_flows_nothing_is_said() -> None:
    nothing = [measured(seed, each=0) for seed in range(5)]
    v = verdict(nothing, nothing)
    assert (v.word, v.deploy) == ("no evidence", "unknown")


def test_rounds_count_as_the_closed_loops_part() -> None:
    def closed(seconds: float) -> list[Measured]:
        nothing = Flows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool))
        return [
            Measured(nothing, 1e11, math.nan, 0.0, 0.9, [seconds * (1 + 0.01 * k), seconds])
            for k in range(5)
        ]

    s = scores(closed(1.0), closed(2.0))
    assert s.mean == pytest.approx(math.log(2), rel=0.01)
    assert changes(closed(1.0), closed(2.0))[-2].key == "round"


def test_better_and_worse_follow_the_direction() -> None:
    table = {row.key: row for row in changes(runs(goodput=2e11, rtt=9e-5), DEFAULT)}
    assert table["goodput"].better
    assert not table["goodput"].worse
    assert table["rtt"].worse


def test_ages_alone_are_no_evidence() -> None:
    def stuck(n: int) -> list[Measured]:
        return [measured(seed, unfinished=300, slow=(n, n, n)) for seed in range(5)]

    v = verdict(stuck(2), stuck(9))
    assert (v.word, v.deploy, v.score.n, v.flags) == ("no evidence", "unknown", 0, ())
    one = [*stuck(2)[:4], measured(4, unfinished=299)]
    assert verdict(one, stuck(9)).word == "better"


def test_fresh_runs_of_one_recommendation_are_one_seed() -> None:
    parts = [measured(0), measured(1, goodput=3e11, each=50, unfinished=10)]
    one = pooled(parts)
    assert one.flows.bytes.size == 450
    assert one.flows.unfinished_share == pytest.approx(10 / 450)
    assert one.goodput_bps == pytest.approx(np.mean([m.goodput_bps for m in parts]))
    assert one.classes[2].count == 150
    nothing = Measured(Flows.none(), 1e11, math.nan, 0.1, 0.5, [3.0])
    both = pooled([nothing, measured(0)])
    assert both.rtt_s == measured(0).rtt_s
    assert both.rounds_ps == [3.0]
    assert math.isnan(nothing.flows.unfinished_share)
