"""A race finds what trying everything finds, at a quarter of the intervals."""

from __future__ import annotations

import numpy as np
import pytest
from racing import SEEDS, all_intervals, scenarios, settings, worth_of_all

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.report.evaluated import evaluate
from dcqcn_gym.report.racing import race


def test_it_finds_what_is_as_good_as_the_full_evaluation_s_choice_at_a_quarter() -> None:
    on = scenarios()
    tried, default = settings(on[0], 11), on[0].default_setting()
    found = race(tried, default, on, SEEDS)
    values = worth_of_all(tried, on)
    assert values[found.best] > values.max() - 0.05 > np.sort(values)[len(values) // 2]
    assert found.intervals <= all_intervals(on) / 4
    assert race(tried, default, on, SEEDS) == found


def test_worth_is_what_the_caller_says() -> None:
    on = scenarios()[:1]
    tried = settings(on[0], 4, 6)
    chosen = race(tried, tried[0], on, SEEDS[:1], lambda ours, _: -ours.pause_share).best
    pauses = [of_one[0][0].pause_share for of_one in evaluate(tried, on, SEEDS[:1])]
    assert pauses[chosen] <= np.median(pauses)


def test_nothing_to_race_is_refused() -> None:
    on = scenarios()
    with pytest.raises(ConfigError, match="a setting, a scenario and a seed"):
        race([], on[0].default_setting(), on, SEEDS)
