"""Which files a checkpoint was made of: what is unpickled is what the training wrote.

Stable-Baselines3 keeps a replay buffer as a pickle, and parts of a model too: loading one runs
whatever it says. So ``state.json``, which is plain JSON, holds the SHA-256 of both files, and
nothing is unpickled whose digest is another. This finds a file that was damaged, mixed up or put
there; it cannot help against one who may write ``state.json`` as well.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.training.spec import Checkpoint

__all__ = ["digests", "read_state"]

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
        raise RunError(f"--resume: {where} cannot be read: {error}; {_GO_ON}") from None
    recorded = state.get("sha256") if isinstance(state, dict) else None
    if not isinstance(recorded, dict):
        raise RunError(
            f"--resume: {where} cannot be read: state.json holds no digests of its files; {_GO_ON}"
        )
    for name in sorted({*recorded, *now}):
        if recorded.get(name) != now.get(name):
            what = "is missing" if name not in now else "is not the file that the training wrote"
            raise RunError(f"--resume: {where} cannot be read: {name} {what}; {_GO_ON}")
    return dict(state)


def _sha256(path: Path) -> str:
    value = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(2**20):
            value.update(block)
    return value.hexdigest()
