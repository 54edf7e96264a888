"""One rule for every command that makes many runs, and for those that make one.

The same continues, more is added, other is refused with what differs, ``--force`` replaces it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.runs.study import Study
from programs import program_of

FAKE = ("--scenario", "mini-fb-hadoop", "--backend", "fake")


@dataclass(frozen=True)
class Asked:
    """A command in four ways, without ``--out``."""

    first: Sequence[str]
    more: Sequence[str]
    """What is given in place of or behind ``first`` adds to it."""
    other: Sequence[str]
    differs: str
    """What the refusal of ``other`` names."""


PLAN = """description = "Two tuners."
intervals = {intervals}
seeds = {seeds}
tables = [{{ kind = "held-out" }}]
[[cases]]
scenario = "mini-fb-hadoop"
[[entries]]
name = "default"
backend = "fake"
"""


def _compare(_: Path) -> Asked:
    words = ["compare", *FAKE, "--tuners", "default", "--seeds", "1", "--intervals", "4"]
    words += ["--eval-seeds", "1", "--eval-intervals", "2"]
    return Asked(
        words, ("compare", "--tuners", "random", "--seeds", "2"),
        ("compare", "--intervals", "5"), "intervals = 4, now it is 5",
    )  # fmt: skip


def _sweep(_: Path) -> Asked:
    words = ("sweep", *FAKE, "--intervals", "2", "--seeds", "1", "--knob")
    return Asked(
        (*words, "kmax=100,400"), (*words, "kmax=100,200,400", "--seeds", "2"),
        (*words, "kmax=100", "--set", "kmin=50"), "entry kmax-100, changes.initial.kmin",
    )  # fmt: skip


def _study(folder: Path) -> Asked:
    for name, values in {"first": (3, 1), "more": (3, 2), "other": (4, 1)}.items():
        text = PLAN.format(intervals=values[0], seeds=values[1])
        (folder / f"{name}.toml").write_text(text)
    first, more, other = (("study", str(folder / f"{n}.toml")) for n in ("first", "more", "other"))
    return Asked(first, more, other, "intervals = 3, now it is 4")


def _evaluate(_: Path) -> Asked:
    words = ("evaluate", "ppo-mini", "--beside", "default", "--backend", "fake", "--seeds", "1")
    return Asked(
        (*words, "--intervals", "2"), (*words, "--intervals", "2", "--scenario", "mini-storm"),
        (*words, "--intervals", "3"), "intervals = 2, now it is 3",
    )  # fmt: skip


def _figure(_: Path) -> Asked:
    words = ("paper", "run", "R-fig3", "--size")
    return Asked((*words, "smoke"), (), (*words, "quick"), 'size = "smoke", now it is "quick"')


def _monitors(folder: Path) -> Asked:
    text = 'scenario = "mini-fb-hadoop"\nlong = ""\nrounds = ""\nintervals_ms = [1]\n'
    text += "loads = [30]\nlength_ms = 2\n"
    for name, rest in {
        "first": "seeds = [1]\nwarmup_ms = 1",
        "more": "seeds = [1, 2]\nwarmup_ms = 1",
        "other": "seeds = [1]\nwarmup_ms = 2",
    }.items():
        (folder / f"{name}.toml").write_text(text + rest)
    first, more, other = (
        ("paper", "monitors", str(folder / f"{name}.toml")) for name in ("first", "more", "other")
    )
    return Asked(first, more, other, "warmup_ms = 1, now it is 2")


def _simulate(_: Path) -> Asked:
    words = ("simulate", "--scenario", "mini-fb-hadoop", "--intervals", "2", "--seed")
    return Asked((*words, "1"), (), (*words, "2"), "seed = 1, now it is 2")


def _tune(_: Path) -> Asked:
    words = ("tune", *FAKE, "--tuner", "random", "--no-report", "--quiet", "--intervals")
    return Asked(
        (*words, "4", "--eval-seeds", "1"), (*words, "4", "--eval-seeds", "2"),
        (*words, "5", "--eval-seeds", "1"), "intervals = 4, now it is 5",
    )  # fmt: skip


EVERY: dict[str, Callable[[Path], Asked]] = {
    "compare": _compare,
    "sweep": _sweep,
    "study": _study,
    "evaluate": _evaluate,
    "paper run": _figure,
    "paper monitors": _monitors,
    "simulate": _simulate,
    "tune": _tune,
}
RESULTS = {"paper run": "results.jsonl", "simulate": "summary.json", "tune": "best.json"}
"""Where it is not ``results.json``."""
ALONE = ("simulate", "tune")
"""They make one run, and have no ``--jobs``."""


@pytest.mark.parametrize("command", EVERY)
def test_the_same_continues_more_is_added_other_is_refused(
    command: str, tmp_path: Path, in_threads: None
) -> None:
    asked, out = EVERY[command](tmp_path), tmp_path / "out"
    workers = () if command in ALONE else ("--jobs", "1")
    results = out / RESULTS.get(command, "results.json")

    def said(words: Sequence[str]) -> str:
        program, given = program_of([*words, *workers, "--out", str(out)])
        done = CliRunner().invoke(program, given)
        assert done.exit_code == 0 or isinstance(done.exception, RunError), done.output
        return str(done.exception or "")

    def runs() -> dict[str, bytes]:
        names = ("**/*.jsonl", "cells/*", "*-seed*.json", "flows.csv")
        made = [path for name in names for path in out.glob(name) if path != results]
        return {str(path.relative_to(out)): path.read_bytes() for path in made}

    assert said(asked.first) == ""
    first = runs()
    assert first
    whole = results.read_bytes()
    places = {name: (out / name).stat().st_ino for name in first}
    cut = max(first) if command != "simulate" else ""  # whose files appear together
    if cut:
        (out / cut).write_bytes(first[cut][:-200])
    if command != "tune":
        assert json.loads((out / "study.json").read_bytes())["kind"] == command
    assert said(asked.first) == ""
    assert set(runs()) == set(first)
    assert {n: (out / n).stat().st_ino for n in first if n != cut} == {
        name: inode for name, inode in places.items() if name != cut
    }
    if command not in ("compare", "paper monitors"):  # they tell CPU time
        assert results.read_bytes() == whole

    first = runs()
    assert asked.differs in said(asked.other)
    assert runs() == first
    if asked.more:
        assert said(asked.more) == ""
        assert len(runs()) > len(first)
        assert {name: runs()[name] for name in first} == first
    if command == "compare":
        asked = Asked((), (), (*asked.first, *asked.other[1:]), "")
    assert said((*asked.other, "--force")) == ""
    assert any(runs().get(name) != content for name, content in first.items())


@dataclass(frozen=True)
class Note:
    files: tuple[Path, ...]


def _notes(out: Path, *names: str, what: object = 1, same: object = 1) -> Study[Note]:
    jobs: dict[tuple[str, ...], Note] = {(name, "1"): Note((out / name,)) for name in names}
    parts: dict[str, dict[str, Any]] = {
        "entry": {name: {"made of": what} for name in names},
        "seed": {"1": None},
    }
    return Study("notes", {"length": same}, parts, jobs)


def test_files_that_a_folder_does_not_know_are_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("of somebody else")
    _notes(tmp_path, "a").begin(tmp_path)
    (tmp_path / "a").write_text("own")
    _notes(tmp_path, "a", "b").begin(tmp_path)
    assert (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    _notes(tmp_path, "b").begin(tmp_path)  # what is not asked for now stays known
    _notes(tmp_path, "a").begin(tmp_path)
    assert (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"same": 2}, "made with length = 1, now it is 2"),
        ({"what": {"x": 1}}, 'made with entry a, made of = 1, now it is {"x": 1}'),
    ],
)
def test_what_differs_is_named(values: dict[str, object], says: str, tmp_path: Path) -> None:
    _notes(tmp_path, "a").begin(tmp_path)
    before = (tmp_path / "study.json").read_bytes()
    with pytest.raises(RunError, match="give the same, another --out, or --force") as caught:
        _notes(tmp_path, "a", "b", **values).begin(tmp_path)
    assert says in str(caught.value)
    assert (tmp_path / "study.json").read_bytes() == before


@pytest.mark.parametrize(("key", "word"), [("dcqcn_gym", "version"), ("engine", "engine")])
def test_what_other_code_made_is_another_study(tmp_path: Path, key: str, word: str) -> None:
    _notes(tmp_path, "a").begin(tmp_path)
    file, mine = tmp_path / "study.json", code_versions()[key]
    made = json.loads(file.read_text())
    file.write_text(json.dumps({**made, "versions": {**made["versions"], key: "99"}}))
    with pytest.raises(RunError, match=rf"by other code: {word} 99 instead of {re.escape(mine)}"):
        _notes(tmp_path, "a").begin(tmp_path)
