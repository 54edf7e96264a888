"""Two builds of the engine side by side: ``python tools/speed/compare.py BASE HEAD [--pairs N]``.

BASE and HEAD are programs ``engine_bench`` (``cmake --build FOLDER --target engine_bench``); those
of states before there was one are built from the same file, engine/tests/bench/engine_bench.cpp.
Runs take turns, both must do the same to the last byte, and what counts is the median of the ratios
of the pairs. Instructions, which no load of the machine changes, come from valgrind, on the first
microseconds of each job; ``--profile`` shows where they are, and where valgrind's model of the
caches (32 kB, then 1 MB; 64 bytes a line) misses: tools/speed/profile.txt is the committed table.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from engine_speed import JOBS, Job
from rich.console import Console

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.knobs import ECN_KNOBS
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.table import Table

__all__ = ["app", "job_text"]

app = typer.Typer(add_completion=False)
COMPARED = ("all-to-all", "permutation", "uplink30", "pfc-storm", "incast-2000")
FIRST_US = 2000
"""So much of a job valgrind runs: it takes fifty times as long."""
CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64")
EVENTS = ("Ir", "D1mr", "D1mw", "DLmr", "DLmw")
Counts = dict[str, list[int]]
"""Of functions, and of ``all``: instructions, misses of the first cache, misses of the second."""


def job_text(job: Job, seed: int = 1) -> str:
    """Return a job as ``engine_bench`` reads it: the compiled scenario and its setting."""
    scenario = job.scenario()
    setting, table = job.setting(scenario), scenario.table
    si = {name: table[name].to_si(setting[name]) for name in (*table.nic, *table.ecn)}
    rows = {"nic": table.nic, "ecn": ECN_KNOBS}
    script = [f"{kind} * {' '.join(repr(si[n]) for n in names)}" for kind, names in rows.items()]
    return "\n".join([compile_scenario(scenario).rstrip(), f"seed {seed}", *script, "apply", ""])


@dataclass(frozen=True)
class Compared:
    """One job on both: CPU seconds of each pair, and instructions of the first microseconds."""

    job: str
    hops: int
    cpu_s: tuple[tuple[float, float], ...]
    instructions: tuple[int, int] | None

    @property
    def ratios(self) -> list[float]:
        """How many times as fast the second is as the first, pair by pair, in order of size."""
        return sorted(base / head for base, head in self.cpu_s)

    def row(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        ratios, (base, head) = (
            self.ratios,
            (statistics.median(c) for c in zip(*self.cpu_s, strict=True)),
        )
        counted = ("",) * 3
        if self.instructions is not None:
            old, new = self.instructions
            counted = (f"{old / 1e6:.0f}", f"{new / 1e6:.0f}", f"{old / new:.2f}")
        return (
            self.job, f"{base * 1e9 / self.hops:.1f}", f"{head * 1e9 / self.hops:.1f}",
            f"{statistics.median(ratios):.2f}", f"{ratios[0]:.2f} to {ratios[-1]:.2f}", *counted,
        )  # fmt: skip


COLUMNS = (
    "job", "ns per hop before", "after", "ratio", "of all pairs",
    "M instructions before", "after", "ratio",
)  # fmt: skip


@app.command()
def main(
    base: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    head: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of runs per job.")] = 10,
    job: Annotated[
        list[str] | None, typer.Option(help="Only this job; repeatable. Default: five.")
    ] = None,
    most_us: Annotated[
        int | None, typer.Option(min=1, help="Cut jobs off here. Default: to their ends.")
    ] = None,
    instructions: Annotated[
        bool, typer.Option("--instructions/--no-instructions", help="Count them with valgrind.")
    ] = True,
    profile: Annotated[
        int, typer.Option(min=0, help="Show so many functions of each job by instructions instead.")
    ] = 0,
) -> None:
    """Compare two builds of the engine on fixed jobs."""
    names = job or list(COMPARED)
    for name in names:
        if name not in JOBS:
            raise UnknownNameError("job", name, JOBS)
    programs = (base, head)
    with (
        tempfile.TemporaryDirectory() as folder,
        Console(stderr=True).status("measuring") as status,
    ):
        found = []
        for name in names:
            file = Path(folder) / f"{name}.job"
            file.write_text(job_text(JOBS[name]))
            status.update(name)
            if profile:
                counts = [profiled(p, file, most_us or FIRST_US) for p in programs]
                typer.echo(f"\n{name}\n\n{profile_table(counts, profile).markdown()}")
                continue
            both = None
            if instructions:
                both = tuple(counted(p, file, most_us or FIRST_US) for p in programs)
            found.append(compared(name, programs, file, pairs, most_us, both))
    if found:
        typer.echo(Table(COLUMNS, [f.row() for f in found]).markdown())


def compared(
    name: str, programs: Sequence[Path], file: Path, pairs: int, most_us: int | None, both: Any
) -> Compared:
    """Run both in turns, the order changing from pair to pair; they must do the same."""
    spent: list[tuple[float, float]] = []
    for pair in range(pairs):
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        done = {i: run(programs[i], file, most_us) for i in order}
        if done[0]["digest"] != done[1]["digest"]:
            raise SystemExit(f"{name}: the builds do not do the same: {done[0]} and {done[1]}")
        spent.append((done[0]["cpu_s"], done[1]["cpu_s"]))
    return Compared(name, done[0]["hops"], tuple(spent), both)


def run(program: Path, file: Path, most_us: int | None) -> dict[str, Any]:
    """Return what ``engine_bench`` says of one run."""
    words = [str(program.resolve()), str(file), "1", *([str(most_us)] if most_us else [])]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def counted(program: Path, file: Path, most_us: int) -> int:
    """Return the instructions of a run, without those of its set-up."""
    return profiled(program, file, most_us, caches=False)["all"][0]


def profiled(program: Path, file: Path, most_us: int, *, caches: bool = True) -> Counts:
    """Return what functions inside ``Simulation::advance`` count; misses only with ``caches``."""
    shown = EVENTS if caches else EVENTS[:1]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}",
             "--collect-atstart=no", "--toggle-collect=dcqcn::Simulation::advance*",
             *(CACHES if caches else ()), str(program.resolve()), str(file), "1", str(most_us)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        text = subprocess.run(
            ["callgrind_annotate", "--threshold=100", "--inclusive=no", "--auto=no",
             f"--show={','.join(shown)}", str(out)],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    return counts_of(text, len(shown))


def counts_of(text: str, shown: int) -> Counts:
    """Return what ``callgrind_annotate`` lists of so many events; a nought has no share."""
    found: Counts = {"all": [0, 0, 0]}
    number = r"\s*(?:([\d,]+)(?: \([^)]*\))?|\.)"
    line_of = re.compile(number * shown + r"\s+\S*?:(.+?)(?: \[|$)")
    for line in text.splitlines():
        if match := line_of.match(line):
            *counts, name = match.groups()
            ir, *misses = (int(c.replace(",", "")) if c else 0 for c in counts)
            row = (ir, misses[0] + misses[1], misses[2] + misses[3]) if misses else (ir, 0, 0)
            for key in (function(name), "all"):
                found[key] = [a + b for a, b in zip(found.get(key, (0, 0, 0)), row, strict=True)]
    return found


def function(text: str) -> str:
    """Return the name without arguments, templates and namespaces."""
    text = re.sub(r"'\d+$", "", text).removeprefix("dcqcn::").replace("(anonymous namespace)::", "")
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text.split("(")[0].split(" ")[-1].removeprefix("dcqcn::") or text


def profile_table(counts: Sequence[Counts], n: int) -> Table:
    """Return the ``n`` functions with the most instructions after, beside those before."""
    before, after = counts
    none = [0, 0, 0]
    names = sorted(
        {*before, *after} - {"all"}, key=lambda f: (-after.get(f, none)[0], -before.get(f, none)[0])
    )
    rows = []
    for f in ["all", *names[:n]]:
        old, new = before.get(f, none), after.get(f, none)
        millions = (f"{c / 1e6:.2f}" for pair in zip(old, new, strict=True) for c in pair)
        rows.append((f, *millions, f"{new[0] / after['all'][0]:.1%}"))
    heads = ("instructions", "misses of 32 kB", "misses of 1 MB")
    columns = (f"M {head} {when}" for head in heads for when in ("before", "after"))
    return Table(("function", *columns, "share"), rows)


if __name__ == "__main__":
    run_command(app, sys.argv[1:])
