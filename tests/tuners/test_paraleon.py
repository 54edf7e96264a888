"""Algorithm 1 of PARALEON line by line, against steps worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import pytest
from outcomes import outcome

from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.tuners import TunerContext, make_tuner
from dcqcn_gym.tuners.paraleon import Annealer, AnnealingSettings, ParaleonTuner


class Script:
    """A random stream whose draws are written down: (factor, direction) per knob."""

    def __init__(self, factors: Iterable[float], draws: Iterable[float]) -> None:
        self._factors, self._draws = list(factors), list(draws)

    def uniform(self, low: float, high: float) -> float:
        assert (low, high) == (0.5, 1.0)
        return self._factors.pop(0)

    def random(self) -> float:
        return self._draws.pop(0)

    @property
    def used_up(self) -> bool:
        return not self._factors and not self._draws


@dataclass(frozen=True)
class Scripted(TunerContext):
    script: Script | None = None

    def generator(self, stream: int = 0) -> np.random.Generator:
        return cast(np.random.Generator, self.script)


def fsd(elephants: float, mice: float, **more: Any) -> FlowSizeDistribution:
    return FlowSizeDistribution(weighted_elephants=elephants, weighted_mice=mice, **more)


def started(
    knobs: tuple[str, ...],
    script: Script,
    trigger: Literal["always", "kl"] = "always",
    base: Setting | None = None,
    **arguments: object,
) -> ParaleonTuner:
    # the ranges of the knob table, unless a test names others
    tuner = make_tuner("paraleon", {"ranges": "prototype", **arguments})
    base = default_setting() if base is None else base
    tuner.start(Scripted(KnobSpace(knobs), base, 0, 280, trigger=trigger, script=script))
    return cast(ParaleonTuner, tuner)


def asked(tuner: ParaleonTuner) -> Setting:
    setting = tuner.ask()
    assert isinstance(setting, Setting)
    return setting


def test_the_first_candidate_is_the_setting_in_force() -> None:
    tuner = started(("rp_ai_rate",), Script([], []))
    assert tuner.ask() == default_setting()


@pytest.mark.parametrize(("ranges", "slowest"), [("prototype", 1), ("later", 5)])
def test_one_mutation_by_hand(ranges: str, slowest: float) -> None:
    # elephants 60 %, so mu = 0.6 and the dominant direction favours throughput.
    # rp_time_reset 300 us, step 50, throughput is down: 50 * 0.8 = 40; 0.59 < 0.6 -> 260
    # rp_ai_rate 5 Mb/s, step 50, throughput is up: 50 * 0.5 = 25; 0.61 >= 0.6, the other way:
    #   -20, clipped to the least of the range: 1, or 5 in the later code
    # rp_gd 11, step 1: 0.7 rounds to 1; 0.1 < 0.6 -> 12
    # kmin 400 KB, step 100, up: 100 * 0.75; 0.2 < 0.6 -> 475
    # pmax 0.2, step 0.02, throughput is down: 0.02 * 1.0; 0.3 < 0.6 -> 0.18
    knobs = ("rp_time_reset", "rp_ai_rate", "rp_gd", "kmin", "pmax")
    script = Script([0.8, 0.5, 0.7, 0.75, 1.0], [0.59, 0.61, 0.1, 0.2, 0.3])
    tuner = started(knobs, script, ranges=ranges)
    tuner.tell(outcome(asked(tuner), 0.5, fsd(6, 4)))
    now = dict(asked(tuner))
    assert script.used_up
    assert [now[n] for n in knobs] == pytest.approx([260, slowest, 12, 475, 0.18])
    untouched = {n: v for n, v in default_setting().items() if n not in knobs}
    assert {n: now[n] for n in untouched} == untouched


def test_mice_turn_every_direction_round() -> None:
    script = Script([1.0, 1.0], [0.69, 0.71])
    tuner = started(("rp_time_reset", "kmin"), script)
    tuner.tell(outcome(asked(tuner), 0.5, fsd(3, 7)))
    now = dict(asked(tuner))
    assert now["rp_time_reset"] == 350  # guided: delay-friendly is up
    assert now["kmin"] == pytest.approx(500)  # against it: throughput-friendly is up


def test_eta_bounds_the_guided_direction() -> None:
    tuner = started(("kmin", "kmax"), Script([1.0, 1.0], [0.79, 0.81]))
    tuner.tell(outcome(asked(tuner), 0.5, fsd(99, 1)))  # mu = 0.99, eta = 0.8
    now = dict(asked(tuner))
    assert (now["kmin"], now["kmax"]) == (500, 1200)


def test_without_a_distribution_mu_is_one_half() -> None:
    tuner = started(("kmin", "kmax"), Script([1.0, 1.0], [0.49, 0.51]))
    tuner.tell(outcome(asked(tuner), 0.5, fsd(1, 99, known=False)))
    assert tuner.state()["mu"] == 0.5
    now = dict(asked(tuner))
    assert (now["kmin"], now["kmax"]) == (500, 1200)


def test_an_integer_moves_at_least_one_and_stays_whole() -> None:
    tuner = started(("rp_gd",), Script([0.5], [0.0]))
    tuner.tell(outcome(asked(tuner), 0.5, fsd(1, 0)))
    assert asked(tuner)["rp_gd"] == 12


def test_kmin_never_passes_kmax() -> None:
    base = default_setting().replace({"kmin": 900, "kmax": 950})
    tuner = started(("kmin", "kmax"), Script([1.0, 1.0], [0.0, 0.9]), base=base)
    tuner.tell(outcome(asked(tuner), 0.5, fsd(1, 0)))  # kmin up 100, kmax down 400
    now = dict(asked(tuner))
    assert now["kmin"] <= now["kmax"]


def test_a_knob_that_is_off_begins_where_it_acts_like() -> None:
    # first-CNP rate 0 = no change = line rate; one step down (10 % of 100 Gb/s) is 90 Gb/s
    tuner = started(("rp_rate_to_set_on_first_cnp",), Script([1.0], [0.0]))
    tuner.tell(outcome(asked(tuner), 0.5, fsd(0, 1)))
    assert asked(tuner)["rp_rate_to_set_on_first_cnp"] == 90_000


def test_a_step_cannot_land_on_off() -> None:
    base = default_setting().replace({"rp_rate_to_set_on_first_cnp": 10_000})
    tuner = started(("rp_rate_to_set_on_first_cnp",), Script([1.0], [0.0]), base=base)
    tuner.tell(outcome(asked(tuner), 0.5, fsd(0, 1)))
    assert asked(tuner)["rp_rate_to_set_on_first_cnp"] == 10_000


@pytest.mark.parametrize(("origin", "kmin"), [("current", 600), ("best", 500)])
def test_mutation_starts_from_the_current_or_the_best(origin: str, kmin: float) -> None:
    # 400 -> 500 (better, best) -> 600 (worse but accepted: exp(-0.1/90) > 0.5) -> next
    script = Script([1.0] * 3, [0.0, 0.0, 0.5, 0.0])
    tuner = started(("kmin",), script, mutate_from=origin)
    for utility in (0.5, 0.7):
        tuner.tell(outcome(asked(tuner), utility, fsd(1, 0)))
    tuner.tell(outcome(asked(tuner), 0.6, fsd(1, 0)))
    assert asked(tuner)["kmin"] == kmin + 100
    recommended = tuner.recommend()
    assert isinstance(recommended, Setting)
    assert recommended["kmin"] == 500


def test_acceptance_draws_only_for_worse_settings() -> None:
    draws = [0.9]
    annealer = Annealer(AnnealingSettings(temperature_scale=0.001), lambda: draws.pop())
    setting = default_setting()
    assert annealer.judge(setting, 0.5)  # better than -1: no draw
    assert annealer.judge(setting, 0.6)
    # T = 0.09: exp(-0.1/0.09) = 0.329 < 0.9
    assert not annealer.judge(setting, 0.5)
    assert annealer.current_utility == 0.6
    assert not draws


def test_equal_utility_draws_and_is_accepted() -> None:
    draws = [0.999999]
    annealer = Annealer(AnnealingSettings(), lambda: draws.pop())
    annealer.judge(default_setting(), 0.5)
    assert annealer.judge(default_setting(), 0.5)  # exp(0) = 1 > any draw
    assert not draws


def test_published_schedule_has_14_levels_of_20() -> None:
    annealer = Annealer(AnnealingSettings(), lambda: 0.0)
    rounds = 0
    while not annealer.finished:
        annealer.judge(default_setting(), 0.5)
        rounds += 1
    assert rounds == 14 * 20
    assert annealer.temperature == pytest.approx(90 * 0.85**14)


def test_published_temperatures_accept_almost_everything() -> None:
    annealer = Annealer(AnnealingSettings(), lambda: 0.99)
    annealer.judge(default_setting(), 0.6)
    assert annealer.judge(default_setting(), 0.5)
    rescaled = make_tuner("paraleon-rescaled").settings
    assert isinstance(rescaled, AnnealingSettings)
    last = rescaled.final_temperature * rescaled.temperature_scale
    assert math.exp(-0.1 / last) < 1e-3


def test_after_the_last_temperature_the_best_is_put_in_force() -> None:
    # 90 -> 9: one level of two rounds
    tuner = started(("kmin",), Script([1.0], [0.0, 0.0]), iterations=2, cooling=0.1)
    tuner.tell(outcome(asked(tuner), 0.8, fsd(1, 0)))
    assert asked(tuner)["kmin"] == 500
    tuner.tell(outcome(asked(tuner), 0.2, fsd(1, 0)))
    assert tuner.state()["finished"]
    assert asked(tuner) == default_setting()
    tuner.tell(outcome(asked(tuner), 0.1, fsd(1, 0)))
    assert asked(tuner) == tuner.recommend() == default_setting()


class TestTriggered:
    """Scenarios with ``trigger = "kl"``."""

    def test_nothing_is_proposed_before_data(self) -> None:
        tuner = started(("kmin",), Script([1.0], [0.0]), "kl")
        assert tuner.ask() is None
        tuner.tell(outcome(default_setting(), 0.5, fsd(1, 0)))
        assert asked(tuner)["kmin"] == 500

    def test_a_new_trigger_restarts_and_forgets(self) -> None:
        script = Script([1.0] * 3, [0.0] * 3)
        tuner = started(("kmin",), script, "kl", iterations=2)
        tuner.tell(outcome(default_setting(), 0.9, fsd(1, 0), triggered=True))
        assert tuner.state()["restarts"] == 0  # the first interval with data only starts it
        tuner.tell(outcome(asked(tuner), 0.95, fsd(1, 0)))
        assert tuner.state()["temperature"] == pytest.approx(90 * 0.85)
        in_force = asked(tuner)
        tuner.tell(outcome(in_force, 0.3, fsd(1, 0), triggered=True))
        assert tuner.state()["temperature"] == 90
        assert tuner.state()["best_utility"] == 0.3
        assert tuner.recommend() == in_force
        assert tuner.state()["restarts"] == 1

    def test_a_finished_annealing_waits_for_the_next_trigger(self) -> None:
        tuner = started(("kmin",), Script([1.0], [0.0]), "kl", iterations=1, cooling=0.1)
        tuner.tell(outcome(default_setting(), 0.9, fsd(1, 0)))
        assert tuner.state()["finished"]
        held = asked(tuner)
        tuner.tell(outcome(held, 0.1, fsd(1, 0)))
        assert asked(tuner) == held

    def test_always_ignores_triggers(self) -> None:
        tuner = started(("kmin",), Script([1.0] * 2, [0.0] * 2))
        tuner.tell(outcome(asked(tuner), 0.5, fsd(1, 0), triggered=True))
        tuner.tell(outcome(asked(tuner), 0.6, fsd(1, 0), triggered=True))
        assert tuner.state()["restarts"] == 0


class TestAblations:
    """Figure 12 of the paper: each optimisation off alone, and both."""

    def test_what_differs(self) -> None:
        settings = {
            name: make_tuner(name).settings.model_dump()
            for name in ("paraleon", "paraleon-unguided", "paraleon-unrelaxed", "naive-sa")
        }
        full = settings.pop("paraleon")
        off = {
            name: {key: value for key, value in values.items() if value != full[key]}
            for name, values in settings.items()
        }
        cold = {"final_temperature": 1.0, "cooling": 0.95}
        assert off == {
            "paraleon-unguided": {"guided": False},
            "paraleon-unrelaxed": cold,
            "naive-sa": {"guided": False, **cold},
        }

    def test_one_naive_mutation_by_hand(self) -> None:
        # gd in 10..13 and min_dec_fac in 10..100, both linear: 11 -> 11 + 0.75 * 2 = 12.5 -> 12
        # (rounded to even) with a draw below 0.5; 50 -> 50 - 0.25 * 40 = 40 with one above
        script = Script([], [0.75, 0.49, 0.25, 0.51])
        tuner = make_tuner("naive-sa", {"ranges": "prototype"})
        space = KnobSpace(("rp_gd", "rp_min_dec_fac"))
        tuner.start(Scripted(space, default_setting(), 0, 280, script=script))
        tuner.tell(outcome(default_setting(), 0.5, fsd(99, 1)))
        proposal = tuner.ask()
        assert isinstance(proposal, Setting)
        now = dict(proposal)
        assert script.used_up
        assert now["rp_gd"] == 12
        assert now["rp_min_dec_fac"] == 40

    def test_slow_cooling_has_88_levels(self) -> None:
        settings = make_tuner("naive-sa").settings
        assert isinstance(settings, AnnealingSettings)
        annealer = Annealer(settings, lambda: 0.0)
        rounds = 0
        while not annealer.finished:
            annealer.judge(default_setting(), 0.5)
            rounds += 1
        assert rounds == 88 * 20


@pytest.mark.parametrize(("elephants", "worth"), [(0.6, 0.29), (0.4, 0.35)])
def test_weights_that_follow_the_dominant_type(elephants: float, worth: float) -> None:
    """Terms 0.1, 0.3, 0.6: .5/.2/.3 of them while elephants dominate, .2/.5/.3 while mice do."""
    sizes = fsd(elephants, 1 - elephants)
    seen = replace(outcome(default_setting(), 0.9, sizes), terms=Terms(0.1, 0.3, 0.6))
    for weights, expected in (("dominant", worth), ("task", 0.9)):
        tuner = started(("rp_ai_rate",), Script([0.5], [0.5]), weights=weights)
        tuner.tell(seen)
        assert tuner.state()["best_utility"] == pytest.approx(expected)
