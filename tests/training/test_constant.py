"""A policy is held against its own mean action, and one that is no better is not shipped."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.commands.train import _refuse_a_constant
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.training import constant, shipped
from dcqcn_gym.training.constant import against_constant, held_out, refusal
from dcqcn_gym.training.spec import TrainDir


def test_a_shipped_sac_policy_is_a_constant_and_a_dqn_one_moves() -> None:
    on = held_out()[:2]
    gain, spread = against_constant("sac-elastic-3", on, (1,), 8)
    assert spread < 0.02
    assert abs(gain.mean) < 0.05
    assert against_constant("dqn-elastic-1", on, (1,), 8)[1] > 2 * spread


def test_a_policy_that_is_a_constant_is_refused_by_train_and_evaluate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suite = CONFIGS / "suites" / "dev-v1"
    files = sorted(str(path) for path in suite.glob("0[1-4]-*.toml"))  # none learned on
    words = ["evaluate", "sac-elastic-3", "--seeds", "1", "--intervals", "4", "--beside", ""]
    few = CliRunner().invoke(app, [*words, "--jobs", "1", "--scenario", files[0]])
    assert few.exit_code == 0, few.output
    done = CliRunner().invoke(app, [*words, "--jobs", "1", "--scenario", ",".join(files)])
    assert isinstance(done.exception, RunError)
    assert "sac-elastic-3 is not to be shipped: its S over its own best" in str(done.exception)
    monkeypatch.setattr(constant, "INTERVALS", 4)
    with pytest.raises(RunError, match="is not to be shipped"):
        _refuse_a_constant(CONFIGS / "policies" / "sac-elastic-3.npz")


def test_one_that_is_better_is_not_refused() -> None:
    assert not refusal("a policy", estimate((0.2, 0.3, 0.25)))
    assert refusal("a policy", estimate((0.2,)))


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
