"""Policy files that are none: one sentence, no advice to allow pickles, no memory eaten."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.tuners.policy import FOLDER, load_policy


def members() -> dict[str, bytes]:
    with zipfile.ZipFile(FOLDER / "dqn-mini.npz") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def meta(**changes: Any) -> bytes:
    now = json.loads(np.load(io.BytesIO(members()["meta.npy"])).tobytes())
    return npy(np.frombuffer(json.dumps({**now, **changes}).encode(), np.uint8))


def header(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def refused(path: Path, data: bytes, says: str) -> None:
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=says) as caught:
        load_policy(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "pickle" not in text
    assert "\n" not in text


HUGE = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"bias0.npy": npy(np.zeros(64, "M8[s]"))}, "'bias0.npy' holds values of type"),
        ({"bias0.npy": npy(np.array([None]))}, "'bias0.npy' holds values of type 'object'"),
        ({"weight0.npy": npy(np.zeros((64, 3), complex))}, "values of type 'complex128'"),
        ({"weight0.npy": npy([["a"]])}, "values of type"),
        ({"weight0.npy": npy(np.full((64, 3), np.nan, "f4"))}, "do not fit|not finite"),
        ({"weight0.npy": npy(np.zeros((64, 3), "u1"))}, "do not fit|real numbers"),
        ({"weight0.npy": header(HUGE)}, "says to have shape .*holds 0 bytes"),
        ({"weight0.npy": header(b"[" * 3000)}, "damaged"),
        ({"weight0.npy": b"\x93NUMPY\x09\x00"}, "version"),
        ({"actions.npy": npy(np.full((3, 14), np.nan))}, "actions hold something else"),
        ({"actions.npy": npy(np.full((3, 14), 2.0))}, "actions hold something else"),
        ({"actions.npy": npy([["a"] * 14] * 3)}, "values of type"),
        ({"meta.npy": npy(np.frombuffer(b"[1]", np.uint8))}, r"meta is \[1\]; expected a table"),
        ({"meta.npy": npy(np.frombuffer(b"[" * 9999, np.uint8))}, "nested too deeply$"),
        ({"meta.npy": npy(np.frombuffer(b"\xff\xfe", np.uint8))}, "not a policy file"),
        ({"meta.npy": meta(steps=True)}, "steps = True"),
        ({"meta.npy": meta(format="9" * 999)}, r"has format '9{60,80}\.\.\."),
        ({"weight0.npy": bytes(2**26)}, "it unpacks to"),
    ],
)
def test_members(tmp_path: Path, changes: dict[str, bytes], says: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**members(), **changes}.items():
            archive.writestr(name, data)
    refused(tmp_path / "policy.npz", buffer.getvalue(), says)


def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    weight = np.load(io.BytesIO(members()["weight0.npy"])).copy()
    weight[0, 0] = np.nan
    test_members(tmp_path, {"weight0.npy": npy(weight)}, "layer 0 holds numbers that are not")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (npy(np.zeros(3)), r"holds a single array \(.npy\)"),
        (b"", "damaged"),
        (b"rubbish" * 99, "damaged"),
        ((FOLDER / "ppo-mini.npz").read_bytes()[:-100], "damaged"),
    ],
)
def test_files(tmp_path: Path, data: bytes, says: str) -> None:
    refused(tmp_path / "policy.npz", data, says)


def test_damaged_deflate_and_many_members(tmp_path: Path) -> None:
    data = bytearray((FOLDER / "ppo-mini.npz").read_bytes())
    data[3000:3100] = b"\xff" * 100
    refused(tmp_path / "policy.npz", bytes(data), "damaged")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for i in range(1000):
            archive.writestr(f"weight{i}.npy", b"")
    refused(tmp_path / "policy.npz", buffer.getvalue(), "has 1000 members")
