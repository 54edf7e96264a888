"""CHAMELEON's greedy rule against steps worked out by hand."""

from __future__ import annotations

from typing import Literal, cast

import pytest
from outcomes import outcome

from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.tuners import TunerContext, make_tuner
from dcqcn_gym.tuners.chameleon import ChameleonTuner

FSD = FlowSizeDistribution()


def started(
    knobs: tuple[str, ...],
    trigger: Literal["always", "kl"] = "always",
    name: str = "chameleon",
    base: Setting | None = None,
    **arguments: object,
) -> ChameleonTuner:
    tuner = make_tuner(name, arguments)
    tuner.start(TunerContext(KnobSpace(knobs), base or default_setting(), 0, 280, trigger=trigger))
    return cast(ChameleonTuner, tuner)


def step(tuner: ChameleonTuner, utility: float, triggered: bool = False) -> dict[str, float]:
    """Tell one utility; return the next proposal in NVIDIA's units."""
    asked = tuner.ask()
    tuner.tell(outcome(asked or default_setting(), utility, FSD, triggered))
    proposal = tuner.ask()
    assert proposal is not None
    return dict(proposal)


def test_two_parameters_by_hand() -> None:
    # rp_ai_rate: 5 Mb/s, table step 50, throughput is up, range 1..500, whole numbers
    tuner = started(("rp_ai_rate", "kmin"))
    assert tuner.ask() == default_setting()  # m_0
    assert step(tuner, 0.500)["rp_ai_rate"] == 55  # 5 + 50; s = 47.5
    assert step(tuner, 0.510)["rp_ai_rate"] == 103  # gain 2 %: 55 + 48; s = 45.125
    assert step(tuner, 0.500)["rp_ai_rate"] == 58  # loss: 103 - 45; s = 42.87
    assert step(tuner, 0.502)["rp_ai_rate"] == 15  # 0.4 %, first small gain: 58 - 43; s = 40.73
    assert step(tuner, 0.502)["rp_ai_rate"] == 1  # 0, second: 15 - 41, clipped; s = 38.69
    now = step(tuner, 0.503)  # 0.2 %, third: next parameter; kmin 400 KB, table step 100, up
    assert now["rp_ai_rate"] == 1
    assert now["kmin"] == pytest.approx(500)  # s = 95
    assert step(tuner, 0.550)["kmin"] == pytest.approx(595)  # 9 %: on; s = 90.25
    assert step(tuner, 0.500)["kmin"] == pytest.approx(504.75)  # loss: back; s = 85.7375
    for utility in (0.501, 0.502, 0.503):  # three small gains, all traversed
        assert not tuner.finished
        last = step(tuner, utility)
    assert tuner.finished
    assert not tuner.tuning
    # two more moves down were made before the third small gain: 504.75 - 85.7375 - 81.450625
    assert last["kmin"] == pytest.approx(504.75 - 85.7375 - 81.450625)
    assert step(tuner, 0.1) == last  # nothing moves any more
    assert dict(tuner.recommend()) == last


def test_the_demand_is_the_other_end() -> None:
    # the numbers of the case above: the search is over where 0.510 is measured, at 55 Mb/s
    tuner = started(("rp_ai_rate", "kmin"), demand=0.51)
    assert step(tuner, 0.500)["rp_ai_rate"] == 55
    assert tuner.tuning
    assert step(tuner, 0.510)["rp_ai_rate"] == 55
    assert tuner.finished
    assert not tuner.tuning
    assert tuner.state()["parameter"] == "demand met"
    assert step(tuner, 0.1)["rp_ai_rate"] == 55  # it is over, whatever comes
    assert tuner.recommend()["rp_ai_rate"] == 55


def test_changed_traffic_asks_for_the_demand_again() -> None:
    tuner = started(("kmin",), "kl", demand=0.5)
    step(tuner, 0.9)
    assert tuner.finished
    step(tuner, 0.4, triggered=True)
    assert not tuner.finished


def test_a_gain_of_exactly_beta_keeps_going() -> None:
    tuner = started(("kmin",), beta=0.25, patience=1)
    step(tuner, 0.5)
    step(tuner, 0.625)  # 0.125 / 0.5 = 0.25
    assert not tuner.finished
    step(tuner, 0.75)  # 0.125 / 0.625 = 0.2
    assert tuner.finished


def test_the_end_of_the_range_turns_round() -> None:
    base = default_setting().replace({"rp_gd": 13})
    tuner = started(("rp_gd",), base=base)
    assert step(tuner, 0.5)["rp_gd"] == 12  # 13 is the end; up is not possible


def test_a_threshold_takes_the_other_along() -> None:
    base = default_setting().replace({"kmin": 390, "kmax": 400})
    tuner = started(("kmin", "kmax"), base=base)
    now = step(tuner, 0.5)
    assert [now["kmin"], now["kmax"]] == pytest.approx([490, 490])


def test_a_threshold_takes_the_other_along_within_its_range() -> None:
    tuner = make_tuner("chameleon")
    space = KnobSpace(("kmax", "kmin"), ranges={"kmin": (300, 400), "kmax": (100, 900)})
    base = default_setting().replace({"kmin": 350, "kmax": 500})
    tuner.start(TunerContext(space, base, 0, 280))
    steps = [step(cast(ChameleonTuner, tuner), utility) for utility in (0.5, 0.4, 0.5)]
    # kmax goes up to 900, is worse there, and comes back by 380, then by 361
    assert [now["kmax"] for now in steps] == pytest.approx([900, 520, 300])
    assert [now["kmin"] for now in steps] == pytest.approx([350, 350, 300])


def test_other_knobs_stay_where_they_are() -> None:
    tuner = started(("rp_ai_rate", "rp_rate_to_set_on_first_cnp"))
    now = step(tuner, 0.5)
    assert now["rp_rate_to_set_on_first_cnp"] == 0  # off, until its turn comes


def test_the_slow_row_moves_once_per_hundred_outcomes() -> None:
    tuner = started(("kmin",), name="chameleon-100")
    for _ in range(99):
        assert step(tuner, 0.5)["kmin"] == pytest.approx(400)
    assert step(tuner, 0.5)["kmin"] == pytest.approx(500)
    for i in range(99):  # mean of 0.4 and 0.7: a gain of 10 %
        step(tuner, 0.4 if i % 2 else 0.7)
    assert step(tuner, 0.4)["kmin"] == pytest.approx(595)


def test_a_trigger_starts_the_traversal_again() -> None:
    tuner = started(("kmin",), "kl", patience=1)
    assert tuner.ask() is None
    assert not tuner.tuning
    assert step(tuner, 0.5)["kmin"] == pytest.approx(500)
    assert tuner.tuning
    held = step(tuner, 0.501)
    assert tuner.finished
    assert step(tuner, 0.3) == held
    now = step(tuner, 0.3, triggered=True)
    assert not tuner.finished
    assert now["kmin"] == pytest.approx(held["kmin"] + 100)  # the first step again
