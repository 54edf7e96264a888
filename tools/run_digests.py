"""Digests of whole runs, recorded once: any change of behaviour shows as a line that differs.

``python tools/run_digests.py`` runs every shipped scenario under ``paraleon`` and every
built-in tuner on the ``mini-`` scenarios (5 intervals of at most 1 ms, seed 1) and compares their
digests with ``tests/digests/runs.txt``; ``--write`` records them, ``--quick`` leaves out the slow
ones. After names of scenarios or tuners only their runs are carried out: the one that is new.
``--keep FOLDER`` stores every log there; where an earlier call left the log of the same run, the
first line that differs from it is shown: call it on the state before, then on the state after.

A run has three digests: of the interval lines of its log, of the log's last line, and of the bytes
of all observations. Line 1 (scenario and versions) is left out. A tuner whose package is missing
is named and counted as not checked. The first line of the file says under which versions it was
recorded: searches follow those of Optuna and cmaes.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dcqcn_gym.core.errors import DcqcnGymError, MissingExtraError
from dcqcn_gym.core.interval import Observation
from dcqcn_gym.core.measured import Interval
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.pool import worker_pool
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import BUILTIN

__all__ = ["Case", "cases", "digest_of", "main", "recorded"]

SEED = 1
INTERVALS = 5
SLOW = ("fat-tree-1024", "fb-hadoop", "job-dense-1024", "nccl-alltoall-128")
"""Scenarios that take more than a second."""

LONGEST_US = 1000.0
"""No interval of a run that has digests is longer: one of 30 ms at 400 Gb/s takes seconds."""

PARTS = ("interval lines", "the last line", "observations")

UNKNOWN = "unknown"
"""Stands for the digests of a tuner that could not be run where they were recorded."""


@dataclass(frozen=True)
class Case:
    """One run that has digests."""

    scenario: str
    tuner: str

    def __str__(self) -> str:
        return f"{self.scenario} {self.tuner}"


Digest: TypeAlias = str
"""Three sha256 in hexadecimal, or :data:`UNKNOWN`."""


def cases(*, quick: bool = False) -> list[Case]:
    """Return every run that has digests, in the order of the file."""
    minis = [name for name in scenario_names() if name.startswith("mini-")]
    others = [name for name in scenario_names() if name not in minis]
    chosen = [Case(name, "paraleon") for name in others if not (quick and name in SLOW)]
    return [Case(name, tuner) for name in minis for tuner in BUILTIN] + chosen


class _Listener(DcqcnEnv):
    """The environment, with a digest of every observation that it hands out."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.seen = hashlib.sha256()

    def reset(self, **options: Any) -> tuple[Observation, dict[str, Any]]:
        result = super().reset(**options)
        self.seen.update(np.ascontiguousarray(result[0]).tobytes())
        return result

    def run_interval(self, *arguments: Any, **options: Any) -> Interval:
        interval = super().run_interval(*arguments, **options)
        self.seen.update(np.ascontiguousarray(interval.observation).tobytes())
        return interval


class _Spec(RunSpec):
    """A run on an environment that listens."""

    def make_env(self) -> _Listener:
        env = _Listener(self.scenario, self.backend, intervals=self.intervals)
        object.__setattr__(self, "env", env)  # frozen, but this is not part of what a run is
        return env


def digest_of(case: Case, log: Path) -> Digest:
    """Carry out the run, write its log, return its digests.

    Raises MissingExtraError if the tuner needs a package that is not installed.
    """
    scenario = load_scenario(case.scenario)
    interval = min(scenario.monitor_interval_us, LONGEST_US)
    scenario = scenario.model_copy(update={"monitor_interval_us": interval})
    spec = _Spec(scenario, case.tuner, SEED, INTERVALS)
    run(spec, log)
    lines = log.read_bytes().splitlines(keepends=True)
    parts = (b"".join(lines[1:-1]), lines[-1])
    env: _Listener = vars(spec)["env"]
    return " ".join([*(hashlib.sha256(part).hexdigest() for part in parts), env.seen.hexdigest()])


def _work(case: Case, log: Path) -> Digest:
    try:
        return digest_of(case, log)
    except MissingExtraError as error:
        log.unlink(missing_ok=True)
        print(f"{case}: {error}", file=sys.stderr)
        return UNKNOWN


def recorded(path: Path) -> dict[Case, Digest]:
    """Return the digests of a file; raise DcqcnGymError naming a line that is not one."""
    found: dict[Case, Digest] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 5 and words[2:] != [UNKNOWN]:
            raise DcqcnGymError(f"{path}:{number}: expected SCENARIO TUNER and three digests")
        found[Case(words[0], words[1])] = " ".join(words[2:])
    return found


def _heading() -> str:
    versions = [f"python {platform.python_version()}"]
    for name in ("numpy", "optuna", "cmaes", "scipy"):
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    return (
        f"# {', '.join(versions)}; {INTERVALS} intervals, seed {SEED}; sha256 of the interval "
        "lines, the last line, the observations\n"
    )


def first_difference(before: Path, after: Path) -> str:
    """Return the first line from line 2 on in which two logs differ, both texts, or ``""``."""
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    for number, pair in enumerate(zip(old[1:], new[1:], strict=False), 2):
        if pair[0] != pair[1]:
            at = next(i for i, (a, b) in enumerate(zip(*pair, strict=False)) if a != b)
            shown = [line[max(0, at - 60) : at + 60] for line in pair]
            return f"line {number}, byte {at}:\n  before ...{shown[0]}\n  after  ...{shown[1]}"
    return "" if len(old) == len(new) else f"{len(old)} lines before, {len(new)} after"


def _run_all(chosen: Sequence[Case], folder: Path) -> Iterator[tuple[Case, Digest]]:
    """Yield the digests as they come, the largest networks first; logs end as ``.new``."""
    with worker_pool() as pool:
        futures = {
            pool.submit(_work, case, folder / f"{case.scenario}.{case.tuner}.new"): case
            for case in reversed(chosen)
        }
        for done, future in enumerate(as_completed(futures), 1):
            case = futures[future]
            print(f"{done}/{len(chosen)} {case}", file=sys.stderr, flush=True)
            yield case, future.result()


def _keep(case: Case, folder: Path) -> str:
    """Give a new log its name; return how it differs from the one of an earlier call."""
    new, kept = (folder / f"{case.scenario}.{case.tuner}.{end}" for end in ("new", "jsonl"))
    if not new.exists():
        return ""
    if not kept.exists():
        new.rename(kept)
        return ""
    difference = first_difference(kept, new)
    if not difference:
        new.unlink()
    return difference


def _check(found: dict[Case, Digest], path: Path) -> int:
    """Print every run that differs from the file, and how many agree; return the exit status."""
    known = recorded(path)
    unchecked = [case for case, now in found.items() if UNKNOWN in (now, known.get(case))]
    wrong = [case for case in found if case not in unchecked and found[case] != known.get(case)]
    for case in wrong:
        if case not in known:
            print(f"{case}: not in {path}; add it with --write")
            continue
        parts = zip(PARTS, known[case].split(), found[case].split(), strict=True)
        print(f"{case}: {', '.join(name for name, old, new in parts if old != new)} differ")
    if unchecked:
        print(f"not checked, a package was or is missing: {', '.join(map(str, unchecked))}")
    agree = len(found) - len(wrong) - len(unchecked)
    print(f"{agree} of {len(found)} runs as recorded, {len(wrong)} differ")
    if wrong:
        print(f"recorded under {path.read_text(encoding='utf-8').splitlines()[0][2:]}")
    return 1 if wrong or not agree else 0


def _write(found: dict[Case, Digest], path: Path) -> None:
    """Record the digests; one that cannot be computed here stays as it is in the file."""
    old = recorded(path) if path.exists() else {}
    known = {case: old.get(case, now) if now == UNKNOWN else now for case, now in found.items()}
    lines = [f"{case} {known.get(case, old.get(case, UNKNOWN))}\n" for case in cases()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_heading() + "".join(lines), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Check (the default) or write the digests; 1 if one differs."""
    parser = argparse.ArgumentParser(prog="python tools/run_digests.py")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only of this scenario or tuner")
    parser.add_argument("--check", action="store_true", help="compare with the file (the default)")
    parser.add_argument("--write", action="store_true", help="record the digests in the file")
    parser.add_argument("--quick", action="store_true", help="leave out the slow scenarios")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="store logs, show differences")
    parser.add_argument("--file", type=Path, default=Path("tests/digests/runs.txt"))
    options = parser.parse_args(arguments)
    if options.check and options.write:
        parser.error("--check and --write exclude each other")
    if not options.write:
        try:
            recorded(options.file)  # before anything runs
        except (OSError, DcqcnGymError) as error:
            parser.error(f"{error}; run it in the repository, or record with --write")
    chosen = cases(quick=options.quick)
    names = {*options.names}
    if unknown := names - {name for c in chosen for name in (c.scenario, c.tuner)}:
        parser.error(f"{', '.join(sorted(unknown))}: no scenario or tuner that has digests")
    chosen = [c for c in chosen if not names or names & {c.scenario, c.tuner}]
    found: dict[Case, Digest] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if options.keep is None else options.keep
        folder.mkdir(parents=True, exist_ok=True)
        for case, now in _run_all(chosen, folder):
            found[case] = now
            difference = _keep(case, folder)
            if difference:
                print(f"{case}: {difference}")
    found = {case: found[case] for case in chosen}
    if options.write:
        _write(found, options.file)
        return 0
    return _check(found, options.file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
