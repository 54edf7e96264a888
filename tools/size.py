"""How large is the project, beside the start of its last round? ``python tools/size.py [COMMIT]``.

Counts everything that git tracks, at COMMIT or in the working tree: whoever moves lines from one
place to another sees them there. Nothing here is a test. The figures at the start were counted by
this program at commit 1a206463, commands by hand.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADD_ONS = ("hw/", "benchmarks/", "extras/")
MEASURED_BEFORE = ("training/", "traffic/", "network/")  # add-ons before they had a folder
SHORT = 40
"""Lines below which a file is short; a package's ``__init__`` and tests are not counted."""

ROWS: Mapping[str, tuple[int | None, int | None]] = {
    "lines of the core, Python": (36_556, 28_000),
    "lines of add-ons, Python": (35_311, None),
    "lines of Python outside tests and tools": (71_867, 66_000),
    "lines of tests, Python": (55_369, 46_000),
    "lines of tools, Python": (0, 6_000),
    "lines of C++": (27_804, None),
    "words of docs and README": (75_061, 60_000),
    "words of tables that are generated": (1_919, None),
    "commands": (54, 50),
    "hidden commands": (17, 0),
    "short files": (27, 30),
    "names of classes that occur twice": (40, 15),
    "circles of imports for types alone": (5, 0),
    "plan classes": (2, 2),
    "files": (1_964, None),
}
"""Figure -> at the start of the round, aim; None: no such figure."""


class Tree:
    """The files of a commit, or of the working tree."""

    def __init__(self, commit: str | None = None) -> None:
        self._commit = commit
        words = ["ls-files"] if commit is None else ["ls-tree", "-r", "--name-only", commit]
        listed = _git(*words).decode().split("\n")
        links = _git("ls-files", "-s") if commit is None else _git("ls-tree", "-r", commit)
        linked = {
            line.split("\t")[1] for line in links.decode().split("\n") if line[:6] == "120000"
        }
        self.names = sorted({n for n in listed if n} - linked)

    def text(self, name: str) -> str:
        """Return a file's text; empty for what is deleted."""
        if self._commit is not None:
            return _git("show", f"{self._commit}:{name}").decode(errors="replace")
        path = ROOT / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


def area(name: str) -> str:
    """Return which part a Python file belongs to: tests, tools, add-ons, core; empty for others."""
    if not name.endswith(".py") or "/data/submissions/" in name:
        return ""
    head, inside = name.split("/", 1)[0], name.removeprefix("src/dcqcn_gym/")
    if head in ("tests", "tools"):
        return head
    if head in ("examples", "docs"):
        return ""
    old = inside.startswith(MEASURED_BEFORE) or inside.startswith("envs/backends/ns3")
    return "add-ons" if name.startswith(ADD_ONS) or old else "core"


def words_of(text: str) -> tuple[int, int]:
    """Return the words of a page that a person wrote, and those between marks of a generator."""
    whole = len(text.split())
    made = sum(
        len(part.split())
        for part in re.findall(r"<!-- ([\w-]+): begin -->(.*?)<!-- \1: end -->", text, re.S)
        for part in part[1:]
    )
    return whole - made, made


def figures(tree: Tree) -> dict[str, int | None]:
    """Return every figure of ROWS."""
    lines: Counter[str] = Counter()
    words, made, short = 0, 0, 0
    code: dict[str, str] = {}
    for name in tree.names:
        part = area(name)
        if part:
            text = tree.text(name)
            lines[part] += text.count("\n")
            if part in ("core", "add-ons"):
                code[name] = text
                short += text.count("\n") < SHORT and not name.endswith("__init__.py")
        elif name.endswith((".cpp", ".hpp", ".cc", ".h")):
            lines["C++"] += tree.text(name).count("\n")
        elif name == "README.md" or (name.startswith("docs/") and name.endswith(".md")):
            own, generated = words_of(tree.text(name))
            words, made = words + own, made + generated
    trees = {name: ast.parse(text) for name, text in code.items()}
    classes = [c.name for t in trees.values() for c in ast.walk(t) if isinstance(c, ast.ClassDef)]
    public = Counter(name for name in classes if not name.startswith("_"))
    visible, hidden = commands() if tree.names and len(sys.argv) < 2 else (None, None)
    return {
        "lines of the core, Python": lines["core"],
        "lines of add-ons, Python": lines["add-ons"],
        "lines of Python outside tests and tools": lines["core"] + lines["add-ons"],
        "lines of tests, Python": lines["tests"],
        "lines of tools, Python": lines["tools"],
        "lines of C++": lines["C++"],
        "words of docs and README": words,
        "words of tables that are generated": made,
        "commands": visible,
        "hidden commands": hidden,
        "short files": short,
        "names of classes that occur twice": sum(n > 1 for n in public.values()),
        "circles of imports for types alone": len(type_circles(trees)),
        "plan classes": sum(name.endswith("Plan") for name in classes),
        "files": len(tree.names),
    }


def commands() -> tuple[int, int]:
    """Return how many commands can be seen and how many are hidden, groups' commands each."""
    import typer

    from dcqcn_gym.cli import app

    def walk(command: object, hidden: bool) -> Iterator[bool]:
        inner = getattr(command, "list_commands", None)
        if inner is None:
            yield hidden
            return
        context = typer.Context(command)  # type: ignore[arg-type]
        for name in inner(context):
            one = command.get_command(context, name)  # type: ignore[attr-defined]
            if one is not None:
                yield from walk(one, hidden or one.hidden)

    found = Counter(walk(typer.main.get_command(app), False))
    return found[False], found[True]


def type_circles(trees: Mapping[str, ast.Module]) -> list[list[str]]:
    """Return circles of modules that only imports for type checkers close."""
    modules = {_module(name): name for name in trees}
    real, typed = ({m: _imports(trees[n], modules, t) for m, n in modules.items()} for t in (0, 1))
    both = {m: real[m] | typed[m] for m in modules}
    return [c for c in _circles(both) if c not in _circles(real)]


def _module(name: str) -> str:
    inside = name.removeprefix("src/").removeprefix("dcqcn_gym/").removesuffix(".py")
    return "dcqcn_gym." + inside.removesuffix("/__init__").replace("/", ".")


def _imports(tree: ast.Module, modules: Iterable[str], typed: int) -> set[str]:
    """Return the modules that a module imports as it is loaded, or for type checkers alone."""
    inside = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    body = ast.walk(tree) if typed else iter(tree.body)
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module and (id(node) in inside) == bool(typed):
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found.intersection(modules)


def _circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected parts of a graph that have more than one node (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            part = sorted(stack[at:])
            del stack[at:]
            if len(part) > 1:
                found.append(part)

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main() -> None:
    """Print the table."""
    found = figures(Tree(*sys.argv[1:2]))
    print("| figure | start | now | aim |\n|---|---|---|---|")
    for name, (start, aim) in ROWS.items():
        cells = ("" if n is None else f"{n:,}" for n in (start, found[name], aim))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
