"""Sums of results: left to right, whatever Python does in its own ``sum``; nobody uses that one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dcqcn_gym
from dcqcn_gym.core.sums import count, mean, total

ROOT = Path(dcqcn_gym.__file__).parent
ALLOWED = ROOT / "core" / "sums.py"
WORD = re.compile(r"\bsum\b")


def test_a_total_rounds_after_every_step() -> None:
    values = [1e16, 1.0, 1.0, -1e16]  # a compensated sum, as of Python 3.12, gives 2
    assert total(values) == 0.0
    assert mean(values) == 0.0
    assert total([0.1] * 10) == 0.9999999999999999
    assert (total([]), total(iter([0.5]))) == (0.0, 0.5)
    with pytest.raises(ZeroDivisionError):
        mean([])


def test_a_count_is_exact_and_whole() -> None:
    assert count([2**60, 1]) == 2**60 + 1
    assert count(x > 1 for x in (1, 2, 3)) == 2
    assert type(count([])) is int


def _sums(source: str) -> list[int]:
    """Return the lines that name Python's ``sum``, called or passed on."""
    names = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))
    return [node.lineno for node in names if node.id == "sum"]


def test_the_search_finds_what_it_looks_for() -> None:
    assert _sums("a = sum(b)\nc = np.sum(b)\nd = map(sum, b)\nd.sum()") == [1, 3]


def test_no_result_is_made_by_the_builtin_sum() -> None:
    rooms = [p for p in ROOT.rglob("*.py") if p != ALLOWED]
    rooms += [
        p for link in ROOT.iterdir() if link.is_symlink() for p in link.resolve().rglob("*.py")
    ]
    assert len(rooms) > 100
    texts = {path: path.read_text(encoding="utf-8") for path in rooms}
    # to parse all files takes seconds, and most do not have the word
    found = [f"{p}:{n}" for p, text in texts.items() if WORD.search(text) for n in _sums(text)]
    assert found == [], "use total, mean or count of dcqcn_gym.core.sums"
