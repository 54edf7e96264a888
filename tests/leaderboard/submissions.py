"""Submissions for tests: a small suite, an entry of a plug-in or of ours, and a verifier."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.benchmarks.leaderboard.generator import DrawnScenario
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard, start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.season import write_suite
from dcqcn_gym.benchmarks.leaderboard.submission import open_submission, write_list
from dcqcn_gym.benchmarks.leaderboard.submit import submit
from dcqcn_gym.benchmarks.leaderboard.suite import SUITES, load_suite
from dcqcn_gym.benchmarks.leaderboard.tuner_host import sandbox_problem
from dcqcn_gym.benchmarks.leaderboard.verification import Verification
from dcqcn_gym.benchmarks.leaderboard.verify import Verifier
from dcqcn_gym.core.compressed_files import pack
from dcqcn_gym.core.config import read_toml

DAY = "2026-11-22"
AUTHOR: dict[str, Any] = {"authors": ["A. Nonymous"], "licence": "MIT", "category": "online"}
SCENARIO = "00-fast-uplinks-steady"
"""The one of :func:`tiny_suite`."""

SOURCE = """
import gc, hashlib, os, socket, sys, time
from pathlib import Path
from dcqcn_gym.tuners.random_search import RandomTuner

class Mine(RandomTuner):
    name = summary = "mine"

{body}
"""


CALM = """
def ask(self):
    return self.context.base

def recommend(self):
    return self.context.base
"""
"""The body of a plug-in that keeps the default: R = 0."""


class Here(Executor):
    """Carries a job out at once, in this process."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def need_sandbox() -> None:
    """Skip a test where there can be no sandbox, unless this run says that there has to be one."""
    problem = sandbox_problem()
    if problem is not None and os.environ.get("DCQCN_GYM_SANDBOX_TESTS") != "required":
        pytest.skip(problem)
    assert problem is None, problem


def smoke_scenarios(count: int, intervals: int) -> list[DrawnScenario]:
    """Return the first scenarios of suite ``smoke``, shortened; traffic changes at its thirds."""
    first, last = intervals // 3, intervals // 3 + intervals // 4
    found = []
    for one in load_suite("smoke").file.scenarios[:count]:
        table = read_toml(SUITES / "smoke" / f"{one.name}.toml") | {"intervals": intervals}
        if one.phases:
            start, stop = (table["warmup_us"] + 1_000 * at for at in (first, last))
            table["workloads"][1] |= {"start_us": start, "stop_us": stop}
        phases = (0, first, last) if one.phases else ()
        found.append(DrawnScenario(one.name, one.third, table, phases))
    return found


def small_suite(
    folder: Path, scenarios: int, intervals: int, final_intervals: int, repetitions: int = 1,
    name: str = "tiny",
) -> str:  # fmt: skip
    """Write a suite of short scenarios; return its path."""
    write_suite(
        folder, name, smoke_scenarios(scenarios, intervals), intervals=intervals,
        final_intervals=final_intervals, repetitions=repetitions, description="for tests",
    )  # fmt: skip
    return str(folder)


def tiny_suite(folder: Path, scenarios: int = 1) -> str:
    """Write a suite of some scenarios with six intervals; return its path."""
    return small_suite(folder, scenarios, 6, 4)


def twice_suite(folder: Path) -> str:
    """Write a suite of one scenario with two repetitions, one for slow entries; return its path."""
    return small_suite(folder, 1, 6, 4, 2)


def three_scenarios(folder: Path) -> str:
    """Write a suite of three scenarios with six intervals and two repetitions; return its path."""
    return small_suite(folder, 3, 6, 4, 2)


def second_suite(folder: Path, scenarios: int = 1, repetitions: int = 1) -> str:
    """Write a suite whose final runs are as long as the others; return its path."""
    return small_suite(folder, scenarios, 6, 6, repetitions, "tiny-v2")


def steady_suite(folder: Path, salts: str) -> str:
    """Write a suite of steady scenarios of other loads, named after letters."""
    (one,) = smoke_scenarios(1, 6)
    drawn = []
    for i, letter in enumerate(salts):
        table = {**one.table, "workloads": [{**one.table["workloads"][0], "load": 0.15 + 0.03 * i}]}
        drawn.append(replace(one, name=f"{letter}-steady", table=table))
    write_suite(folder, "tiny", drawn, intervals=6, final_intervals=12, repetitions=1)
    return str(folder)


def leaderboard_of(suite: str, tuner: str, out: Path) -> Leaderboard:
    """Return a finished leaderboard with one entry beside the default."""
    board = start_leaderboard(suite, [tuner], out)
    assert board.carry_out(executor=Here()) == {}
    return board


def submission_of(suite: str, tuner: str, folder: Path) -> Path:
    """Run a tuner on a suite and hand it in; return the submission's folder."""
    board = leaderboard_of(suite, tuner, folder / "leaderboard")
    return submit(board, tuner, folder / "submission", **AUTHOR)


def verified(
    folder: Path, suite: str, *, problem: Callable[[], str | None] = sandbox_problem, **given: Any
) -> Verification:
    """Return what a verifier finds; its runs and the verdicts lie beside the submission."""
    given = {"fresh": 1, "deadline_s": 300.0, "verdicts": verdicts(folder), **given}
    return Verifier(
        folder.parent / "work", DAY, "salt", suite=suite, executor=Here(), problem=problem, **given
    ).verify(folder)


def verdicts(folder: Path) -> Path:
    """Return the folder of verdicts of whoever verifies a submission here."""
    return folder.parent / "verdicts"


def plugin(folder: Path, body: str) -> str:
    """Write a plug-in whose class has this body; return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    (folder / "mine.py").write_text(SOURCE.format(body=lines))
    return f"{folder}/mine.py:Mine"


def edit_log(folder: Path, name: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the lines of a log as a forger would: everything that lists it is made anew."""
    data = open_submission(folder).read_log(name)
    lines = [json.loads(line) for line in data.splitlines()]
    change(lines)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (folder / name).write_bytes(pack(text.encode()))
    write_list(folder)


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    """Change a JSON file in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2) + "\n")
