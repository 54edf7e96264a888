"""The vector interface: equal to single environments to the bit, in every autoreset mode."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.vector import DcqcnVectorEnv

N = 3
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


@pytest.fixture(params=["fake", "native"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "native":
        pytest.importorskip("dcqcn_gym._core")
    return str(request.param)


@pytest.fixture
def scenario() -> Scenario:
    short = {"monitor_interval_us": 100.0, "warmup_us": 200.0, "intervals": 3}
    return load_scenario("mini-fb-hadoop").model_copy(update=short)


def actions(steps: int) -> np.ndarray:
    rng = np.random.Generator(np.random.PCG64(1))
    return rng.uniform(-1, 1, (steps, N, 14)).astype(np.float32)


def rollout(env: Any, steps: int = 9) -> list[Any]:
    seen = [env.reset(seed=11)]
    seen += [env.step(a) for a in actions(steps)]
    env.close()
    return seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workers", [1, 3])
def test_equal_to_gymnasium_s_own_vectoriser(
    backend: str, scenario: Scenario, mode: AutoresetMode, workers: int
) -> None:
    own = DcqcnVectorEnv(N, scenario, backend, autoreset_mode=mode, max_workers=workers)
    makers = [lambda: DcqcnEnv(scenario, backend)] * N
    reference = rollout(SyncVectorEnv(makers, autoreset_mode=mode))
    assert len(reference) == 10
    for mine, theirs in zip(rollout(own), reference, strict=True):
        assert data_equivalence(mine, theirs, exact=True)


def test_equal_to_single_environments_over_autoreset(backend: str, scenario: Scenario) -> None:
    vector = DcqcnVectorEnv(N, scenario, backend, autoreset_mode="SameStep")
    vector.reset(seed=11)
    batches = [vector.step(a) for a in actions(7)]
    for i in range(N):
        env = DcqcnEnv(scenario, backend)
        env.reset(seed=11 + i)
        for step, action in enumerate(actions(7)[:, i]):
            observation, reward, terminated, truncated, info = env.step(action)
            batch = batches[step]
            assert reward == batch[1][i]
            assert (terminated, truncated) == (batch[2][i], batch[3][i])
            if truncated:
                assert np.array_equal(batch[4]["final_obs"][i], observation)
                assert batch[4]["final_info"]["report"][i] == info["report"]
                observation, info = env.reset()
            assert np.array_equal(batch[0][i], observation)
            assert batch[4]["report"][i] == info["report"]
    assert any(b[3].all() for b in batches)
    vector.close()


def test_next_step_ignores_the_action_after_the_end(scenario: Scenario) -> None:
    vector = DcqcnVectorEnv(N, scenario, "fake")
    vector.reset(seed=0)
    steps = [vector.step(a) for a in actions(4)]
    assert steps[2][3].all()
    assert not steps[3][1].any()
    assert not steps[3][3].any()
    assert (steps[3][4]["interval"] == 0).all()


def test_disabled_needs_a_reset_mask(scenario: Scenario) -> None:
    vector = DcqcnVectorEnv(N, scenario, "fake", autoreset_mode=AutoresetMode.DISABLED)
    vector.reset(seed=0)
    for action in actions(3):
        last = vector.step(action)
    with pytest.raises(ConfigError, match="reset_mask"):
        vector.step(actions(1)[0])
    mask = np.array([True, True, True])
    observations, infos = vector.reset(options={"reset_mask": mask})
    assert not np.array_equal(observations, last[0])
    assert infos["_seed"].all()


def test_a_reset_mask_resets_only_those(scenario: Scenario) -> None:
    vector = DcqcnVectorEnv(N, scenario, "fake")
    vector.reset(seed=0)
    before = vector.step(actions(1)[0])[0]
    after, infos = vector.reset(seed=5, options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(after[[0, 2]], before[[0, 2]])
    assert infos["seed"][1] == 6
    with pytest.raises(ConfigError, match="at least one True"):
        vector.reset(options={"reset_mask": np.zeros(N, dtype=bool)})


def test_unseeded_copies_see_different_traffic(scenario: Scenario) -> None:
    vector = DcqcnVectorEnv(N, scenario, "fake")
    assert vector.reset()[1]["seed"].tolist() == [0, 1, 2]
    assert vector.reset()[1]["seed"].tolist() != [0, 1, 2]
    assert vector.reset(seed=[7, None, 9])[1]["seed"][[0, 2]].tolist() == [7, 9]


def test_copies_that_are_reset_apart_see_different_traffic_too(scenario: Scenario) -> None:
    vector = DcqcnVectorEnv(N, scenario, "fake")
    for i in range(N):
        mask = np.arange(N) == i
        assert vector.reset(options={"reset_mask": mask})[1]["seed"][i] == i
    assert vector.reset()[1]["seed"].tolist() != [0, 1, 2]
    assert DcqcnVectorEnv(N, scenario, "fake").reset(seed=[7, None, 9])[1]["seed"][1] == 1


def test_make_vec_takes_this_face_and_passes_on_its_arguments() -> None:
    vector = gymnasium.make_vec(
        "dcqcn_gym:dcqcn/MiniFBHadoop-v0", num_envs=2, backend="fake", autoreset_mode="SameStep"
    )
    assert isinstance(vector, DcqcnVectorEnv)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = vector.reset(seed=0)
    assert vector.observation_space.contains(observations)
    assert vector.call("space") == vector.get_attr("space")
    vector.set_attr("intervals", 1)
    assert vector.step(vector.action_space.sample())[3].all()
    vector.close()
    vector.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasium_s_vectorisers_agree(mode: str) -> None:
    def first(vectorization_mode: str | None) -> Any:
        vector = gymnasium.make_vec(
            "dcqcn_gym:dcqcn/MiniFBHadoop-v0",
            num_envs=2,
            backend="fake",
            vectorization_mode=vectorization_mode,
        )
        observations, _ = vector.reset(seed=3)
        result = vector.step(np.zeros((2, 14), np.float32))
        vector.close()
        return observations, *result[:4]

    assert data_equivalence(first(mode), first(None), exact=True)


def test_a_bad_action_moves_no_copy(scenario: Scenario) -> None:
    good = actions(1)[0]
    vector, other = (DcqcnVectorEnv(N, scenario, "fake") for _ in range(2))
    vector.reset(seed=0)
    other.reset(seed=0)
    bad = good.copy()
    bad[1, 0] = np.nan
    with pytest.raises(ConfigError, match=r"action\[0\]"):
        vector.step(bad)
    assert data_equivalence(vector.step(good), other.step(good), exact=True)


def test_an_error_inside_a_copy_is_raised_after_all_have_stopped(scenario: Scenario) -> None:
    vector = DcqcnVectorEnv(N, scenario, "fake", intervals=2)
    with pytest.raises(StateError, match="reset"):
        vector.step(actions(1)[0])
    vector.reset(seed=0)
    vector.step(actions(1)[0])


def test_bad_arguments_are_one_clear_sentence(scenario: Scenario) -> None:
    with pytest.raises(ConfigError, match="num_envs"):
        DcqcnVectorEnv(0, scenario, "fake")
    with pytest.raises(ConfigError, match="name"):
        DcqcnVectorEnv(1, scenario, object())  # type: ignore[arg-type]
    vector = DcqcnVectorEnv(N, scenario, "fake")
    vector.reset(seed=0)
    with pytest.raises(ConfigError, match="shape"):
        vector.step(np.zeros((2, 14), np.float32))
    with pytest.raises(ConfigError, match="seeds"):
        vector.reset(seed=[1])
    for wrong in (1.5, [1.5, 2, 3]):
        with pytest.raises(ConfigError, match=r"seed = .*: expected a whole number, or one"):
            vector.reset(seed=wrong)  # type: ignore[arg-type]
