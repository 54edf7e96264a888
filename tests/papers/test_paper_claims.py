"""The rules of the verdicts, on samples made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from dcqcn_gym.benchmarks.papers.claims import (
    AtLeast,
    AtMost,
    Between,
    Cause,
    Claim,
    Derived,
    Direction,
    Effect,
    Growth,
    Level,
    Outcome,
    Reading,
    Rule,
    SecondHand,
    Sign,
    judge,
)
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults

REPRODUCED, DIRECTION, READING, OPEN, NOT, NO_TEST = Outcome


def results(**rows: Sequence[float]) -> FigureResults:
    """Return results of the measure ``m`` at place 1: one value per seed for each row."""
    lines = [
        {"figure": "F", "size": "quick", "row": row, "x": 1, "seed": seed, "hops": 1,
         "series": {}, "values": {"m": None if math.isnan(value) else value}}
        for row, values in rows.items()
        for seed, value in enumerate(values, 1)
    ]  # fmt: skip
    return FigureResults("F", "quick", lines)


def verdict(rule: Rule, *values: float) -> Outcome:
    claim = Claim("", "", Level("m", "a", 1), rule)
    return judge([claim], results(a=values))[0].verdict


# of three values one apart, Student's 95 % interval is the mean -+ 2.484; ten times nearer, 0.2484
@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        (Effect(10), (9, 10, 11), REPRODUCED),
        (Effect(10), (4, 5, 6), REPRODUCED),  # half of it counts
        (Effect(10), (3.9, 4.9, 5.9), DIRECTION),  # less than half, clear of 0
        (Effect(10), (2, 3, 4), DIRECTION),  # 0.516 to 5.484
        (Effect(10), (1.5, 2.5, 3.5), DIRECTION),  # 0.016
        (Effect(10), (1.4, 2.4, 3.4), NOT),  # -0.084 to 4.884: smaller than half for certain
        (Effect(10), (5, 10, 15), OPEN),  # -2.42 to 22.42: both 0 and the whole effect
        (Effect(10), (-4, -5, -6), NOT),
        (Effect(-10), (-9, -10, -11), REPRODUCED),
        (Effect(-10), (-4, -3, -2), DIRECTION),
        (Effect(-10), (9, 10, 11), NOT),
        (Sign(1), (2.4, 2.5, 2.6), REPRODUCED),
        (Sign(1), (1, 2, 3), OPEN),
        (Sign(1), (-2.4, -2.5, -2.6), NOT),
        (Sign(-1), (-2.4, -2.5, -2.6), REPRODUCED),
        (Sign(-1), (2.4, 2.5, 2.6), NOT),
        (Direction(1), (2.4, 2.5, 2.6), DIRECTION),  # never more than that
        (Direction(-1), (2.4, 2.5, 2.6), NOT),
        (Direction(-1), (-1, -2, 1), OPEN),
        (SecondHand(AtLeast(0.9)), (0.95, 0.96, 0.97), DIRECTION),
        (SecondHand(AtLeast(0.9)), (0.85, 0.9, 0.95), OPEN),
        (SecondHand(AtLeast(0.9)), (0.74, 0.75, 0.76), NOT),
        (SecondHand(Effect(-10)), (-9, -10, -11), DIRECTION),
        (AtMost(-3.8, near=0), (-3.9, -3.8, -3.7), OPEN),  # a bound is not halved
        (AtMost(-3.8, near=0), (-3.1, -3.0, -2.9), DIRECTION),
        (AtMost(250), (240, 241, 242), REPRODUCED),
        (AtMost(250), (248, 249, 250), OPEN),
        (AtMost(250), (251, 252, 253), OPEN),
        (AtMost(250), (260, 261, 262), NOT),
        (AtMost(250, near=500), (260, 261, 262), DIRECTION),
        (AtMost(250, near=260), (260, 261, 262), NOT),
        (AtLeast(0.9), (0.95, 0.96, 0.97), REPRODUCED),
        (AtLeast(0.9, near=0.7), (0.74, 0.75, 0.76), DIRECTION),
        (AtLeast(0.9), (0.74, 0.75, 0.76), NOT),
        (Between(-8, 0), (-5, -4, -3), REPRODUCED),
        (Between(-8, 0), (-1, 0, 1), OPEN),
        (Between(-8, 0), (5, 6, 7), NOT),
    ],
)
def test_rules(rule: Rule, values: Sequence[float], expected: Outcome) -> None:
    assert verdict(rule, *values) is expected


def test_one_seed_alone_decides_nothing() -> None:
    assert verdict(Effect(10), 10) is OPEN
    assert verdict(AtMost(250), 3) is OPEN


def test_seeds_that_change_nothing_decide() -> None:
    assert verdict(AtMost(250), 3, 3, 3) is REPRODUCED
    assert verdict(AtMost(250), 300, 300, 300) is NOT


def test_what_is_not_known_is_not_reproduced() -> None:
    assert verdict(AtMost(250), math.nan, math.nan) is NOT


def test_a_change_is_paired_by_seed() -> None:
    """Seeds a hundred times apart, each with 30 % less: only the pairs show it."""
    found = results(new=(0.7, 7.0, 70.1), old=(1.0, 10.0, 100.0))
    (one,) = judge([Claim("", "", Growth("m", "new", "old", 1), Effect(-0.3))], found)
    assert one.verdict is REPRODUCED
    assert one.found.mean == pytest.approx(-0.3, abs=0.001)


def test_a_change_to_nothing_in_some_seeds_is_left_open() -> None:
    """It is no evidence against a fall, which it was taken for when its interval was NaN."""
    found = results(new=(0.0, 0.0, 4.0), old=(2.0, 3.0, 5.0))
    for rule in (Sign(-1), Effect(-0.5), AtMost(-0.5)):
        (one,) = judge([Claim("", "", Growth("m", "new", "old", 1), rule)], found)
        assert one.verdict is OPEN
    gone = results(new=(0.0, 0.0, 0.0), old=(2.0, 3.0, 5.0))
    (one,) = judge([Claim("", "", Growth("m", "new", "old", 1), Sign(-1))], gone)
    assert one.verdict is REPRODUCED


def by_seed(found: FigureResults, seed: int) -> float:
    return found.value("m", "a", 1, seed) - found.value("m", "b", 1, seed)


def test_a_finding_can_be_made_of_all_rows() -> None:
    found = results(a=(3, 4, 5.1), b=(1, 2, 3))
    (one,) = judge([Claim("", "", Derived(by_seed), Between(1.5, 2.5))], found)
    assert one.verdict is REPRODUCED
    assert one.found.mean == pytest.approx(2.0333, abs=1e-3)


@pytest.mark.parametrize(("shown", "said"), [((9, 10, 11), "because"), ((1, 2, 9), None)])
def test_a_cause_counts_if_its_own_rule_is_met(shown: Sequence[float], said: str | None) -> None:
    cause = Cause("because", Level("m", "b", 1), Effect(10))
    claim = Claim("", "", Level("m", "a", 1), AtMost(250), cause=cause)
    (one,) = judge([claim], results(a=(300, 301, 302), b=shown))
    assert one.verdict is NOT
    assert one.cause == said


def test_a_claim_has_the_verdict_of_its_worst_cell() -> None:
    cells = {name: Level("m", name, 1) for name in "abc"}
    claim = Claim("", "", cells, Effect(10))
    (one,) = judge([claim], results(a=(9, 10, 11), b=(2, 3, 4), c=(9, 10, 11)))
    assert (one.verdict, one.cell) == (DIRECTION, "b")
    assert one.found.mean == pytest.approx(3)
    (one,) = judge([claim], results(a=(9, 10, 11), b=(9, 9, 9.1), c=(9, 10, 11)))
    assert one.verdict is REPRODUCED


@pytest.mark.parametrize(
    ("other", "verdict", "said"),
    [((240, 241, 242), READING, "b has 3"), ((300, 301, 302), NOT, "because")],
)
def test_another_reading_is_named_where_the_claim_comes_out_under_it(
    other: Sequence[float], verdict: Outcome, said: str
) -> None:
    claim = Claim(
        "", "", Level("m", "a", 1), AtMost(250),
        cause=Cause("because", Level("m", "a", 1), AtLeast(250)),
        readings=(Reading("b has 3", Level("m", "b", 1)),),
    )  # fmt: skip
    (one,) = judge([claim], results(a=(300, 301, 302), b=other))
    assert (one.verdict, one.cause) == (verdict, said)
    assert list(one.tried) == (["b has 3"] if verdict is NOT else [])


@pytest.mark.parametrize(
    ("second", "verdict"), [((240, 241, 242), READING), ((249, 250, 251), NOT)]
)
def test_a_reading_of_several_cells_has_to_come_out_in_all(
    second: Sequence[float], verdict: Outcome
) -> None:
    readings = (Reading("b and c", {name: Level("m", name, 1) for name in "bc"}),)
    claim = Claim("", "", Level("m", "a", 1), AtMost(250), readings=readings)
    (one,) = judge([claim], results(a=(300, 301, 302), b=(1, 2, 3), c=second))
    assert one.verdict is verdict


def test_a_reading_does_not_touch_what_comes_out_or_is_open() -> None:
    readings = (Reading("b", Level("m", "b", 1)),)
    claim = Claim("", "", Level("m", "a", 1), AtMost(250), readings=readings)
    for values, verdict in (((240, 241, 242), REPRODUCED), ((249, 250, 251), OPEN)):
        (one,) = judge([claim], results(a=values, b=(1, 2, 3)))
        assert one.verdict is verdict


def test_what_cannot_decide_is_no_test_whatever_was_found() -> None:
    for values in ((240, 241, 242), (300, 301, 302)):
        claim = Claim("", "", Level("m", "a", 1), AtMost(250), no_test="too short")
        (one,) = judge([claim], results(a=values))
        assert (one.verdict, one.cause) == (NO_TEST, "too short")


def test_a_claim_without_a_number_is_reproduced_by_sign() -> None:
    signs = [Claim("", "", Level("m", "a", 1), rule) for rule in (Sign(1), Effect(1))]
    assert [one.by_sign for one in judge(signs, results(a=(9, 10, 11)))] == [True, False]
    assert not judge(signs, results(a=(-1, -2, -3)))[0].by_sign


@pytest.mark.parametrize(
    ("values", "expected"),
    [((9, 10, 11), DIRECTION), ((-9, 0, 9), NO_TEST), ((-4, -5, -6), NO_TEST)],
)
def test_what_a_weak_rival_does_not_reach_is_no_test(
    values: Sequence[float], expected: Outcome
) -> None:
    """Even a network weaker than the paper's may reach a claim; its failure says nothing."""
    claim = Claim("", "", Level("m", "a", 1), Direction(1), weak="weaker than the paper's")
    found = judge([claim], results(a=values))[0]
    assert found.verdict is expected
    assert found.cause == ("weaker than the paper's" if expected is NO_TEST else None)
