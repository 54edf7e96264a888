"""Environments are pickled and copied in mid-episode, and go on with the same bytes."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import schemes
from dcqcn_gym.envs.backends.report_dict import report_to_dict
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.monitor import monitor_kinds
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.wrappers import DeltaAction, DictObservation, LadderAction

STEPS = 4
BASES = ("mini-fb-hadoop", "mini-llm-alltoall", "mini-storm")
CASES = [
    (base, scheme, monitor) for base in BASES for scheme in schemes() for monitor in monitor_kinds()
]


def _scenario(base: str, scheme: str, monitor: str) -> Scenario:
    return load_scenario(base).model_copy(
        update={"scheme": {"name": scheme}, "monitor": {"kind": monitor}}
    )


def _played(env: Any, actions: Any) -> list[Any]:
    """Return what steps give, every array as bytes."""
    seen = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((observation.tobytes(), reward, terminated, truncated, _all_of(info["report"])))
        if terminated or truncated:
            seen.append(env.reset()[0].tobytes())
    return seen


def _all_of(report: IntervalReport) -> str:
    return json.dumps(report_to_dict(report))


def _cut(number: int) -> None:
    """Cut one random episode at a random step; the original, a copy and a pickle go on.

    They go on into a second episode. Cases follow each other.
    """
    draws = np.random.default_rng(number)
    scenario = _scenario(*CASES[number % len(CASES)])
    env = DcqcnEnv(scenario, intervals=STEPS)
    env.reset(seed=int(draws.integers(2**31)))
    actions = draws.uniform(-1, 1, (STEPS + 1, env.space.n)).astype(np.float32)
    at = int(draws.integers(STEPS))
    _played(env, actions[:at])
    frozen = pickle.dumps(env)
    twin = copy.deepcopy(env)
    first = _played(env, actions[at:])
    assert _played(twin, actions[at:]) == first
    assert _played(pickle.loads(frozen), actions[at:]) == first


@pytest.mark.parametrize("number", range(0, len(CASES), 13))
def test_a_cut_environment_goes_on_with_the_same_bytes(number: int) -> None:
    _cut(number)


@pytest.mark.slow
def test_every_scheme_with_every_monitor_goes_on_with_the_same_bytes() -> None:
    """Each pair on one of the three scenarios, in turns."""
    pairs = len(CASES) // len(BASES)
    for pair in range(pairs):
        _cut(pairs * (pair % len(BASES)) + pair + 10 * len(CASES))


@pytest.mark.parametrize("wrap", [LadderAction, DeltaAction, DictObservation])
def test_wrapped_environments_do_so_too(wrap: Any) -> None:
    env = wrap(gymnasium.make("dcqcn_gym:dcqcn/MiniStorm-v0", intervals=5))
    env.reset(seed=3)
    env.action_space.seed(3)
    actions = [env.action_space.sample() for _ in range(4)]
    env.step(actions[0])
    frozen, twin = pickle.dumps(env), copy.deepcopy(env)
    first = [repr(env.step(action)[:4]) for action in actions[1:]]
    for other in (twin, pickle.loads(frozen)):
        assert [repr(other.step(action)[:4]) for action in actions[1:]] == first


@pytest.mark.parametrize("backend", ["fake", "native", "native-devices"])
def test_every_backend_of_this_process_can_be_copied(backend: str) -> None:
    env = DcqcnEnv("mini-storm", backend, intervals=4)
    env.reset(seed=1)
    actions = np.linspace(-1, 1, 4 * env.space.n, dtype=np.float32).reshape(4, -1)
    _played(env, actions[:1])
    frozen, twin = pickle.dumps(env), copy.deepcopy(env)
    first = _played(env, actions[1:])
    assert _played(twin, actions[1:]) == first
    assert _played(pickle.loads(frozen), actions[1:]) == first


def test_a_copy_is_another_network() -> None:
    env = DcqcnEnv("mini-storm", intervals=9)
    env.reset(seed=1)
    before = copy.deepcopy(env)
    lowest, highest = (np.full(env.space.n, end, np.float32) for end in (-1, 1))
    tried = {end: copy.deepcopy(env).step(action)[1] for end, action in ((0, lowest), (1, highest))}
    assert tried[0] != tried[1]
    assert before.step(lowest)[1] == env.step(lowest)[1] == tried[0]


def test_what_cannot_be_copied_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    env = DcqcnEnv("mini-storm", intervals=4)
    env.reset(seed=1)
    frozen = pickle.dumps(env)
    monkeypatch.setattr("dcqcn_gym.core.version.__version__", "9.9.9")
    with pytest.raises(ConfigError, match=r"version .* instead of 9\.9\.9"):
        pickle.loads(frozen)
    env.backend.watch(1_000_000, [0], lambda *_: None)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="watched cannot be copied or pickled"):
        copy.deepcopy(env)


def test_bytes_of_another_network_are_refused() -> None:
    a, b = (_opened(name) for name in ("mini-storm", "mini-fb-hadoop"))
    snapshot = a.snapshot()
    fresh = b.fresh(1)
    with pytest.raises(ValueError, match="no snapshot of this scenario"):
        fresh.restore(snapshot)
    for cut in (snapshot[:-9], snapshot + b"x", b""):
        with pytest.raises(ValueError, match="no snapshot of this scenario"):
            a.fresh(1).restore(cut)


def _opened(name: str) -> Any:
    env = DcqcnEnv(name)
    env.reset(seed=1)
    return env.backend._open.simulation  # type: ignore[attr-defined]
