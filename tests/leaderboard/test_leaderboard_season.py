"""A season: frozen, then opened with its salt; what an attacker gets who knows all but the salt."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from submissions import AUTHOR, Here, leaderboard_of, need_sandbox, plugin, quick_intervals
from submissions import second_suite as suite_of
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.protocol import start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.season import freeze, open_season, run_season
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.submit import submit
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.runs.log import read_run


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    yield from quick_intervals()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return suite_of(tmp_path_factory.mktemp("suite") / "tiny", 2)


@pytest.fixture(scope="module")
def given(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a submission of a plug-in that notes the seed that it is told."""
    folder = tmp_path_factory.mktemp("given")
    tuner = plugin(folder / "code", NOTES)
    return submit(leaderboard_of(suite, tuner, folder / "own"), tuner, folder / "sent", AUTHOR)


NOTES = """
def ask(self):
    return self.context.base

@property
def decisions(self):
    return [str(self.context.seed), ", ".join(sorted(vars(self.context)))]
"""


@pytest.fixture(scope="module")
def season(suite: str, given: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a season that was run."""
    need_sandbox()
    folder = tmp_path_factory.mktemp("season")
    freeze(suite, ["expert"], [given], folder / "s", folder / "salt")
    run_season(folder / "s", folder / "salt", 1, executor=Here())
    return folder / "s"


def test_the_salt_is_bound_before_and_told_with_the_results(season: Path) -> None:
    file = open_season(season)
    assert file.salt is not None
    assert len(file.salt) == 64
    results = json.loads((season / "results.json").read_text())
    assert results["figures"]["season"]["salt"] == file.salt
    assert {line["entry"] for line in results["rows"]} == {"default", "expert", "mine-Mine"}


def test_seeds_are_wide_secret_and_of_two_streams(season: Path) -> None:
    logs = sorted((season / "runs").rglob("online-*.jsonl"))
    headers = [read_run(path).header for path in logs]
    assert len({h["tuner_seed"] for h in headers}) == 2  # a scenario each: no name is in it
    assert not {h["seed"] for h in headers} & {h["tuner_seed"] for h in headers}
    assert max(h["seed"] for h in headers) > 2**56
    (told,) = {tuple(h for h in [read_run(p).header["tuner_seed"]]) for p in logs
               if "mine-Mine" in str(p) and "00-" in str(p.parent)}  # fmt: skip
    (log,) = [p for p in logs if "mine-Mine" in str(p) and "00-" in str(p.parent)]
    assert read_run(log).end is not None
    seed, names = (read_run(log).end or {})["decisions"]
    assert int(seed) == told[0]
    assert not {"name", "scenario", "workloads", "repetition", "suite"} & set(names.split(", "))


def test_the_final_run_covers_every_phase(season: Path) -> None:
    for path in (season / "runs").rglob("final-*.jsonl"):
        assert len(read_run(path).intervals) == 6


def test_a_line_per_run_with_all_amounts(season: Path) -> None:
    lines = list(csv.DictReader((season / "runs.csv").read_text().splitlines()))
    assert len(lines) == 3 * 2
    assert {"p999_final", "fairness_online", "setting_changes_online", "pause, change_final",
            "99th percentile of slowdown of mice, change_final"} <= set(lines[0])  # fmt: skip


def test_too_few_scenarios_have_no_ranks(season: Path) -> None:
    assert "too few scenarios for ranks" in (season / "leaderboard.md").read_text()
    (found,) = load_suites([season])
    assert not found.ranks


def test_the_site_names_whose_an_entry_is(season: Path) -> None:
    (found,) = load_suites([season])
    entry = found.entry("mine-Mine")
    assert entry is not None
    assert "A. Nonymous" in str(entry.details["summary"])
    assert entry.category == "online"


def test_another_salt_opens_nothing(suite: str, tmp_path: Path) -> None:
    freeze(suite, ["expert"], [], tmp_path / "s", tmp_path / "salt")
    (tmp_path / "other").write_text("0" * 64)
    with pytest.raises(ConfigError, match="is not the salt that"):
        run_season(tmp_path / "s", tmp_path / "other", 1)
    (tmp_path / "short").write_text("2026-11-23")
    with pytest.raises(ConfigError, match="128 bits"):
        run_season(tmp_path / "s", tmp_path / "short", 1)
    assert not (tmp_path / "s" / "runs").exists()
    with pytest.raises(RunError, match="used once"):
        freeze(suite, ["expert"], [], tmp_path / "t", tmp_path / "salt")


def test_code_that_changed_after_it_was_frozen_is_refused(
    suite: str, given: Path, tmp_path: Path
) -> None:
    freeze(suite, ["expert"], [given], tmp_path / "s", tmp_path / "salt")
    code = tmp_path / "s" / "code" / "mine-Mine" / "mine.py"
    code.write_text(code.read_text() + "\n# better\n")
    with pytest.raises(ConfigError, match="was changed after it was frozen"):
        run_season(tmp_path / "s", tmp_path / "salt", 1)


@pytest.mark.parametrize(
    ("tuners", "words"),
    [
        (["mine.py:Mine"], "is not built in"),
        (["nonsense"], "unknown tuner"),
        (["sac-mini", "sac_mini"], "unknown tuner|looks like"),
    ],
)
def test_what_cannot_be_frozen_writes_nothing(
    suite: str, tmp_path: Path, tuners: list[str], words: str
) -> None:
    with pytest.raises(Exception, match=words):
        freeze(suite, tuners, [], tmp_path / "s", tmp_path / "salt")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_commands(suite: str, tmp_path: Path) -> None:
    words = ["--salt-file", str(tmp_path / "salt")]
    run = CliRunner().invoke
    done = run(app, ["bench", "freeze", suite, "--tuners", "expert", *words,
                     "--out", str(tmp_path / "s")])  # fmt: skip
    assert done.exit_code == 0, done.output
    done = run(app, ["bench", "season", str(tmp_path / "s"), *words, "--quiet", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    assert "too few scenarios" in done.output
    done = run(app, ["bench", "keep", str(tmp_path / "s"), "--out", str(tmp_path / "kept"),
                     "--jobs", "1"])  # fmt: skip
    assert done.exit_code == 0, done.output
    (found,) = load_suites([tmp_path / "kept"])
    assert found.season == load_suites([tmp_path / "s"])[0].season
    assert found.season["salt"] == (tmp_path / "salt").read_text().strip()
    done = run(app, ["bench", "rerun", str(tmp_path / "kept"), "--jobs", "1", "--quiet"])
    assert done.exit_code == 0, done.output
    assert "expert: 4 logs are those that were kept" in done.output
    with pytest.raises(RunError, match="its traffic is known by now"):
        start_leaderboard(suite, ["random"], tmp_path / "s")
