"""A policy is held against its own best constant, and one that is no better is refused."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.extras.learn import constant
from dcqcn_gym.extras.learn.commands import _refuse_a_constant
from dcqcn_gym.extras.learn.constant import against_constant, held_out, refusal


def test_a_shipped_sac_policy_is_a_constant_and_a_dqn_one_moves() -> None:
    on = held_out()[:2]
    gain, spread = against_constant("sac-elastic-1", on, (1,), 8)
    assert spread < 0.02
    assert abs(gain.mean) < 0.05
    assert against_constant("dqn-elastic-1", on, (1,), 8)[1] > 2 * spread


def test_a_policy_that_is_a_constant_is_refused_by_train_and_evaluate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suite = CONFIGS / "suites" / "dev-v1"
    files = sorted(str(path) for path in suite.glob("0[1-4]-*.toml"))  # none learned on
    words = ["evaluate", "sac-elastic-1", "--seeds", "1", "--intervals", "4", "--beside", ""]
    few = CliRunner().invoke(app, [*words, "--jobs", "1", "--scenario", files[0]])
    assert few.exit_code == 0, few.output
    done = CliRunner().invoke(app, [*words, "--jobs", "1", "--scenario", ",".join(files)])
    assert isinstance(done.exception, RunError)
    assert "sac-elastic-1 is not to be shipped: its S over its own best" in str(done.exception)
    monkeypatch.setattr(constant, "INTERVALS", 4)
    with pytest.raises(RunError, match="is not to be shipped"):
        _refuse_a_constant(CONFIGS / "policies" / "sac-elastic-1.npz")


def test_one_that_is_better_is_not_refused() -> None:
    assert not refusal("a policy", estimate((0.2, 0.3, 0.25)))
    assert refusal("a policy", estimate((0.2,)))
