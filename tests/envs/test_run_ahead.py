"""Networks that run in one call of the engine do what each does in its own steps."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.envs.backends.native import NativeBackend, run_ahead
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.vector import DcqcnVectorEnv

SCENARIO = "mini-fb-hadoop"


def actions(n: int, size: int) -> Any:
    return np.random.default_rng(5).uniform(-1, 1, (n, size)).astype(np.float32)


def alone(seed: int, n: int) -> list[tuple[bytes, float, int]]:
    env = DcqcnEnv(SCENARIO, NativeBackend(), intervals=n)
    env.reset(seed=seed)
    steps = [env.step(action) for action in actions(n, env.space.n)]
    return [(o.tobytes(), r, i["dispatch_bytes"]) for o, r, _, _, i in steps]


def test_steps_are_those_of_one_environment_after_the_other() -> None:
    n, seeds = 4, (1, 2, 3)
    envs = [DcqcnEnv(SCENARIO, "native", intervals=n) for _ in seeds]
    found: dict[int, list[Any]] = {seed: [] for seed in seeds}
    for env, seed in zip(envs, seeds, strict=True):
        env.reset(seed=seed)
    for action in actions(n, envs[0].space.n):
        run_ahead([env.begin(action) for env in envs], threads=2)
        for env, seed in zip(envs, seeds, strict=True):
            o, r, _, _, i = env.step(action)
            found[seed].append((o.tobytes(), r, i["dispatch_bytes"]))
    assert found == {seed: alone(seed, n) for seed in seeds}


def test_a_step_that_is_begun_anew_has_the_last_action() -> None:
    env = DcqcnEnv(SCENARIO, "native", intervals=3)
    env.reset(seed=1)
    for action in actions(3, env.space.n):
        env.begin(-action)  # and then another environment's action was refused
        run_ahead([env.begin(action)])
        info = env.step(action)[4]
        assert info["setting"] == env.space.setting(action, env.initial_setting)
    again = actions(3, env.space.n)[0]
    env.reset(seed=1)
    env.begin(again)
    run_ahead([env.begin(again)])
    assert env.step(again)[4]["dispatch_bytes"] > 0  # a change, though the second begin made none


def test_a_second_call_runs_only_who_is_not_there() -> None:
    envs = {seed: DcqcnEnv(SCENARIO, "native", intervals=2) for seed in (1, 2)}
    for seed, env in envs.items():
        env.reset(seed=seed)
    found: dict[int, list[Any]] = {seed: [] for seed in envs}
    for action in actions(2, envs[1].space.n):
        run_ahead([envs[1].begin(action)])  # and then Ctrl-C, before the other one had its turn
        run_ahead([env.begin(action) for env in envs.values()])
        for seed, env in envs.items():
            o, r, _, _, i = env.step(action)
            found[seed].append((o.tobytes(), r, i["dispatch_bytes"]))
    assert found == {seed: alone(seed, 2) for seed in envs}


def test_what_ran_ahead_is_copied_after_its_step_only() -> None:
    env = DcqcnEnv(SCENARIO, "native", intervals=2)
    env.reset(seed=1)
    action = actions(1, env.space.n)[0]
    run_ahead([env.begin(action)])
    with pytest.raises(ConfigError, match="after advance"):
        pickle.dumps(env)
    env.step(action)
    assert (
        pickle.loads(pickle.dumps(env)).step(action)[0].tobytes() == env.step(action)[0].tobytes()
    )


def test_reports_count_the_ports_of_every_node() -> None:
    env = DcqcnEnv(SCENARIO, "native", intervals=3)
    env.reset(seed=1)
    for _ in range(3):
        report = env.run_interval(env.setting).report
        assert report.node_ports.tolist() == np.bincount(report.port_node).tolist()


def test_a_bare_step_is_a_step() -> None:
    envs = [DcqcnEnv(SCENARIO, "native", intervals=3) for _ in range(2)]
    for env in envs:
        env.reset(seed=1)
    for action in actions(3, envs[0].space.n):
        whole, bare = envs[0].step(action), envs[1].bare_step(action)
        assert whole[0].tobytes() == bare.observation.tobytes()
        assert whole[1:4] == (bare.reward, bare.terminated, bare.truncated)
        assert (whole[4]["utility"], whole[4]["idle"]) == (bare.utility, bare.idle)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_vector_whose_networks_run_ahead_is_one_whose_do_not(mode: str) -> None:
    vectors = [DcqcnVectorEnv(2, SCENARIO, intervals=2, autoreset_mode=mode) for _ in range(2)]
    for env in vectors[1].envs:
        env.begin = lambda action: None  # type: ignore[method-assign]
    for vector in vectors:
        vector.reset(seed=3)
    for action in actions(5, 14):
        found = [vector.step(np.stack([action, -action])) for vector in vectors]
        for one, other in zip(found[0][:4], found[1][:4], strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
        assert found[0][4].keys() == found[1][4].keys()
    for vector in vectors:
        vector.close()


def test_what_cannot_run_ahead_says_so() -> None:
    env = DcqcnEnv(SCENARIO, "fake", intervals=2)
    env.reset(seed=1)
    assert env.begin(np.zeros(env.space.n)) is None
    slow = DcqcnEnv(load_scenario(SCENARIO).model_copy(update={"cadence": 2}), "native")
    slow.reset(seed=1)
    assert slow.begin(np.zeros(slow.space.n)) is None
    over = DcqcnEnv(SCENARIO, "native", intervals=1)
    over.reset(seed=1)
    over.step(np.zeros(over.space.n))
    with pytest.raises(StateError, match="reset"):
        over.begin(np.zeros(over.space.n))
