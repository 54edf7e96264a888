"""Options that mean the same have one name, one type, one default and one text everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from dcqcn_gym.benchmarks.__main__ import app as maintainers
from dcqcn_gym.cli import app
from dcqcn_gym.runs.options import SCENARIO, SEEDS

NAMES = {
    "out": ("--out",), "seed": ("--seed",), "seeds": ("--seeds",), "jobs": ("--jobs",),
    "scenario": ("--scenario", "-s"), "quiet": ("--quiet",), "force": ("--force",),
    "fleet": ("--fleet",), "backend": ("--backend",), "tuner_deadline": ("--tuner-deadline",),
    "bins": ("--bins",), "fct_cdf": ("--fct-cdf",), "why": ("--why",),
    "tuner_arg": ("--tuner-arg",), "safe": ("--safe",),
}  # fmt: skip
DEFAULTS = {
    "scenario": SCENARIO, "seeds": SEEDS, "seed": 1, "backend": "native", "why": "by hand",
}  # fmt: skip
KINDS = {"out": {"DIR", "FILE"}, "scenario": {"NAME", "NAME,..."}}
"""What a value may be, where an option takes more than one kind; the others take one."""


def options(command: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the words of every command with each of its options."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield from ((words, one) for one in command.params if one.param_type_name == "option")
        return
    for name, one in inner.items():
        yield from options(one, f"{words} {name}".strip())


EVERY = list(options(typer.main.get_command(app)))
MAINTAINED = list(options(typer.main.get_command(maintainers)))


def of(name: str) -> dict[str, Any]:
    """Return the option of a name in every command of the program that has it."""
    return {words: one for words, one in EVERY if NAMES[name][0] in one.opts}


def type_of(option: Any) -> str:
    """Return type and range in words, in whatever way the installed Typer holds them."""
    if hasattr(option, "type"):
        return repr(option.type)
    return repr((option.type_descriptor.annotation, option.min, option.max))


@pytest.mark.parametrize("name", NAMES)
def test_one_name_and_one_default(name: str) -> None:
    same = of(name)
    assert len(same) > 1
    assert {words: one.opts for words, one in same.items() if tuple(one.opts) != NAMES[name]} == {}
    given = {words: one.default for words, one in same.items() if one.default not in (None, False)}
    assert {words: v for words, v in given.items() if v != DEFAULTS.get(name)} == {}


@pytest.mark.parametrize("name", NAMES)
def test_one_type_and_one_text(name: str) -> None:
    found: dict[tuple[str, ...], set[str]] = {}
    for words, one in of(name).items():
        # what is taken although it is not recommended has nothing to do with an OUT
        deploys = name == "force" and words in ("emit", "hw apply")
        kind = (type_of(one), str(one.multiple), str(one.metavar), str(deploys))
        found.setdefault(kind, set()).add(one.help)
    assert {kind: texts for kind, texts in found.items() if len(texts) > 1} == {}
    kinds = KINDS.get(name, {"emit", "out"} if name == "force" else {""})
    assert len(found) == len(kinds)


@pytest.mark.parametrize("name", ["jobs", "quiet"])
def test_maintainers_have_the_same(name: str) -> None:
    texts = {one.help for one in of(name).values()}
    assert {one.help for _, one in MAINTAINED if NAMES[name][0] in one.opts} == texts


OTHERS = ("--workers", "--processes", "--dir", "--output", "--silent", "--resume", "--continue")


@pytest.mark.parametrize("other", OTHERS)
def test_no_second_name(other: str) -> None:
    assert [words for words, one in EVERY if other in one.opts] == []
