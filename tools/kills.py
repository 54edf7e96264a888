"""Kill -9 at random moments, resume, compare bytes: ``python tools/kills.py --kills 100``.

Each command runs once undisturbed. Then it is started again and again, killed after a random time
(the program alone, one of the processes that it started, or all of them), and continued by the
command that its own words recommend, until it reaches its end. Its files must then have the bytes
of the undisturbed ones, and nothing that it started may be left. The same seed draws the same
moments, as shares of the undisturbed time; where in a run they fall depends on the machine.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

PLUGIN = """
import time
from dcqcn_gym.tuners.random_search import RandomTuner

class Slow(RandomTuner):
    name = summary = "slow"

    def ask(self):
        time.sleep(0.02)
        return super().ask()
"""
FAKE = ("--scenario", "mini-fb-hadoop", "--backend", "fake")
RESULTS = ("*.jsonl", "best.json", "*.toml", "policy.npz")
"""Files whose bytes are promised; seconds stand in others."""
PATIENCE_S = 600
WHOM = ("program", "child", "session")
"""What is killed, in equal shares."""


@dataclass(frozen=True)
class Case:
    """A command that leaves files in ``out``, and the one that goes on after a kill."""

    name: str
    start: Callable[[Path], list[str]]
    go_on: Callable[[Path], list[str]]
    more: tuple[str, ...] = ()
    """Patterns of further files whose bytes are promised."""


def _words(*words: object) -> list[str]:
    return [str(word) for word in words]


def cases(folder: Path) -> list[Case]:
    """Return the commands; training only where its packages are installed."""
    plugin = folder / "slow.py"
    plugin.write_text(PLUGIN, encoding="utf-8")

    def tune(tuner: str, intervals: int, *more: str) -> Callable[[Path], list[str]]:
        fixed = ("--intervals", intervals, "--eval-seeds", 1, "--quiet", "--no-report", *more)
        return lambda out: _words("tune", "--tuner", tuner, *fixed, "--out", out)

    def compare(out: Path) -> list[str]:
        return _words(
            "compare", *FAKE, "--tuners", "default,paraleon,random", "--seeds", 2, "--intervals",
            40,
            "--eval-seeds", 1, "--eval-intervals", 10, "--quiet", "--jobs", 2, "--out", out,
        )  # fmt: skip

    def compare_on(out: Path) -> list[str]:
        if not (out / "study.json").exists():
            return compare(out)
        return _words("compare", "--quiet", "--jobs", 2, "--out", out)

    def pretrain(out: Path) -> list[str]:
        return _words(
            "train", "--tuner", "pretrained", *FAKE, "--steps", 60, "--force",
            "--out", out / "setting.toml",
        )  # fmt: skip

    def train(out: Path) -> list[str]:
        return _words(
            "train", "--algo", "dqn", *FAKE, "--steps", 2000, "--checkpoint", 200, "--envs", 1,
            "--quiet", "--out", out,
        )  # fmt: skip

    def board(out: Path) -> list[str]:
        return _words(
            "bench", "run", "smoke", "--tuners", f"expert,paraleon,{plugin}:Slow",
            "--repetitions", 1, "--jobs", 2, "--quiet", "--out", out,
        )  # fmt: skip

    def board_on(out: Path) -> list[str]:
        if not (out / "study.json").exists():
            return board(out)
        return _words("bench", "run", "--out", out, "--jobs", 2, "--quiet")

    native = ("--scenario", "mini-fb-hadoop")
    plain = tune("paraleon", 60, *native)
    hosted = tune(f"{plugin}:Slow", 60, *FAKE)
    found = [
        Case("tune", plain, plain),
        Case("tune of a plug-in", hosted, hosted),
        Case("compare", compare, compare_on),
        Case("pretrain", pretrain, pretrain),
        Case("leaderboard", board, board_on, ("results.json", "leaderboard.md", "study.json")),
    ]
    if importlib.util.find_spec("stable_baselines3") is not None:
        found.append(Case("train", train, train))
    return found


def results(case: Case, out: Path) -> dict[str, bytes]:
    """Return every file whose bytes are promised."""
    paths = sorted(path for pattern in (*RESULTS, *case.more) for path in out.rglob(pattern))
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def begin(words: Sequence[str], said: Path) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own."""
    with said.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "dcqcn_gym.cli", *words],
            stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip


def finish(words: Sequence[str], said: Path) -> None:
    """Run a command to its end; RuntimeError with its words if it fails."""
    process = begin(words, said)
    if process.wait(PATIENCE_S) != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}: {said.read_text()}")


def left_alive(mark: str) -> list[int]:
    """Return the processes that still have ``mark`` (a folder's name) among their words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:  # it has just ended
            continue
        if mark.encode() in words and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def children(parent: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    tasks = Path(f"/proc/{parent}/task")
    try:
        told = " ".join((task / "children").read_text() for task in tasks.iterdir())
    except OSError:  # it has just ended
        return []
    return [int(word) for word in told.split()]


def kill(process: subprocess.Popen[bytes], whom: str, random: Random) -> bool:
    """Kill the program, a "child" of it or its "session"; True if it was still running.

    A program whose child died ends by itself, or goes on to its end without it.
    """
    running = process.poll() is None
    found = children(process.pid) if whom == "child" else []
    if running and found:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(random.choice(found), signal.SIGKILL)
    elif running:
        (os.killpg if whom == "session" else os.kill)(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)
    return running


@dataclass
class Campaign:
    """Undisturbed results by case, and what the kills gave."""

    folder: Path
    random: Random
    counts: Counter[str]

    def undisturbed(self, case: Case) -> tuple[dict[str, bytes], float]:
        """Return the files and the seconds of a run that nobody disturbs."""
        out = self.folder / case.name.replace(" ", "-") / "whole"
        out.mkdir(parents=True)
        at = time.monotonic()
        finish(case.start(out), self.folder / "said")
        return results(case, out), time.monotonic() - at

    def disturbed(self, case: Case, number: int, expected: dict[str, bytes], whole: float) -> int:
        """Start, kill and go on until the end; return the kills that met a running program."""
        out = self.folder / case.name.replace(" ", "-") / f"killed-{number}"
        out.mkdir()
        said, kills, words = self.folder / "said", 0, case.start(out)
        while True:
            process = begin(words, said)
            time.sleep(self.random.random() * whole)
            met = kill(process, self.random.choice(WHOM), self.random)
            kills += met
            held = len(results(case, out))
            self.counts["nothing yet" if not held else "all of it" if not met else "some"] += 1
            words = case.go_on(out)
            if not met or self.random.random() < 0.6:
                break
        finish(words, said)
        left = results(case, out)
        if left != expected:
            wrong = [n for n in sorted({*expected, *left}) if left.get(n) != expected.get(n)]
            raise RuntimeError(f"{case.name}, {out}: {', '.join(wrong)} differ after {kills} kills")
        return kills


def main(arguments: Sequence[str]) -> int:
    """Kill as often as asked, in turn over the commands; 1 if something differs or is left."""
    parser = argparse.ArgumentParser(prog="tools/kills.py", description=__doc__)
    parser.add_argument("names", nargs="*", help="commands; default: all that can run here")
    parser.add_argument("--kills", type=int, default=100, help="kills in all (default: 100)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kills-") as temporary:
        folder = Path(temporary)
        campaign = Campaign(folder, Random(options.seed), Counter())
        chosen = [c for c in cases(folder) if not options.names or c.name in options.names]
        if not chosen:
            parser.error(f"expected some of {', '.join(c.name for c in cases(folder))}")
        undisturbed = functools.cache(campaign.undisturbed)
        done: Counter[str] = Counter()
        number = 0
        while done.total() < options.kills:
            case = chosen[number % len(chosen)]
            done[case.name] += campaign.disturbed(case, number, *undisturbed(case))
            number += 1
            print(f"{done.total()} kills, {number} runs to equal bytes: {case.name}", flush=True)
        time.sleep(2.0)
        left = left_alive(folder.name)
    for name, kills in done.items():
        print(f"{name}: {kills} kills")
    print(f"files found after a stop: {dict(campaign.counts)}")
    print(f"{done.total()} kills, {number} runs continued to equal bytes, {len(left)} left alive")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
