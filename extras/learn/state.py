"""The state in a checkpoint beside Stable-Baselines3's files, so that resume is exact and safe.

Between two rollouts a training is its model and replay buffer (Stable-Baselines3 saves both), the
random streams, and the networks. A network cannot be saved, but it is decided by its traffic seed
and the actions since its episode began: those are stored, and repeated by :func:`restore`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.extras.learn.spec import Checkpoint

# Stable-Baselines3 keeps a replay buffer as a pickle, and parts of a model too: loading one runs
# whatever it says. So `state.json`, which is plain JSON, holds the SHA-256 of both files, and
# nothing is unpickled whose digest is another. This finds a file that was damaged, mixed up or put
# there; it cannot help against one who may write `state.json` as well.
_GO_ON = (
    "remove it to go on from the checkpoint before it, or give --force to start again; "
    "resume only what you trust, because a replay buffer is a pickle, which can hold a program"
)


def digests(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the SHA-256 of the files that resuming unpickles, by name."""
    files = (checkpoint.model, checkpoint.replay)
    return {path.name: _sha256(path) for path in files if path.exists()}


def read_state(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return ``state.json``; raise :class:`RunError` unless it names the files that lie there."""
    where = checkpoint.folder
    try:
        state = parse_json(read_file(checkpoint.state))
        now = digests(checkpoint)
    except (OSError, ValueError) as error:  # a ConfigError is one
        raise RunError(f"{where} cannot be read: {error}; {_GO_ON}") from None
    recorded = state.get("sha256") if isinstance(state, dict) else None
    if not isinstance(recorded, dict):
        raise RunError(
            f"{where} cannot be read: state.json holds no digests of its files; {_GO_ON}"
        )
    for name in sorted({*recorded, *now}):
        if recorded.get(name) != now.get(name):
            what = "is missing" if name not in now else "is not the file that the training wrote"
            raise RunError(f"{where} cannot be read: {name} {what}; {_GO_ON}")
    return dict(state)


def _sha256(path: Path) -> str:
    value = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(2**20):
            value.update(block)
    return value.hexdigest()


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
                f"environment {i} of {where} does not come out as it was recorded: "
                "another engine or another machine? Give --force to start again"
            )
    model.action_space.np_random.bit_generator.state = state["actions"]
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    np.random.set_state(tuple(state["numpy"]))
    torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8))
