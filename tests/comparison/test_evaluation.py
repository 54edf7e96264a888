"""``evaluate``: a policy whose numbers have changed is another entry, which nothing hides."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dcqcn_gym.comparison.plan import Plan
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.extras.learn.evaluation import evaluation
from dcqcn_gym.tuners.policy import FOLDER
from made_study import produce

BOTH = ("mini-fb-hadoop", "mini-llm-alltoall")


def plan(file: Path, seeds: int, scenarios: tuple[str, ...] = BOTH) -> Plan:
    return evaluation([str(file)], scenarios, ["default"], seeds=seeds, intervals=3, backend="fake")


def logs(out: Path, name: str) -> dict[str, bytes]:
    found = {str(p.relative_to(out)): p.read_bytes() for p in out.glob(f"*/{name}/seed*.jsonl")}
    assert found
    return found


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return Path(shutil.copy(FOLDER / "ppo-mini.npz", tmp_path / "mine.npz"))


def test_logs_of_another_policy_never_count(mine: Path, tmp_path: Path) -> None:
    """Nor after a forced call that wanted fewer of them, which left the others where they were."""
    out = tmp_path / "out"
    produce(plan(mine, 2), out)
    before = logs(out, "mine")
    shutil.copy(FOLDER / "td3-mini.npz", mine)
    with pytest.raises(RunError, match=r"made with entry mine, code = .*--force to replace"):
        produce(plan(mine, 2), out)
    assert logs(out, "mine") == before
    produce(plan(mine, 1, BOTH[:1]), out, force=True)
    produce(plan(mine, 2), out)
    produce(plan(mine, 2), tmp_path / "alone")
    assert logs(out, "mine") == logs(tmp_path / "alone", "mine") != before


def test_the_same_policy_is_not_run_again(mine: Path, tmp_path: Path) -> None:
    produce(plan(mine, 2), tmp_path)
    before = {path: path.stat().st_ino for path in tmp_path.glob("*/*/*.jsonl")}
    produce(plan(mine, 2), tmp_path)
    assert before == {path: path.stat().st_ino for path in tmp_path.glob("*/*/*.jsonl")}


def test_seeds_that_a_training_may_have_seen_are_refused(mine: Path) -> None:
    held_out = evaluation([str(mine)], BOTH[:1], seed=2_146_483, seeds=648).every_seed
    assert held_out[-1] == 2**31 - 1
    with pytest.raises(ConfigError, match=r"seed = 2146483: .* from 2147483648 on they are those"):
        evaluation([str(mine)], BOTH[:1], seed=2_146_483, seeds=649)


def test_an_evaluation_of_no_scenario_is_refused(mine: Path) -> None:
    with pytest.raises(ConfigError, match=r"cases = .*at least 1"):
        evaluation([str(mine)], ())
