"""Options that mean the same have one name and one default, in every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from dcqcn_gym.cli import app
from dcqcn_gym.runs.options import SCENARIO, SEEDS

NAMES = {
    "out": ("--out",), "seeds": ("--seeds",), "jobs": ("--jobs",),
    "scenario": ("--scenario", "-s"), "quiet": ("--quiet",), "force": ("--force",),
    "resume": ("--resume",),
}  # fmt: skip
DEFAULTS = {"scenario": SCENARIO, "seeds": SEEDS}


def options(command: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the words of every command with each of its options."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield from ((words, one) for one in command.params if one.param_type_name == "option")
        return
    for name, one in inner.items():
        yield from options(one, f"{words} {name}".strip())


EVERY = list(options(typer.main.get_command(app)))


@pytest.mark.parametrize("name", NAMES)
def test_one_name_and_one_default(name: str) -> None:
    same = {words: one for words, one in EVERY if NAMES[name][0] in one.opts}
    assert len(same) > 1
    assert {words: one.opts for words, one in same.items() if tuple(one.opts) != NAMES[name]} == {}
    given = {words: one.default for words, one in same.items() if one.default not in (None, False)}
    assert {words: v for words, v in given.items() if v != DEFAULTS.get(name)} == {}


@pytest.mark.parametrize("other", ["--workers", "--processes", "--dir", "--output", "--silent"])
def test_no_second_name(other: str) -> None:
    assert [words for words, one in EVERY if other in one.opts] == []
