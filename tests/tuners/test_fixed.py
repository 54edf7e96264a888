"""Tuners that do not search, random search, and the guard around all of them."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest

from dcqcn_gym.core.errors import ConfigError, StateError, TunerError
from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.tuners import Tuner, TunerContext, make_tuner
from dcqcn_gym.tuners.base import Proposal
from dcqcn_gym.tuners.guard import GuardedTuner
from toy_tables import OTHER_SCHEME

RATE = load_scenario("mini-fb-hadoop").line_rate_bps


def context(base: Setting | None = None) -> TunerContext:
    return TunerContext(KnobSpace(line_rate_bps=RATE), base or default_setting(RATE), 1, 10)


@pytest.mark.parametrize(
    ("name", "setting"), [("default", default_setting(RATE)), ("expert", expert_setting(RATE))]
)
def test_fixed_rows(name: str, setting: Setting) -> None:
    tuner = make_tuner(name)
    tuner.start(context(expert_setting(RATE)))
    assert tuner.ask() == setting
    assert tuner.ask() is None
    assert tuner.recommend() == setting


def test_the_experts_setting_in_proportion_to_the_line_rate() -> None:
    tuner = make_tuner("expert-scaled")
    tuner.start(context())
    assert RATE == 25e9
    assert tuner.recommend() == expert_setting(RATE).replace(
        {"rp_ai_rate": 3.125, "rp_hai_rate": 9.375, "kmin": 100, "kmax": 400}
    )


def test_do_nothing_keeps_what_is_there() -> None:
    tuner = make_tuner("do-nothing")
    tuner.start(context(expert_setting(RATE)))
    assert tuner.ask() is None
    assert tuner.recommend() == expert_setting(RATE)


def test_fixed_takes_knobs_in_nvidia_units() -> None:
    tuner = make_tuner("fixed", {"rp_ai_rate": "50", "kmin": "200"})
    tuner.start(context())
    assert tuner.recommend() == default_setting(RATE).replace({"rp_ai_rate": 50, "kmin": 200})


def test_fixed_refuses_an_illegal_setting() -> None:
    tuner = make_tuner("fixed", {"kmin": "9000"})
    with pytest.raises(ConfigError, match="kmin"):
        tuner.start(context())


def test_random_draws_differ_and_repeat() -> None:
    draws: list[list[Proposal | None]] = []
    for _ in range(2):
        tuner = make_tuner("random")
        tuner.start(context())
        draws.append([tuner.ask() for _ in range(5)])
    assert draws[0] == draws[1]
    assert len({s.numbers for s in draws[0] if isinstance(s, Setting)}) == 5


class Bad(Tuner):
    name = "bad"
    summary = "returns what it is told to"
    answer: ClassVar[object] = None

    def ask(self) -> Proposal | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


def guarded(answer: object) -> GuardedTuner:
    guard = GuardedTuner("bad", type("Now", (Bad,), {"answer": answer})())
    guard.start(context())
    return guard


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (default_setting().replace({"rp_ai_rate": math.nan}), "rp_ai_rate = nan"),
        (default_setting().replace({"pmax": 1.5}), "pmax = 1.5 .*expected 0 to 1"),
        (default_setting().replace({"kmin": 900, "kmax": 100}), "larger than"),
        ({"rp_ai_rate": 5.0}, r"ask\(\) returned dict"),
        ({"cluster": {"rp_ai_rate": 5.0}}, r"ask\(\) returned dict"),
        ({"cluster": default_setting().replace({"pmax": -1})}, "group 'cluster'.*pmax"),
        (default_setting(table=OTHER_SCHEME), r"a setting of scheme 'toy' .*scheme 'dcqcn'"),
        (7, r"ask\(\) returned int"),
        (ZeroDivisionError("oops"), r"failed in ask\(\): ZeroDivisionError: oops"),
    ],
)
def test_guard_names_the_tuner_and_what_is_wrong(answer: object, says: str) -> None:
    with pytest.raises(TunerError, match=f"tuner 'bad'.*{says}"):
        guarded(answer).ask()


def test_guard_keeps_the_order_of_calls() -> None:
    guard = GuardedTuner("bad", Bad())
    with pytest.raises(StateError, match=r"call start\(\)"):
        guard.ask()
    guard.start(context())
    guard.ask()
    with pytest.raises(StateError, match=r"call tell\(\)"):
        guard.ask()


def test_a_group_proposal_passes() -> None:
    answer = {"cluster": default_setting(), "tor": expert_setting()}
    assert guarded(answer).ask() == answer


def test_needs_that_cannot_be_met() -> None:
    needy = type("Needy", (Bad,), {"needs": frozenset({"reset"})})
    with pytest.raises(ConfigError, match="same traffic again"):
        GuardedTuner("needy", needy()).start(context(), frozenset({"fsd"}))


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("paraleon", {"iteration": "5"}, "iteration.*did you mean 'iterations'"),
        ("paraleon", {"iterations": "five"}, "iterations = 'five'.*integer"),
        ("paraleon", {"eta": "1.5"}, "eta.*less than or equal to 1"),
        ("paraleon", {"eta": "nan"}, "eta.*finite"),
        ("paraleon", {"mutate_from": "bset"}, "mutate_from.*did you mean 'best'"),
        ("paraleon", {"final_temperature": "95"}, "must be below"),
        ("random", {"n": "1"}, "takes no arguments"),
        ("fixed", {"rp_ai": "1"}, "did you mean 'rp_ai_rate'"),
        ("paraleno", {}, "did you mean 'paraleon'"),
    ],
)
def test_bad_arguments(name: str, arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_tuner(name, arguments)
