"""Compiled scenarios with one word changed, dropped or doubled: refused, or of equal meaning.

More cases than the test has: ``PYTHONPATH=tests python tests/engine/mutated_texts.py 100000 SEED``.

A number becomes garbage and never another number: that is another scenario, not a mistake.
"""

from __future__ import annotations

import random
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dcqcn_gym._core import same_scenario  # noqa: TID251 - the tests of this folder are about it
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names
from large import LARGE

GOOD = Path(__file__).resolve().parents[1] / "schemas" / "good"
MARKS = "!$%&*/;<?@^_|~,:>=#+"
LETTERS = string.ascii_lowercase.replace("e", "") + MARKS


class Mutant(NamedTuple):
    """One changed text and where it differs."""

    source: str
    text: str
    line: int
    was: str
    now: str


@cache
def texts() -> dict[str, str]:
    """Return the compiled text of every scenario of the package and of the tests.

    The largest are left out: no kind of line is in them alone.
    """
    small = (name for name in scenario_names() if name not in LARGE)
    sources = [*small, *map(str, sorted(GOOD.glob("*.toml")))]
    return {source: compile_scenario(load_scenario(source)) for source in sources}


def dropped(word: str, draw: random.Random) -> list[str]:
    return []


def doubled(word: str, draw: random.Random) -> list[str]:
    return [word, word]


def inserted(word: str, draw: random.Random) -> list[str]:
    at = draw.randrange(len(word) + 1)
    return [word[:at] + draw.choice(LETTERS) + word[at:]]


def misspelt(word: str, draw: random.Random) -> list[str]:
    """Drop or replace a letter, or swap two."""
    places = [m.start() for m in re.finditer("[a-z=>:]", word)]
    if not places:
        return inserted(word, draw)
    at = draw.choice(places)
    swapped = word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]
    if draw.random() < 0.3 and word[at + 1 : at + 2].isalpha():
        return [swapped]
    return [word[:at] + draw.choice(["", draw.choice(LETTERS)]) + word[at + 1 :]]


def garbled(word: str, draw: random.Random) -> list[str]:
    """Put garbage in the place of a value, before or behind it."""
    key, eq, value = word.rpartition("=")
    garbage = ["x", "", "nan", "0x10", "1.5.2", "--1", value + "x", "x" + value, value + ","]
    return [key + eq + draw.choice([*garbage, "+" + value, "9" * 400, value + "=1"])]


MUTATIONS: tuple[Callable[[str, random.Random], list[str]], ...] = (
    dropped,
    doubled,
    inserted,
    misspelt,
    garbled,
)


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """Yield texts with one word changed; line kinds and mutations come equally often."""
    draw = random.Random(seed)
    originals = texts()
    for _ in range(count):
        source = draw.choice(sorted(originals))
        lines = originals[source].splitlines()
        kind = draw.choice(sorted({line.split()[0] for line in lines}))
        number = draw.choice([i for i, line in enumerate(lines) if line.split()[0] == kind])
        words = lines[number].split()
        at = draw.randrange(len(words))
        was = lines[number]
        words[at : at + 1] = draw.choice(MUTATIONS)(words[at], draw)
        lines[number] = " ".join(words)
        yield Mutant(source, "\n".join([*lines, ""]), number + 1, was, lines[number])


def verdict(original: str, mutant: Mutant) -> str:
    """Return ``refused``, ``equal`` or what is wrong."""
    try:
        equal = same_scenario(original, mutant.text)
    except ValueError as error:
        message = str(error)
        named = re.search(r"line (\d+)", message)
        if named is None and "'end' is missing" not in message:
            return f"refused without a line: {message}"
        return "refused"
    return "equal" if equal else "silently different"


def run(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Return how many mutants had which verdict, and a line for each that went wrong."""
    originals = texts()
    counts: Counter[str] = Counter()
    wrong = []
    for mutant in mutants(count, seed):
        what = verdict(originals[mutant.source], mutant)
        counts[what] += 1
        if what not in ("refused", "equal"):
            wrong.append(
                f"{mutant.source} line {mutant.line}: {what}\n  {mutant.was}\n  {mutant.now}"
            )
    return counts, wrong


if __name__ == "__main__":
    found, problems = run(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(problems[:20]))
    print(dict(found))
    sys.exit(bool(problems))
