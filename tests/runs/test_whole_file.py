"""A file written whole takes the place of a file alone: links are followed, the rest is refused."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.atomic_file import check_writable, write_atomically


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")


MADE: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo, "a socket": _socket, "a device": _device, "a directory": Path.mkdir,
}  # fmt: skip


@pytest.mark.parametrize("through_link", [False, True], ids=["", "through a link"])
@pytest.mark.parametrize("kind", MADE)
def test_what_is_no_file_stays(
    kind: str, through_link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    path = Path("thing")
    MADE[kind](path)
    before = path.stat().st_mode
    if through_link:
        path = Path("link")
        path.symlink_to("thing")
    for write in (check_writable, lambda given: write_atomically(given, b"new")):
        with pytest.raises(RunError, match=rf"^{path} cannot be written: it is {kind}; expected a"):
            write(path)
    assert path.stat().st_mode == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({"thing", path.name})


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "far" / "results.json", tmp_path / "results.json"
    target.parent.mkdir()
    link.symlink_to(Path("far", "results.json"))
    for data in (b"first", b"second"):  # also where the file is still to be made
        check_writable(link)
        write_atomically(link, data)
        assert link.is_symlink()
        assert target.read_bytes() == data
    assert [p.name for p in target.parent.iterdir()] == ["results.json"]


def test_a_link_to_itself_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RunError, match=r"loop cannot be written: "):
        write_atomically(tmp_path / "loop", b"")
