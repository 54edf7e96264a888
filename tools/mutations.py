"""Do the tests catch the faults of ``mutations.toml``? ``python tools/mutations.py [NAME...]``.

``--sample N --seed S`` draws N of the faults in Python, which are the rules of verdict, statistics,
ranks, safety and devices; ``.ci/run`` does so with another seed every day. The tree is copied to a
temporary folder; there each fault is put in, the C++ tests are built again (one build folder,
little optimisation) and run, or, for a fault in Python, the tests it names until one fails.
Everything must pass without a fault first. A test that is skipped, for want of a server for
example, counts as a failure. Prints a table; 1 if a fault was not caught, 2 if one could not be
tried.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcqcn_gym.core.config import read_toml
from dcqcn_gym.runs.pool import cpu_count

ROOT = Path(__file__).resolve().parents[1]
EVERYWHERE = shutil.ignore_patterns(".*_cache", "*.pyc")
AT_THE_TOP = {".git", ".venv", "build", "dist", "runs"}  # the package has a room called runs
JOBS = str(cpu_count())

LONG = "^engine_fuzz$"
"""The C++ test that is not run: it compares two engines over one model."""


def _left_out(folder: str, names: list[str]) -> set[str]:
    top = AT_THE_TOP if Path(folder) == ROOT else set()
    return {*EVERYWHERE(folder, names), *top.intersection(names)}


class MutationError(Exception):
    """The fault cannot be put in, does not compile, or the tests fail without it."""


@dataclass(frozen=True)
class Mutation:
    """One fault: ``old``, which stands exactly once in ``file``, becomes ``new``."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    """Python tests that are to catch it; none: the C++ tests are."""

    def text(self, before: str) -> str:
        """Return the file with the fault; raise MutationError if ``old`` is not there once."""
        found = before.count(self.old)
        if found != 1:
            raise MutationError(
                f"{self.name}: {self.old!r} stands {found} times in {self.file}, expected once; "
                "correct tools/mutations.toml"
            )
        return before.replace(self.old, self.new)


def load() -> dict[str, Mutation]:
    """Return the faults of the file by name."""
    rows: dict[str, Any] = read_toml(ROOT / "tools" / "mutations.toml")
    return {
        name: Mutation(name, **{**row, "tests": tuple(row.get("tests", ()))})
        for name, row in rows.items()
    }


class Tree:
    """A copy of the repository in which faults are tried."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.build = folder / "build"
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=_left_out)
        found = importlib.util.find_spec("dcqcn_gym._core")
        if found is None or found.origin is None:
            raise MutationError("the engine is not installed; run make install")
        module = Path(found.origin)
        shutil.copy(module, self.root / "src" / "dcqcn_gym" / module.name)
        tools = Path(sys.executable).parent
        self.environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
        # an editable installation is found by a hook of site.py, ahead of PYTHONPATH: so no site
        self.python = [sys.executable, "-S"]
        paths = (self.root / "src", sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
        self.environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """Put the fault in, and take it out again."""
        path = self.root / mutation.file
        before = path.read_text(encoding="utf-8")
        path.write_text(mutation.text(before), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def failing_engine_tests(self) -> list[str]:
        """Build the C++ tests and return the names of those that fail."""
        if not self.build.exists():
            self._must("cmake", "-S", self.root, "-B", self.build, "-G", "Ninja",
                       "-DDCQCN_GYM_PYTHON=OFF", "-DDCQCN_GYM_TESTS=ON",
                       "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1")  # fmt: skip
        self._must("cmake", "--build", self.build, "-j", JOBS)
        done = self._call("ctest", "--test-dir", self.build, "-E", LONG, "-j", JOBS,
                          "--timeout", "120", "--no-tests=error")  # fmt: skip
        failing = re.findall(r"^\s*\d+ - (\S+) \(", done.stdout, flags=re.MULTILINE)
        if done.returncode != 0 and not failing:
            raise MutationError(f"ctest failed:\n{done.stdout}{done.stderr}")
        return failing

    def failing_python_tests(self, tests: Sequence[str]) -> list[str]:
        """Run these tests on the copy and return the names of those that fail."""
        where = self._must(*self.python, "-c", "import dcqcn_gym; print(dcqcn_gym.__file__)")
        if not Path(where.strip()).is_relative_to(self.root):
            raise MutationError(f"the tests would import {where.strip()} and not the copy")
        done = self._call(*self.python, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider",
                          "-m", "not slow", "-x", *tests)  # fmt: skip
        skipped = re.findall(r"^SKIPPED .*", done.stdout, flags=re.MULTILINE)
        if skipped:
            raise MutationError(f"tests are skipped: {'; '.join(skipped)}")
        failing = re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)", done.stdout, flags=re.MULTILINE)
        if done.returncode != 0 and not failing:
            raise MutationError(f"pytest failed:\n{done.stdout}{done.stderr}")
        return failing

    def caught_by(self, mutation: Mutation) -> list[str]:
        """Return the tests that fail with this fault."""
        with self.mutated(mutation):
            if mutation.tests:
                return self.failing_python_tests(mutation.tests)
            return self.failing_engine_tests()

    def check_without_fault(self, chosen: Iterable[Mutation]) -> None:
        """Raise MutationError if a test fails on the tree as it is."""
        python = sorted({test for mutation in chosen for test in mutation.tests})
        failing = self.failing_python_tests(python) if python else []
        if any(not mutation.tests for mutation in chosen):
            failing += self.failing_engine_tests()
        if failing:
            raise MutationError(f"these tests fail without any fault: {', '.join(failing)}")

    def _call(self, *command: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(part) for part in command], cwd=self.root, env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def _must(self, *command: object) -> str:
        done = self._call(*command)
        if done.returncode != 0:
            raise MutationError(f"{command[0]} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout


def main(words: Sequence[str]) -> int:
    """Try the named faults, a sample, or all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sample", type=int, help="so many of the faults in Python")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    options = parser.parse_args(words)
    known = load()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"no mutation {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in options.names or known]
    if options.sample is not None:
        rules = [mutation for mutation in chosen if mutation.tests]
        chosen = random.Random(options.seed).sample(rules, min(options.sample, len(rules)))
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        try:
            tree = Tree(Path(folder))
            for mutation in chosen:  # all of them before the first is compiled
                mutation.text((tree.root / mutation.file).read_text(encoding="utf-8"))
            tree.check_without_fault(chosen)
        except MutationError as error:
            print(error, file=sys.stderr)
            return 2
        return _try_all(tree, chosen)


def _try_all(tree: Tree, chosen: Sequence[Mutation]) -> int:
    """Print the table; return the exit status."""
    caught = broken = 0
    for mutation in chosen:
        try:
            tests = tree.caught_by(mutation)
        except MutationError as error:
            broken += 1
            print(f"{mutation.name:28} CANNOT BE TRIED: {error}", flush=True)
            continue
        caught += bool(tests)
        print(f"{mutation.name:28} {', '.join(tests) or 'NOT CAUGHT'}", flush=True)
    print(f"{caught} of {len(chosen)} mutations caught")
    if broken:
        return 2
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
