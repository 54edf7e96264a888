"""The score by hand: the window, the age of unfinished flows, the classes, the mean of loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.score import (
    Flows,
    class_figures,
    class_score,
    geometric_ratio,
    round_score,
    score,
    window_flows,
)


def ints(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def flows(*rows: tuple[int, float]) -> Flows:
    size, slow = zip(*rows, strict=True)
    return Flows(ints(*size), np.array(slow, float), np.ones(len(rows), bool))


def test_window_leaves_out_the_guard_and_what_started_before() -> None:
    finished = (
        ints(10, 20, 30, 40),
        ints(0, 100, 179, 180),
        ints(50, 60, 20, 5),
        ints(25, 20, 10, 5),
    )
    chosen = window_flows(finished, (ints(), ints(), ints()), begin_ps=100, end_ps=200)
    assert chosen.bytes.tolist() == [20, 30]  # 0 is before, 180 in the last fifth
    assert chosen.slowdown.tolist() == [3.0, 2.0]
    assert chosen.unfinished_share == 0.0


def test_unfinished_flows_count_at_their_age_and_never_below_one() -> None:
    none = (ints(),) * 4
    still = ints(1_000_000, 1_000_000), ints(0, 790), ints(100, 400)
    chosen = window_flows(none, still, begin_ps=0, end_ps=1000)
    assert chosen.slowdown.tolist() == [10.0, 1.0]  # 1000/100; 210/400 is no slowdown yet
    assert chosen.unfinished_share == 1.0


def test_ideal_times_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="above 0"):
        window_flows((ints(),) * 4, (ints(1), ints(0), ints(0)), begin_ps=0, end_ps=10)


def test_classes_split_at_100_kb_and_1_mb() -> None:
    rows = class_figures(flows((99_999, 1.0), (100_000, 2.0), (999_999, 4.0), (1_000_000, 8.0)))
    assert [(r.count, r.mean) for r in rows] == [(1, 1.0), (2, 3.0), (1, 8.0)]
    assert rows[1].p99 == pytest.approx(2 + 2 * 0.99)


def test_every_class_counts_the_same() -> None:
    default = flows((10, 2.0), (10, 2.0), (10, 2.0), (2_000_000, 2.0))
    ours = flows((10, 1.0), (10, 1.0), (10, 1.0), (2_000_000, 8.0))
    # mice: ln 2 for mean and p99; elephants: -ln 4; no middle flows
    assert class_score(class_figures(ours), class_figures(default)) == pytest.approx(
        (math.log(2) - math.log(4)) / 2
    )
    assert class_score(class_figures(default), class_figures(default)) == 0.0
    assert class_score(class_figures(ours), class_figures(flows((200_000, 1.0)))) is None


def test_rounds_and_flows_together_are_their_mean() -> None:
    assert round_score([2.0, 4.0], [6.0]) == pytest.approx(math.log(2))
    assert round_score([], [6.0]) is None
    assert score([0.2, None]) == 0.2
    assert score([0.2, 0.4]) == pytest.approx(0.3)
    assert score([None, None]) is None
    assert geometric_ratio(math.log(2)) == pytest.approx(0.5)
