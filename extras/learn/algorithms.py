"""The four algorithms and the numbers they are trained with.

One setting acts within about one monitor interval, so the problem is close to a contextual
bandit: a small ``gamma``, small networks (64 x 64, ReLU) and short rollouts. The values are ours,
chosen for budgets of about ten thousand steps; ``--algo-arg`` changes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, did_you_mean, quote
from dcqcn_gym.extras.learn.extra import need_sb3

Number = int | float

HIDDEN = (64, 64)

_OFF_POLICY: Mapping[str, Number] = {
    "learning_rate": 1e-3,
    "gamma": 0.3,
    "buffer_size": 20_000,
    "batch_size": 128,
    "learning_starts": 500,
    "train_freq": 1,
    "gradient_steps": 1,
}

ALGORITHMS: Mapping[str, Mapping[str, Number]] = MappingProxyType(
    {
        "ppo": {
            "learning_rate": 1e-3,
            "gamma": 0.3,
            "gae_lambda": 0.9,
            "n_steps": 64,
            "batch_size": 64,
            "n_epochs": 10,
            "ent_coef": 0.0,
        },
        "sac": {**_OFF_POLICY, "tau": 0.01},
        "td3": {
            **_OFF_POLICY,
            "learning_rate": 3e-4,  # at 1e-3 its tanh saturates early, in a corner of the box
            "learning_starts": 2_000,
            "tau": 0.01,
            "policy_delay": 2,
            "noise": 0.3,
        },
        "dqn": {
            **_OFF_POLICY,
            "target_update_interval": 200,
            "exploration_fraction": 0.5,
            "exploration_final_eps": 0.05,
        },
    }
)
"""Algorithm to hyperparameters, by the names of Stable-Baselines3 (``noise``: TD3's sigma)."""


MOST = 10**9
"""Of whole numbers that have no other bound."""

_RANGES: Mapping[str, tuple[Number, Number]] = {
    "learning_rate": (1e-12, 1.0),
    "gamma": (0.0, 1.0),
    "gae_lambda": (0.0, 1.0),
    "ent_coef": (0.0, 1e6),
    "tau": (1e-12, 1.0),
    "noise": (0.0, 1e6),
    "exploration_fraction": (0.0, 1.0),
    "exploration_final_eps": (0.0, 1.0),
    "gradient_steps": (-1, MOST),  # -1: as many as steps were taken
    "learning_starts": (0, MOST),
}
"""What a number may be, ends included; a whole number that is not here is 1 to :data:`MOST`."""


def is_discrete(algo: str) -> bool:
    """Return True if the algorithm chooses among a few settings (DQN)."""
    return algo == "dqn"


def hyperparameters(algo: str, changes: Mapping[str, object] | None = None) -> dict[str, Number]:
    """Return an algorithm's numbers with some changed (numbers or text).

    Raises UnknownNameError for another algorithm, ConfigError for another name, for no number and
    for one that no training works with.
    """
    if algo not in ALGORITHMS:
        raise UnknownNameError("algorithm", algo, ALGORITHMS)
    values = dict(ALGORITHMS[algo])
    for name, given in (changes or {}).items():
        if name not in values:
            hint = did_you_mean(name, values)
            raise ConfigError(f"algorithm {algo!r} has no argument {quote(name)}{hint}")
        kind = type(values[name])
        try:
            values[name] = kind(str(given))
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise ConfigError(
                f"algorithm {algo!r}: {name} = {quote(given)}: expected {expected}"
            ) from None
        _check_range(algo, name, values[name])
    return values


def _check_range(algo: str, name: str, value: Number) -> None:
    low, high = _RANGES.get(name, (1, MOST))
    if algo == "ppo" and name == "batch_size":
        low = 2  # it divides by the spread of a batch
    if not low <= value <= high:  # also catches NaN
        raise ConfigError(
            f"algorithm {algo!r}: {name} = {quote(value)}: expected {low:g} to {high:g}"
        )


def algorithm_class(algo: str) -> Any:
    """Return Stable-Baselines3's class; raise MissingExtraError without it."""
    need_sb3(f"training with {algo!r}")
    import stable_baselines3

    return getattr(stable_baselines3, algo.upper())


def make_model(algo: str, env: Any, values: Mapping[str, Number], seed: int) -> Any:
    """Return a fresh model on the CPU; the seed also seeds torch and numpy's global stream.

    Raises ConfigError for buffers that do not fit into memory.
    """
    chosen = algorithm_class(algo)
    from torch import nn

    arguments: dict[str, Any] = dict(values)
    if algo == "td3":
        arguments["action_noise"] = _noise(env.action_space.shape[0], arguments.pop("noise"))
    try:
        return chosen(
            "MlpPolicy",
            env,
            seed=seed,
            device="cpu",
            verbose=0,
            policy_kwargs={"net_arch": list(HIDDEN), "activation_fn": nn.ReLU},
            **arguments,
        )
    except MemoryError as error:
        name = "n_steps" if algo == "ppo" else "buffer_size"
        raise ConfigError(
            f"algorithm {algo!r}: {name} = {values[name]} does not fit into memory; give less"
        ) from error


def _noise(size: int, sigma: float) -> Any:
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise

    return NormalActionNoise(np.zeros(size), np.full(size, float(sigma)))
