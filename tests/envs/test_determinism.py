"""Same seed, same bytes: across processes, threads and orders of construction."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest

import dcqcn_gym
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names
from dcqcn_gym.testing.env_case import rollout_hash

pytest.importorskip("dcqcn_gym._core")

PROGRAM = """
import sys
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.testing.env_case import rollout_hash
for name in sys.argv[1:]:
    short = {"warmup_us": 200.0, "monitor_interval_us": 100.0}
    env = DcqcnEnv(load_scenario(name).model_copy(update=short), intervals=4)
    print(rollout_hash(env, 21, 6))
"""

MINIS = [n for n in scenario_names() if n.startswith("mini-")]
SHORT = {"warmup_us": 200.0, "monitor_interval_us": 100.0}


def short_env(name: str, **arguments: Any) -> DcqcnEnv:
    return DcqcnEnv(load_scenario(name).model_copy(update=SHORT), **arguments)


def test_across_processes() -> None:
    """Strings have other hashes there, so sets have another order."""
    words, other = [sys.executable, "-c", PROGRAM, *MINIS], {"PYTHONHASHSEED": "1"}
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=other)
    here = [rollout_hash(short_env(name, intervals=4), 21, 6) for name in MINIS]
    assert done.stdout.split() == here


@pytest.mark.parametrize("name", [*MINIS, "job-moe-64"])
def test_across_threads(name: str) -> None:
    def one(seed: int) -> str:
        return rollout_hash(short_env(name), seed, 2)

    alone = [one(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(one, (1, 2))) == alone


def test_other_environments_in_the_process_change_nothing() -> None:
    alone = rollout_hash(short_env("mini-llm-alltoall"), 5, 4)
    others = [short_env(n) for n in MINIS for _ in range(2)]
    env = short_env("mini-llm-alltoall")
    for i, other in enumerate(others):
        other.reset(seed=i)
        other.step(np.zeros(14))
    np.random.seed(1)  # the process-wide generator is none of ours
    assert rollout_hash(env, 5, 4) == alone


def test_made_by_gymnasium_or_by_hand() -> None:
    scenario = load_scenario("mini-fb-hadoop").model_copy(update=SHORT)
    made = gymnasium.make(dcqcn_gym.env_id("mini-fb-hadoop"), scenario=scenario)
    assert rollout_hash(made, 5, 3) == rollout_hash(short_env("mini-fb-hadoop"), 5, 3)
