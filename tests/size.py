"""Print how large the project is: ``python tests/size.py``. Limits stand in ``tests/size.toml``.

``limit`` is a ratchet: a test fails where a figure is above it. It goes down with the figure, and
goes up with a reason in the file alone. ``target`` is where a figure is to be.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typer

from dcqcn_gym.cli import app
from dcqcn_gym.core.config import read_toml
from dcqcn_gym.runs.table import Table, print_tables

__all__ = ["FIGURES", "limits"]

ROOT = Path(__file__).resolve().parents[1]
LONGEST, MOST_PARAMETERS = 40, 8
DATA = (".csv", ".gz", ".json", ".jsonl", ".npz", ".parquet", ".png", ".svg", ".txt", ".xz", ".zip")
"""What no person writes; a scenario's table of flows counts as well."""


@cache
def _files() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    names = sorted({Path(name) for name in listed.stdout.split("\0") if name})
    return tuple(n for n in names if (ROOT / n).is_file() and not (ROOT / n).is_symlink())


def _code() -> Iterator[Path]:
    """Return the Python files outside tests; submissions are others' and were kept as they came."""
    for name in _files():
        if name.suffix == ".py" and name.parts[0] != "tests" and "submissions" not in name.parts:
            yield ROOT / name


@cache
def _trees() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in _code())


def _functions() -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


@cache
def _commands() -> tuple[int, int]:
    """Return how many commands there are, and how many parameters they have together."""

    def walk(command: Any) -> Iterator[int]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield len(command.params)
            return
        for one in inner.values():
            yield from walk(one)

    found = list(walk(typer.main.get_command(app)))
    return len(found), sum(found)


def _words() -> int:
    pages = [n for n in _files() if n.suffix == ".md" and n.parts[0] in ("docs", "README.md")]
    return sum(len((ROOT / page).read_text(encoding="utf-8").split()) for page in pages)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    own = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return len([a for a in own if a.arg not in ("self", "cls")])


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the parameters are a command's options."""
    return any("typer" in ast.unparse(a.annotation) for a in function.args.args if a.annotation)


def _plans() -> int:
    classes = (n for tree in _trees() for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    return len([one for one in classes if one.name.endswith("Plan")])


def _one_client() -> int:
    """Return how many modules are imported by one module alone, which lies in the same folder."""
    clients: dict[str, set[str]] = defaultdict(set)
    names = {_module(path): path for path in _code()}
    for path, tree in zip(_code(), _trees(), strict=True):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{a.name}" for a in node.names)):
                    if name in names:
                        clients[name].add(_module(path))
    folder = {name: name.rpartition(".")[0] for name in names}
    return len([n for n, by in clients.items() if len(by) == 1 and folder[n] == folder[min(by)]])


def _module(path: Path) -> str:
    inside = re.sub(r"^src/dcqcn_gym/", "", path.relative_to(ROOT).as_posix())
    return "dcqcn_gym." + inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


FIGURES: Mapping[str, Callable[[], float]] = {
    "lines": lambda: sum(len(p.read_bytes().splitlines()) for p in _code()),
    "commands": lambda: _commands()[0],
    "parameters": lambda: _commands()[1],
    "words": _words,
    "data": lambda: round(
        sum((ROOT / n).stat().st_size for n in _files() if n.suffix in DATA) / 1e6, 1
    ),
    "plans": _plans,
    "long_functions": lambda: len(
        [
            f
            for f in _functions()
            if (f.end_lineno or 0) - f.lineno >= LONGEST and not _is_command(f)
        ]
    ),
    "wide_functions": lambda: len(
        [f for f in _functions() if _parameters(f) > MOST_PARAMETERS and not _is_command(f)]
    ),
    "one_client": _one_client,
}


def limits() -> Mapping[str, Mapping[str, Any]]:
    """Return what, target, limit and reason of each figure."""
    return read_toml(ROOT / "tests" / "size.toml")


if __name__ == "__main__":
    rows = [
        (of["what"], f"{FIGURES[name]():,g}", f"{of['target']:,g}", f"{of.get('limit', '')}")
        for name, of in limits().items()
    ]
    print_tables([Table(("what", "now", "target", "limit"), rows)])
