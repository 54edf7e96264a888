"""Submissions for tests: a small suite, an entry of a plug-in or of ours, and a verifier."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.benchmarks.leaderboard import ranking
from dcqcn_gym.benchmarks.leaderboard.generator import Drawn, draw_scenarios
from dcqcn_gym.benchmarks.leaderboard.make_suites import Recipe, write_suite
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard, start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.submission import open_submission, write_list
from dcqcn_gym.benchmarks.leaderboard.submit import Author, submit
from dcqcn_gym.benchmarks.leaderboard.tuner_host import sandbox_problem
from dcqcn_gym.benchmarks.leaderboard.verification import Verification
from dcqcn_gym.benchmarks.leaderboard.verify import Verifier
from dcqcn_gym.core.compressed_files import pack

DAY = "2026-11-22"
AUTHOR = Author(["A. Nonymous"], "MIT", "online")
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
"""The body of a plug-in that keeps the default: S = 0, no flags."""


class Here(Executor):
    """Carries a job out at once, in this process."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def quick_intervals() -> Iterator[None]:
    """Draw fewer resamples, where bytes are compared and no intervals; the body of a fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "RESAMPLES", 50)
        yield


def need_sandbox() -> None:
    """Skip a test where there can be no sandbox, unless this run says that there has to be one."""
    problem = sandbox_problem()
    if problem is not None and os.environ.get("DCQCN_GYM_SANDBOX_TESTS") != "required":
        pytest.skip(problem)
    assert problem is None, problem


def tiny_suite(folder: Path, scenarios: int = 1, salt: str = "smoke") -> str:
    """Write a suite of some scenarios with six intervals; return its path."""
    write_suite(Recipe("tiny", "for tests", salt, scenarios, 6, 1, 1, 4), folder)
    return str(folder)


def twice_suite(folder: Path) -> str:
    """Write a suite of one scenario with two repetitions, one for slow entries; return its path."""
    write_suite(Recipe("tiny", "for tests", "smoke", 1, 6, 2, 1, 4), folder)
    return str(folder)


def three_scenarios(folder: Path) -> str:
    """Write a suite of three scenarios with six intervals and two repetitions; return its path."""
    write_suite(Recipe("tiny", "for tests", "smoke", 3, 6, 2, 1, 4), folder)
    return str(folder)


def second_suite(folder: Path, scenarios: int = 1, repetitions: int = 1) -> str:
    """Write a suite of protocol 2 with six intervals; return its path."""
    listed = tuple(draw_scenarios("smoke", scenarios, 6))
    write_suite(
        Recipe("tiny-v2", "for tests", intervals=6, repetitions=repetitions, slow_repetitions=1,
               final_intervals=6, listed=listed, protocol=2),
        folder,
    )  # fmt: skip
    return str(folder)


class _Steady(Recipe):
    """One steady scenario of each salt."""

    def scenarios(self) -> list[Drawn]:
        drawn = ((salt, draw_scenarios(salt, 1, self.intervals)[0]) for salt in self.salt)
        return [replace(one, name=f"{salt}-steady") for salt, one in drawn]


def steady_suite(folder: Path, salts: str) -> str:
    """Write a suite of steady scenarios, named after the letters they are drawn from."""
    write_suite(_Steady("tiny", "for tests", salts, len(salts), 6, 1, 1, 12), folder)
    return str(folder)


def leaderboard_of(suite: str, tuner: str, out: Path) -> Leaderboard:
    """Return a finished leaderboard with one entry beside the default."""
    board = start_leaderboard(suite, [tuner], out)
    assert board.carry_out(executor=Here()) == {}
    return board


def submission_of(suite: str, tuner: str, folder: Path) -> Path:
    """Run a tuner on a suite and hand it in; return the submission's folder."""
    board = leaderboard_of(suite, tuner, folder / "leaderboard")
    return submit(board, tuner, folder / "submission", AUTHOR)


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
