"""R, the one number: its properties over generated boards, and cases worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from dcqcn_gym.benchmarks.leaderboard import bootstrap
from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical
from dcqcn_gym.benchmarks.leaderboard.risk import (
    GUARDRAILS,
    MOST,
    SEEN,
    Harm,
    References,
    gain,
    references,
)
from dcqcn_gym.core.score import CLASSES, ClassFigures
from dcqcn_gym.core.verdict import Summary

Board = list[list[Summary]]
"""Runs by scenario and repetition."""

BOARDS = 2000
NAMES = [one.name for one in GUARDRAILS]
P99 = NAMES.index("99th percentile of slowdown of mice")


def run(
    mice: float = 3.0, p99: float = 10.0, *, count: int = 100, goodput: float = 1e9,
    pause: float = 0.0, worst: float = 0.0, rounds: Sequence[float] = (), elephants: float = 4.0,
) -> Summary:  # fmt: skip
    classes = [
        ClassFigures(CLASSES[0], count, mice, p99),
        ClassFigures(CLASSES[1], 100, 3.0, 12.0),
        ClassFigures(CLASSES[2], 100, elephants, 20.0),
    ]
    return Summary(classes, 0.0, goodput, 1e-5, pause, 0.5, list(rounds), worst)


def drawn(random: np.random.Generator, noise: float) -> Summary:
    """Return a run as a scenario may give it; some have no flows of a class, or rounds."""
    classes = []
    for of in CLASSES:
        mean = 1 + float(random.lognormal(0.5, 1)) * math.exp(noise * random.normal())
        tail = mean * (1 + float(random.lognormal(0, 1)))
        count = int(random.integers(0, 200)) if random.random() < 0.9 else 0
        some = (mean, tail) if count else (math.nan, math.nan)
        classes.append(ClassFigures(of, count, *some))
    pause, worst = float(random.uniform(0, 0.3)), float(random.uniform(0, 0.9))
    rounds = [1.0, 1.0 + float(random.random())] if random.random() < 0.3 else []
    unfinished, goodput = float(random.uniform(0, 0.1)), float(random.lognormal(20, 0.5))
    return Summary(classes, unfinished, goodput, 1e-5, pause, 0.5, rounds, worst)


def board(random: np.random.Generator) -> Board:
    """Return two runs of each of two scenarios."""
    return [[drawn(random, 0.3) for _ in range(2)] for _ in range(2)]


def risks(ours: Board, against: Sequence[References]) -> np.ndarray:
    """Return R of every run."""
    found = []
    for one, runs in zip(against, ours, strict=True):
        price = one.prices(one.changes(runs)).sum(axis=0)
        found.append([g.score for g in one.gains(runs)] - price)
    return np.array(found)


def worse(random: np.random.Generator, given: Summary) -> Summary:
    """Return a run with one figure made worse: a class, pause, unfinished flows or goodput."""
    factor = 1 + float(random.lognormal(-1, 1))
    which = int(random.integers(7))
    if which < 3 and given.classes[which].count:
        old = given.classes[which]
        part = (factor, 1.0) if random.random() < 0.5 else (1.0, factor)
        new = replace(old, mean=old.mean * part[0], p99=old.p99 * part[1])
        return replace(given, classes=[*given.classes[:which], new, *given.classes[which + 1 :]])
    if which == 3:
        return replace(given, pause_share=min(1.0, given.pause_share * factor))
    if which == 4:
        return replace(given, worst_pause=min(1.0, given.worst_pause * factor))
    if which == 5:
        return replace(given, unfinished_share=min(1.0, given.unfinished_share * factor))
    return replace(given, goodput_bps=given.goodput_bps / factor)


def test_properties_over_generated_boards() -> None:
    """What makes a run worse never raises R; a coin never beats its better half; no double counts.

    A coin: of an entry and one that is worse in every run, in every case; of any two entries, in
    the mean over coins. A scenario that is listed twice counts as it did.
    """
    random = np.random.default_rng(1)
    fell = 0
    for _ in range(BOARDS):
        default, floor, good, other = (board(random) for _ in range(4))
        against = references(default, floor)
        before = risks(good, against)

        bad = [[worse(random, one) for one in runs] for runs in good]
        found = risks(bad, against)
        assert (found <= before + 1e-12).all()
        fell += bool((found < before - 1e-9).any())

        heads = random.random((2, 2)) < 0.5
        assert risks(coin(good, bad, heads), against).mean() <= before.mean() + 1e-12
        halves = [before.mean(), risks(other, against).mean()]
        both = [risks(coin(good, other, up), against).mean() for up in (heads, ~heads)]
        assert np.mean(both) <= max(halves) + 1e-12

        twice = risks(good * 2, references(default * 2, floor * 2))
        assert np.allclose(twice, [*before, *before])
    assert fell > BOARDS / 2  # it is not deaf


def coin(a: Board, b: Board, heads: np.ndarray) -> Board:
    """Return runs of a where heads is up, else of b."""
    return [
        [x if up else y for x, y, up in zip(*some, strict=True)]
        for some in zip(a, b, heads, strict=True)
    ]


def test_the_default_with_other_seeds_lies_within_its_interval_of_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same entry on other traffic: noise of a tenth in means, more in tails, 24 scenarios."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    random = np.random.default_rng(4)

    def once(size: float) -> Summary:
        noise = np.exp(random.normal(0, (0.1, 0.2, 0.1, 0.02), 4))
        pause = float(np.clip(0.05 * size * random.lognormal(0, 0.3), 0, 1))
        return run(
            3 * size * noise[0], 10 * size * noise[1], elephants=4 * noise[2],
            goodput=1e9 * noise[3], pause=pause, worst=2 * pause,
        )  # fmt: skip

    inside = 0
    for _ in range(100):
        sizes = random.lognormal(0, 0.5, 24)
        default, again = ([[once(size) for _ in range(5)] for size in sizes] for _ in range(2))
        found = hierarchical(risks(again, references(default)))
        inside += found.low <= 0 <= found.high
    assert inside >= 92


def price(ours: Summary, default: Summary, floor: Summary | None = None) -> float:
    (one,) = references([[default] * 2], [[floor] * 2] if floor else ())
    return float(one.prices(one.changes([ours] * 2)).sum(axis=0)[0])


@pytest.mark.parametrize(
    ("ours", "paid"),
    [
        (run(p99=12.5), 0.0),  # the limit itself
        (run(p99=12.5 * math.e), 0.5),
        (run(3.0 * 1.25 * math.e, 12.5 * math.e), 1.0),  # as S, were it the only class
        (run(goodput=1e9 * 0.97 / math.e), 1.0),
        (run(pause=1 - math.exp(-1.01)), 0.5),
        (run(worst=1 - math.exp(-1.05)), 0.5),
        (run(worst=1.0), (MOST - 0.05) / 2),  # one device stopped for good
    ],
)
def test_the_price_of_one_guardrail(ours: Summary, paid: float) -> None:
    assert price(ours, run()) == pytest.approx(paid, abs=1e-9)


def test_slowdowns_up_to_the_acceptable_one_cost_nothing() -> None:
    quick = run(1.02, 1.1)
    assert price(run(1.5, 3.0), quick) == 0
    assert price(run(1.02, 3.75 * math.e), quick) == pytest.approx(0.5)


def test_who_repairs_what_the_default_starves_is_not_convicted() -> None:
    """The floor triples elephants' speed and disturbs mice; so may an entry, but no further."""
    default, floor = run(elephants=400.0), run(6.0, 40.0, elephants=4.0)
    assert gain(floor, default).score > 0.5
    repaired = run(6.0, 40.0, elephants=4.0)
    assert price(repaired, default) > 0.8
    assert price(repaired, default, floor) == 0
    assert price(run(6.0, 80.0, elephants=4.0), default, floor) == pytest.approx(math.log(1.6) / 2)
    # a floor that gains nothing is no reference
    assert price(run(6.0, 40.0), run(), run(6.0, 40.0)) > 0.8


def test_better_for_few_and_worse_for_most_is_no_gain() -> None:
    """Ten elephants four times as fast, a thousand mice 6 % slower."""
    default = run(count=100_000)
    ours = run(3.18, 10.0, count=100_000, elephants=1.0)
    assert gain(ours, default).score == 0
    assert gain(run(3.0, 10.0, count=100_000, elephants=1.0), default).score > 0


def test_closed_loops_count_their_tail_and_what_is_gone_loses_most() -> None:
    default = run(rounds=[1.0, 2.0])
    slow = gain(run(rounds=[1.0, 4.0]), default).score
    assert slow == pytest.approx(-math.log(2) / 2 / 2)
    assert gain(run(), default).score == pytest.approx(-MOST / 2)
    gone = replace(run(), classes=[ClassFigures(of, 0, math.nan, math.nan) for of in CLASSES])
    assert gain(gone, run()).score <= -MOST
    assert gain(run(), gone).score == 0  # nothing to compare


def test_few_flows_of_the_default_are_no_guardrail_and_those_of_the_entry_silence_nothing() -> None:
    default, starved = run(count=12), run(99.0, 990.0, count=1)
    (few,) = references([[default] * 2])
    assert np.isnan(few.changes([starved] * 2)[P99]).all()
    (enough,) = references([[default] * 3])
    assert enough.changes([starved] * 3)[P99] == pytest.approx([math.log(99)] * 3)


def test_the_allowance_is_the_default_s_own_spread_with_that_of_all_scenarios() -> None:
    """Two repetitions e apart, variance 1/2; the median scenario of three varies by nothing."""

    def pair(factor: float) -> list[Summary]:
        return [run(), run(p99=10.0 * factor)]

    found = references([pair(math.e), pair(1.0), pair(1.0)])
    assert found[0].allowance[P99] == pytest.approx(2 * math.sqrt(0.5 / 4))
    assert found[1].allowance[P99] == 0
    assert references([[run()], [run()]])[0].allowance.max() == 0


def test_amounts_of_harm() -> None:
    price, change = np.zeros((4, len(GUARDRAILS))), np.zeros((4, len(GUARDRAILS)))
    price[1, P99], change[1, P99] = 0.4, 1.2
    price[2, P99] = SEEN / 2
    harm = Harm(price, change)
    assert harm.share == 0.25
    assert harm.beyond(["a", "b", "c", "d"]) == {"b": {NAMES[P99]: 1.2}}


@pytest.mark.parametrize("of", [lambda r: r.classes[0].mean, lambda r: r.pause_share])
def test_a_run_is_not_changed_by_being_judged(of: Callable[[Summary], float]) -> None:
    ours = run(pause=0.2)
    before = of(ours)
    price(ours, run(), run())
    assert of(ours) == before
