"""The part of a training that Stable-Baselines3 does not save, so that resume is exact.

Between two rollouts a training is its model and replay buffer (Stable-Baselines3 saves both), the
random streams, and the networks. A network cannot be saved, but it is decided by its traffic seed
and the actions since its episode began: those are stored, and repeated by :func:`restore`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import RunError

__all__ = ["capture", "restore"]


def capture(model: Any) -> dict[str, Any]:
    """Return the random streams and the episodes of a model between two rollouts (JSON values)."""
    import torch

    name, words, position, has_gauss, gauss = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": [name, np.asarray(words).tolist(), position, has_gauss, gauss],
        "python": random.getstate(),
        "actions": model.action_space.np_random.bit_generator.state,
        "episodes": model.env.env_method("episode_state"),
    }


def restore(model: Any, state: Mapping[str, Any], where: str) -> None:
    """Put a loaded model, its environments and the global streams into a captured state.

    Raises RunError if a network does not come to the observation that the model saw last.
    """
    import torch

    for i, (episode, seen) in enumerate(zip(state["episodes"], model._last_obs, strict=True)):
        (observation,) = model.env.env_method("restore_episode", episode, indices=i)
        if not np.array_equal(observation, seen):
            raise RunError(
                f"--resume: environment {i} of {where} does not come out as it was recorded: "
                "another engine or another machine? Give --force to start again"
            )
    model.action_space.np_random.bit_generator.state = state["actions"]
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    np.random.set_state(tuple(state["numpy"]))
    torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8))
