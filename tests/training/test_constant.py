"""A policy is held against its own mean action, and one that is no better is not shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.training import shipped
from dcqcn_gym.training.constant import against_constant, held_out
from dcqcn_gym.training.spec import TrainDir


def test_a_shipped_sac_policy_is_a_constant_and_a_dqn_one_moves() -> None:
    on = held_out()[:2]
    gain, spread = against_constant("sac-elastic-3", on, (1,), 8)
    assert spread < 0.02
    assert abs(gain.mean) < 0.05
    assert against_constant("dqn-elastic-1", on, (1,), 8)[1] > 2 * spread


@pytest.mark.parametrize(("gains", "there"), [((0.2, 0.3, 0.25), True), ((-0.1, 0.1, 0.0), False)])
def test_only_what_is_better_than_its_constant_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gains: tuple[float, ...], there: bool
) -> None:
    def measured(_: str, on: list[Scenario]) -> tuple[Estimate, float]:
        assert len(on) > 1
        return estimate(gains), 0.1

    def trained(_: object, place: TrainDir, *__: object, **___: object) -> object:
        place.policy.parent.mkdir(parents=True)
        place.policy.write_bytes(b"policy")
        place.timing.write_text('{"cpu_s": 1.0}')
        return type("Result", (), {"interrupted": False})

    monkeypatch.setattr(shipped, "against_constant", measured)
    monkeypatch.setattr(shipped, "train", trained)
    monkeypatch.setattr(shipped, "ALGORITHMS", {"ppo": None})
    to = tmp_path / "policies"
    to.mkdir()
    words = [str(tmp_path / "out"), "--policies", str(to), "--seeds", "1"]
    assert shipped.main(words) == 0
    assert (to / "ppo-elastic-1.npz").exists() is there
