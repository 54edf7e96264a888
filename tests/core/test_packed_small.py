"""Packed files that are kept in a repository: what was written is read, what is none is refused."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from dcqcn_gym.core import compressed_files as packed
from dcqcn_gym.core.errors import ConfigError


def test_a_packed_file_is_read_and_the_plain_one_first(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert packed.packed_beside(path) is None
    (tmp_path / "a.json.xz").write_bytes(packed.pack_small(b"small"))
    assert packed.read_packed(path) == "small"
    path.write_text("plain")
    assert packed.read_packed(path) == "plain"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"none",
        lzma.compress(b"x" * 9)[:-3],
        lzma.compress(b"x") + b"y",
        lzma.compress(b"\xff"),
    ],
)
def test_what_is_no_packed_text_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json.xz").write_bytes(data)
    with pytest.raises(ConfigError, match=r"a\.json\.xz: (cannot be unpacked|is no text)"):
        packed.read_packed(tmp_path / "a.json")


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"0" * 200_000))
    monkeypatch.setattr(packed, "_MOST_XZ_MEMORY", 2**28)
    monkeypatch.setattr(packed, "MOST_BYTES", 100_000)
    with pytest.raises(ConfigError, match="holds over 100000 bytes"):
        packed.read_packed(tmp_path / "a")
