"""Campaigns: any executor, the same bytes; a bad job, a dead worker and a name twice do no harm."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.campaign import Campaign, FinishedJob, carry_out, raise_failures
from dcqcn_gym.runs.entries import REFERENCES, Entry, evaluation_seeds, reference_settings, unique
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import Timing
from dcqcn_gym.runs.recorded import RunJob, RunResult, end_of, held_out_job
from dcqcn_gym.runs.spec import RunSpec

MINI = load_scenario("mini-fb-hadoop")


@dataclass(frozen=True)
class Note:
    """A job that writes its name, breaks (``what`` raises) or takes its process with it."""

    path: Path
    what: str = "write"

    @property
    def name(self) -> str:
        return self.path.stem

    def work(self) -> str:
        if self.what == "refuse":
            raise ConfigError("a sentence")
        if self.what == "break":
            raise ZeroDivisionError("division by zero")
        if self.what == "die":
            os._exit(3)
        self.path.write_text(self.name)
        return self.name


class Inline(Executor):
    """Runs every call at once, in the caller's thread: the simplest executor there is."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        self.called.append(args[0].name)
        future: Future[Any] = Future()
        future.set_result(function(*args, **named))
        return future


def notes(folder: Path, *names: str, **what: str) -> list[Note]:
    return [Note(folder / f"{name}.txt", what.get(name, "write")) for name in names]


def test_what_follows_comes_before_what_was_added_later(tmp_path: Path) -> None:
    def then(job: Note, result: str) -> Iterable[Note]:
        assert job.path.read_text() == result
        return [] if "-" in job.name else notes(tmp_path, f"{job.name}-1", f"{job.name}-2")

    place, seen = Inline(), list[FinishedJob[Note]]()
    jobs = notes(tmp_path, "a", "b", "c", "d")
    failed = carry_out(
        jobs, workers=1, executor=place, then=then, expected=12, progress=seen.append
    )
    assert not failed
    assert place.called.index("a-2") < place.called.index("c")
    assert place.called.index("b-2") < place.called.index("d")
    assert [done.count for done in seen] == list(range(1, 13))
    assert {done.total for done in seen} == {12}
    assert str(seen[-1]) == f"12 of 12 runs: {place.called[-1]}"


def test_only_twice_as_many_jobs_as_workers_are_handed_over(tmp_path: Path) -> None:
    place = Inline()
    campaign = Campaign[Note](place, workers=1)
    campaign.add(notes(tmp_path, "a", "b", "c", "d"))
    assert place.called == ["a", "b"]
    assert [done.job.name for done in campaign.finished()] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_bad_job_stops_no_other_and_is_named(tmp_path: Path, threads: int) -> None:
    def then(job: Note, result: str) -> Iterable[Note]:
        if result == "last":
            raise RunError("its log cannot be read")
        return []

    jobs = notes(tmp_path, "first", "bad", "worse", "last", bad="refuse", worse="break")
    with ThreadPoolExecutor(threads) as pool:
        failed = carry_out(jobs, workers=threads, executor=pool, then=then)
    assert {path.stem: error for path, error in failed.items()} == {
        "bad": "a sentence",
        "worse": "ZeroDivisionError: division by zero",
        "last": "its log cannot be read",
    }
    assert (tmp_path / "first.txt").exists()
    with pytest.raises(RunError, match=r"3 runs failed: .*/bad: a sentence"):
        raise_failures(failed)
    raise_failures({})


def test_two_jobs_never_write_one_file(tmp_path: Path) -> None:
    place = Inline()
    with pytest.raises(ConfigError, match="a and a would both write"):
        carry_out(notes(tmp_path, "b", "a", "a"), executor=place)
    assert place.called == []


def test_a_dead_worker_is_named_with_what_to_do(tmp_path: Path) -> None:
    jobs = notes(tmp_path, "first", "deadly", "later", deadly="die")
    with pytest.raises(RunError, match=r"died .* during .*deadly.* kept: the same command"):
        carry_out(jobs, workers=1)
    assert (tmp_path / "first.txt").exists()
    carry_out(notes(tmp_path, "deadly", "later"), executor=Inline())
    assert len(list(tmp_path.iterdir())) == 3


def chain_of(folder: Path) -> tuple[list[RunJob], Callable[[RunJob, RunResult], list[RunJob]]]:
    """Return two tuned runs, and what makes the runs of their recommendations."""
    jobs = [
        RunJob(RunSpec(MINI, t, 1, 6, "fake"), folder / f"{t}.jsonl") for t in ("random", "tpe")
    ]

    def then(job: RunJob, ran: RunResult) -> list[RunJob]:
        if job.path.stem not in ("random", "tpe"):
            return []
        name = job.path.stem
        return [
            held_out_job(job.spec, ran.recommended, seed, 3, folder / f"{name}-{seed}.jsonl")
            for seed in evaluation_seeds(1, 2)
        ]

    return jobs, then


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_executors_and_interruptions_change_no_byte(tmp_path: Path) -> None:
    made = {}
    for name in ("inline", "threads", "processes"):
        folder = tmp_path / name
        folder.mkdir()
        jobs, then = chain_of(folder)
        if name == "inline":
            carry_out(jobs, executor=Inline(), then=then)
        elif name == "threads":
            with ThreadPoolExecutor(2) as pool:
                carry_out(jobs, executor=pool, then=then)
        else:
            carry_out(jobs, workers=2, then=then)
        made[name] = contents(folder)
    assert len(made["inline"]) == 2 * 3
    assert made["inline"] == made["threads"] == made["processes"]
    torn = folder / "random.jsonl"
    torn.write_bytes(torn.read_bytes()[:-300])  # inside the last interval
    (folder / "tpe-1001000.jsonl").write_text("not a log")
    (folder / "tpe-1001001.jsonl").unlink()
    untouched = (folder / "tpe.jsonl").stat().st_mtime_ns
    jobs, then = chain_of(folder)
    assert not carry_out(jobs, executor=Inline(), then=then)
    assert contents(folder) == made["inline"]
    assert (folder / "tpe.jsonl").stat().st_mtime_ns == untouched


def test_references_are_the_settings_of_the_tables() -> None:
    assert tuple(reference_settings(MINI)) == REFERENCES == ("default", "expert")
    assert evaluation_seeds(2, 2) == [1_002_000, 1_002_001]


def test_a_row_is_a_tuner_and_what_it_changes(tmp_path: Path) -> None:
    plain = Entry("paraleon")
    exact = Entry("paraleon", {"eta": 0.7}, {"monitor": {"kind": "exact"}, "cadence": 2})
    assert (plain.name, exact.name) == ("paraleon", "paraleon+eta-0.7+kind-exact+cadence-2")
    assert plain.spec(MINI, 1, 3, "fake").scenario == MINI
    monitor = MINI.monitor.model_copy(update={"tau_bytes": 77_000})
    spec = exact.spec(MINI.model_copy(update={"monitor": monitor}), 1, 3, "fake")
    assert (spec.scenario.monitor.kind, spec.scenario.cadence) == ("exact", 2)
    assert spec.scenario.monitor.tau_bytes == 77_000  # a table is merged key by key
    job = RunJob(spec, tmp_path / f"{exact.name}.jsonl")
    assert job.run().end["intervals"] == 3
    assert read_run(job.path).header["scenario"]["monitor"]["kind"] == "exact"
    with pytest.raises(ConfigError, match=r"entry .*monitr.*did you mean 'monitor'"):
        Entry("default", changes={"monitr": {}}).spec(MINI, 1, 3, "fake")
    with pytest.raises(UnknownNameError):
        Entry("nobody").spec(MINI, 1, 3, "fake").check()


def test_names_are_unique_by_content() -> None:
    unique("tuners", [("a/t.py:T", "t-T", 1), ("b/u.py:T", "u-T", 2)])
    with pytest.raises(ConfigError, match=r"'a/t.py:T' and 'b/t.py:T' .* differ: rename one"):
        unique("tuners", [("a/t.py:T", "t-T", 1), ("b/t.py:T", "t-T", 2)])
    with pytest.raises(ConfigError, match="are the same: give one"):
        unique("scenarios", [("mini", "mini", 1), ("./mini.toml", "mini", 1)])


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "ppo-mini", "--backend", "fake", "--seeds", "1", "--intervals", "2"],
        ["study", "acc", "--seeds", "1", "--intervals", "2"],
        ["paper", "monitors"],
        ["compare", "--tuners", "default", "--backend", "fake", "--seeds", "1"],
    ],
)
def test_ctrl_c_is_one_sentence_that_says_how_to_go_on(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(campaign: Campaign[RunJob]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Campaign, "finished", interrupted)
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 130
    said = [line for line in done.stderr.splitlines() if "runs are done" not in line]
    assert len(said) == 1
    assert said[0].startswith("interrupted; ")
    assert "continues" in done.stderr


def test_a_log_is_kept_continued_or_made_anew(tmp_path: Path) -> None:
    timing = tmp_path / "timing.json"
    job = RunJob(RunSpec(MINI, "random", 1, 4, "fake"), tmp_path / "log.jsonl", timing=timing)
    first = job.run()
    made = job.path.read_bytes()
    assert first.timing.intervals == 4
    assert job.run() == RunResult(Timing(0.0, 0.0, 0.0, 0), first.end)
    timing.unlink()  # the seconds of a finished run are gone: it is made again
    assert job.run().timing.intervals == 4
    assert timing.exists()
    RunJob(RunSpec(MINI, "random", 2, 4, "fake"), job.path).run()
    assert job.path.read_bytes() != made
    assert job.run().timing.intervals == 4  # the log of another seed is not this run's
    assert job.path.read_bytes() == made
    job.path.write_bytes(made[:-100])
    with pytest.raises(RunError, match="ends before its run did"):
        end_of(job.path)
