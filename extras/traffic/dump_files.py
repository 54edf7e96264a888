"""Dumps of devices as their readers take them: SONiC's tables, lines in their context, files.

A line stands below others: ``minimum-threshold`` below an interface and a queue, by indentation
or by braces. Its context comes with it, so that configurations with indents (EOS, NX-OS), braces
(Junos), YAML and JSON (NVUE, ``rdma -j``) and commands of one line are all read as the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.sonic import SonicSwitch, is_sonic

LINES = "lines"
"""The unit in which dumps are accounted for; of a folder, its files; of JSON, its values."""
MOST_BYTES = 16 * 2**20
MOST_FILES = 10_000
_MOST_LINE = 20_000
_MOST_WORDS = 200
_DEEPEST = 16


class DumpReader(Protocol):
    """What takes the parts of dumps; each of them has come in, and is taken or left out."""

    tally: Tally

    def switch(self, switch: SonicSwitch) -> None:
        """Take a ``config_db.json``; it counts its own lines."""

    def line(self, place: str, line: str, whole: str) -> None:
        """Take a line that is not blank; ``whole`` begins with the lines that it stands below."""

    def file(self, path: Path, text: str) -> None:
        """Take one file of a folder, its path below the folder."""


def read_dumps_into(reader: DumpReader, paths: Sequence[Path]) -> None:
    """Read dumps and folders; raise :class:`ConfigError` for what cannot be read."""
    for path in paths:
        if path.is_dir():
            _read_folder(path, reader)
            continue
        data = read_file(path, MOST_BYTES)
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # of PowerShell
            data = data.decode("utf-16", "replace").encode()
        if not re.match(rb"\s*(?:\{|\[\s*\{)", data):
            text = data.decode("utf-8", "replace")
            parts = _in_context(text.splitlines())
        else:
            try:
                whole = parse_json(data)
            except ValueError as error:
                raise ConfigError(f"{path}: not JSON: {error}") from None
            if is_sonic(whole):
                reader.switch(SonicSwitch(path.name, whole))
                continue
            parts = ((0, f"{words[-2]} {words[-1]}" if len(words) > 1 else words[-1],
                      " ".join(words)) for words in _leaves(whole, ()))  # fmt: skip
        for number, line, in_context in parts:
            reader.tally.came(LINES)
            reader.line(f"{path.name} line {number}" if number else path.name, line, in_context)


def _in_context(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield number, text and text with its context of every line that is not blank."""
    above: list[tuple[int, str]] = []
    for number, raw in enumerate(lines, start=1):
        line = raw[:_MOST_LINE].strip()
        if not line:
            continue
        indent = len(raw) - len(raw.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        words = " ".join(line[:_MOST_WORDS].removeprefix("- ").replace("'", "").split())
        words = words.rstrip("{;").rstrip().removesuffix(":").replace(": ", " ")
        yield number, line, " ".join([*(text for _, text in above), words])
        above = [*above[: _DEEPEST - 1], (indent, words)]


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every value of JSON with the names that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)[:_MOST_WORDS]))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield (*path, str(value)[:_MOST_WORDS])


def _read_folder(path: Path, reader: DumpReader) -> None:
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    if len(files) > MOST_FILES:
        raise ConfigError(f"{path}: {len(files)} files; expected a folder of one NIC, at most "
                          f"{MOST_FILES}")  # fmt: skip
    for one in files:
        reader.tally.came(LINES)
        try:
            text = read_file(one, 4096).decode("utf-8", "replace").strip()
        except ConfigError:
            reader.tally.leave_out(LINES, "files cannot be read", one.relative_to(path))
            continue
        reader.file(one.relative_to(path), text)
