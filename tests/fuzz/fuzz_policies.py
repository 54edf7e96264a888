"""Policy files from a stranger."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzz_harness import ODD, damage

from dcqcn_gym.tuners.policy import FOLDER, load_policy

_ARRAYS: tuple[Any, ...] = (
    np.zeros((0, 0)), np.zeros((3, 4)), np.full((3, 4), np.nan), np.array([["a"]]), np.array(1.0),
    np.zeros((3, 4), complex), np.zeros(3, "M8[s]"), np.zeros((2, 2, 2)), np.zeros(4, bool),
    np.array([None]), np.zeros(2, [("a", "i4")]), np.arange(6).reshape(2, 3), np.full(3, np.inf),
)  # fmt: skip
_HEADERS = (
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    b"{'descr': '<f8', 'shape': (1,), }", b"__import__('os')", b"[" * 3000, b"",
)  # fmt: skip


@cache
def _shipped() -> list[bytes]:
    return [path.read_bytes() for path in sorted(FOLDER.glob("*.npz"))]


def policies(random: Random, folder: Path) -> None:
    """A shipped policy with bytes, members or what it says of itself changed."""
    data = random.choice(_shipped())
    how = random.randrange(6)
    if how == 0:
        data = damage(random, data)
    elif how == 1:
        data = _npy(random.choice(_ARRAYS))
    else:
        data = _packed(random, _members(random, data))
    path = folder / "policy.npz"
    path.write_bytes(data)
    policy = load_policy(path)
    action = policy.act(np.zeros(policy.inputs))
    assert np.isfinite(action).all()
    assert (np.abs(action) <= 1).all()


def _members(random: Random, data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(list(members))
    how = random.randrange(6)
    if how == 0:
        del members[name]
    elif how == 1:
        members[name] = damage(random, members[name])
    elif how == 2:
        members[name] = _npy(random.choice(_ARRAYS))
    elif how == 3:
        header = random.choice(_HEADERS)
        members[name] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    elif how == 4:
        members["meta.npy"] = _npy(_meta(random, members["meta.npy"]))
    else:
        members[random.choice(("weight9.npy", "weightx.npy", "../up", "a" * 300))] = members[name]
    return members


def _meta(random: Random, member: bytes) -> Any:
    meta = json.loads(np.load(io.BytesIO(member)).tobytes())
    meta[random.choice(list(meta))] = random.choice(ODD)
    if random.random() < 0.2:
        meta = random.choice(ODD)
    text = json.dumps(meta, default=str)
    return np.frombuffer(("[" * 5000 if random.random() < 0.05 else text).encode(), np.uint8)


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def _packed(random: Random, members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    method = random.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        if random.random() < 0.02:
            archive.writestr("weight99.npy", bytes(2**27))
    return damage(random, buffer.getvalue()) if random.random() < 0.2 else buffer.getvalue()
