"""Show that hand-worked tables take every branch of a scheme: ``python tools/branches.py``.

Builds the C++ tests of :data:`SCHEMES` with gcc's coverage, without optimisation, into
``build/tables``; runs each with ``--tables``, which leaves nothing but its tables of ten steps and
more; and prints, scheme by scheme and file by file, how many branches of conditions were taken.
Ends with 1 if one was not, and names its line. Names of schemes as arguments choose some.
A branch is an outcome of a condition or of a part of it, as gcc counts them. What exceptions add is
left out, and so are lines that read a scenario's options (``spec.``): compiled_text_test has them.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "tables"
FOLDER = "engine/model/schemes/"


@dataclass(frozen=True)
class Rules:
    """The files that hold a scheme's rules, and the tests with its tables."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


SCHEMES: Mapping[str, Rules] = {
    "dcqcn": Rules(("dcqcn.hpp",), ("dcqcn_table_test", "dolce_rc_test")),
    "dcqcn-plus": Rules(
        ("dcqcn_plus.hpp", "congested_list.hpp"), ("dcqcn_plus_test", "dcqcn_plus_table_test")
    ),
    "dolce-rc": Rules(
        ("dolce_rc.hpp", "dolce_connections.hpp", "dr_ucb.hpp", "dr_ucb_fixed.hpp"),
        ("dolce_rc_test", "dr_ucb_test"),
    ),
    "dolce-rc-plus": Rules(
        ("dolce_plus.hpp", "dolce_connections.hpp", "dr_ucb.hpp"),
        ("dolce_plus_test", "dr_ucb_test"),
    ),
    "timely": Rules(("timely.hpp",), ("timely_test",)),
}
"""dcqcn: both modes and D-static; only in Dolce-RC can its target fall below its rate."""

CONDITION = re.compile(r"\b(if|while|for)\b|\?|&&|\|\|")

Branches = dict[tuple[int, int], int]
"""{(line, number of the branch on it): how often it was taken}"""


def build(tests: Sequence[str]) -> None:
    """Compile these tests with coverage."""
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    configure = [
        "cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", "-DDCQCN_GYM_PYTHON=OFF",
        "-DDCQCN_GYM_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=--coverage -O0",
    ]  # fmt: skip
    compiled = ["cmake", "--build", str(BUILD), "-j", "2", "--target", *tests]
    for command in (configure, compiled):
        subprocess.run(command, check=True, env=tools, stdout=subprocess.DEVNULL)


def taken(tests: Sequence[str]) -> dict[str, Branches]:
    """Run the tables of these tests; return the branches of every file of the schemes' folder."""
    for stale in BUILD.rglob("*.gcda"):
        stale.unlink()
    for test in tests:
        subprocess.run([str(BUILD / test), "--tables"], check=True, stdout=subprocess.DEVNULL)
    reports = BUILD / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    notes = [str(path) for path in BUILD.rglob("*.gcda")]
    subprocess.run(
        ["gcov", "--branch-probabilities", "--json-format", *notes],
        check=True, cwd=reports, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    found: dict[str, Branches] = defaultdict(lambda: defaultdict(int))
    for path in reports.glob("*.json.gz"):
        for file in json.loads(gzip.decompress(path.read_bytes()))["files"]:
            name = str(file["file"]).rpartition(FOLDER)[2]
            if FOLDER in file["file"]:
                add(found[name], file["lines"], (ROOT / FOLDER / name).read_text().splitlines())
    return found


def add(branches: Branches, lines: Sequence[Mapping[str, Any]], source: Sequence[str]) -> None:
    """Add what gcov tells of these lines; a template's lines come once for each instance."""
    for line in lines:
        number = int(line["line_number"])
        if not CONDITION.search(source[number - 1]) or "spec." in source[number - 1]:
            continue
        for at, count in enumerate(outcomes(line["branches"])):
            branches[number, at] += count


def outcomes(branches: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """Yield the counts of conditions: pairs, of which a call that may throw makes one as well."""
    for pair in zip(branches[::2], branches[1::2], strict=False):
        if not any(branch["throw"] for branch in pair):
            yield from (int(branch["count"]) for branch in pair)


def main(chosen: Sequence[str]) -> int:
    """Print the table; return the exit status."""
    if unknown := set(chosen) - set(SCHEMES):
        print(f"unknown scheme {', '.join(sorted(unknown))}; expected some of {', '.join(SCHEMES)}")
        return 2
    rules = {name: SCHEMES[name] for name in chosen or SCHEMES}
    build(sorted({test for rule in rules.values() for test in rule.tests}))
    missing = []
    for scheme, rule in rules.items():
        found = taken(rule.tests)
        for file in rule.files:
            counts = found[file]
            hit = len([n for n in counts.values() if n > 0])
            print(f"{scheme:14}{file:24}{hit:4} of {len(counts):3} branches", flush=True)
            source = (ROOT / FOLDER / file).read_text().splitlines()
            missing += [
                f"  {file}:{line}, outcome {at} was never seen: {source[line - 1].strip()}"
                for (line, at), n in sorted(counts.items())
                if n == 0
            ]
    print("\n".join(missing) or "every branch is taken")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
