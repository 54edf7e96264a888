"""``evaluate --out``: logs of a policy whose numbers have changed are made again, always.

Between the change and the call that wants a log, other calls and interrupts may lie.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.comparison.study.evaluation import evaluation
from dcqcn_gym.comparison.study.plan import Study, produce
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs.campaign import Done
from dcqcn_gym.tuners.policy import FOLDER

BOTH = ("mini-fb-hadoop", "mini-llm-alltoall")


def plan(file: Path, seeds: int, scenarios: tuple[str, ...] = BOTH) -> Study:
    return evaluation([str(file)], scenarios, ["default"], seeds=seeds, intervals=3, backend="fake")


def logs(out: Path, name: str) -> dict[str, bytes]:
    found = {str(p.relative_to(out)): p.read_bytes() for p in out.glob(f"*/{name}/seed*.jsonl")}
    assert found
    return found


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return Path(shutil.copy(FOLDER / "ppo-mini.npz", tmp_path / "mine.npz"))


@pytest.fixture
def wanted(mine: Path, tmp_path: Path) -> dict[str, bytes]:
    """Leave PPO's logs in ``ev``, overwrite the policy by TD3's; return the logs of TD3 alone."""
    produce(plan(mine, 3), tmp_path / "ev", 1)
    shutil.copy(FOLDER / "td3-mini.npz", mine)
    produce(plan(mine, 3), tmp_path / "fresh", 1)
    return logs(tmp_path / "fresh", "mine")


@pytest.mark.parametrize(
    "between",
    [(1, BOTH), pytest.param((3, BOTH[:1]), marks=pytest.mark.slow)],
    ids=["seeds", "scenarios"],
)
def test_a_smaller_call_in_between_hides_no_stale_log(
    mine: Path, wanted: dict[str, bytes], tmp_path: Path, between: tuple[int, tuple[str, ...]]
) -> None:
    out = tmp_path / "ev"
    assert logs(out, "mine") != wanted
    beside = {path: path.stat().st_ino for path in out.glob("*/default/*.jsonl")}
    produce(plan(mine, *between), out, 1)
    produce(plan(mine, 3), out, 1)
    assert logs(out, "mine") == wanted
    assert beside == {path: path.stat().st_ino for path in beside}  # nothing else is made again


def test_an_interrupt_in_between_hides_no_stale_log(
    mine: Path, wanted: dict[str, bytes], tmp_path: Path
) -> None:
    def ctrl_c(_: Done[Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        produce(plan(mine, 2), tmp_path / "ev", 1, ctrl_c)
    produce(plan(mine, 3), tmp_path / "ev", 1)
    assert logs(tmp_path / "ev", "mine") == wanted


def test_the_same_policy_is_not_run_again(mine: Path, tmp_path: Path) -> None:
    produce(plan(mine, 2), tmp_path, 1)
    before = {path: path.stat().st_ino for path in tmp_path.glob("*/*/*.jsonl")}
    produce(plan(mine, 2), tmp_path, 1)
    assert before == {path: path.stat().st_ino for path in tmp_path.glob("*/*/*.jsonl")}


def test_seeds_that_a_training_may_have_seen_are_refused(mine: Path) -> None:
    fresh = evaluation([str(mine)], BOTH[:1], seed=2_146_483, seeds=648).every_seed
    assert fresh[-1] == 2**31 - 1
    with pytest.raises(ConfigError, match=r"seed = 2146483: .* from 2147483648 on they are those"):
        evaluation([str(mine)], BOTH[:1], seed=2_146_483, seeds=649)


def test_an_evaluation_of_no_scenario_is_refused(mine: Path) -> None:
    with pytest.raises(ConfigError, match=r"cases = .*at least 1"):
        evaluation([str(mine)], ())
