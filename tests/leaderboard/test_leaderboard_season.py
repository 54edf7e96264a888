"""A season: traffic of a secret salt, and entries of others in the sandbox."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from pathlib import Path

import pytest
from submissions import AUTHOR, Here, leaderboard_of, need_sandbox, plugin
from submissions import second_suite as suite_of
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard import season as drawn_suite
from dcqcn_gym.benchmarks.leaderboard.generator import SEASON_INTERVALS
from dcqcn_gym.benchmarks.leaderboard.protocol import start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.salted_choices import salt_in
from dcqcn_gym.benchmarks.leaderboard.season import season_suite
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.submission import write_list
from dcqcn_gym.benchmarks.leaderboard.submit import submit
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.runs.log import read_run

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return suite_of(tmp_path_factory.mktemp("suite") / "tiny", 2)


@pytest.fixture(scope="module")
def given(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a submission of a plug-in that notes the seed that it is told."""
    folder = tmp_path_factory.mktemp("given")
    tuner = plugin(folder / "code", NOTES)
    return submit(leaderboard_of(suite, tuner, folder / "own"), tuner, folder / "sent", **AUTHOR)


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
    salt = salt_in(folder / "salt")
    board = start_leaderboard(suite, ["expert"], folder / "s", salt=salt, submissions=[given])
    assert board.carry_out(executor=Here()) == {}
    write_results(board)
    return folder / "s"


def test_the_salt_is_told_with_the_results(season: Path) -> None:
    salt = salt_in(season.parent / "salt")
    assert len(salt) == 64
    results = json.loads((season / "results.json").read_text())
    assert results["figures"]["season"]["salt"] == salt
    told = hashlib.sha256((season.parent / "salt").read_bytes()).hexdigest()
    assert results["figures"]["season"]["salt_sha256"] == told  # as sha256sum says of the file
    entries = {line["entry"] for line in results["rows"]}
    assert entries == {"default", "default-min-rate", "expert", "mine-Mine"}  # both references


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
    assert len(lines) == 4 * 2
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


def test_another_salt_is_refused(suite: str, given: Path, tmp_path: Path) -> None:
    out, salt = tmp_path / "s", salt_in(tmp_path / "salt")
    assert (tmp_path / "salt").stat().st_mode & 0o777 == 0o600
    start_leaderboard(suite, ["expert"], out, salt=salt)
    with pytest.raises(RunError, match="was made with salt = "):
        start_leaderboard(suite, ["expert"], out, salt=salt_in(tmp_path / "other"))
    with pytest.raises(RunError, match="was made with salt = "):
        start_leaderboard(suite, ["random"], out)
    with pytest.raises(ConfigError, match="give --salt-file"):
        start_leaderboard(suite, ["expert"], tmp_path / "t", submissions=[given])
    assert not (tmp_path / "t").exists()


def test_another_submission_of_an_entry_is_refused(suite: str, given: Path, tmp_path: Path) -> None:
    out, salt = tmp_path / "s", salt_in(tmp_path / "salt")
    start_leaderboard(suite, ["expert"], out, salt=salt, submissions=[given])
    other = Path(shutil.copytree(given, tmp_path / "other"))
    code = other / "plugin" / "mine.py"
    code.write_text(code.read_text() + "\n# better\n")
    write_list(other)
    with pytest.raises(RunError, match=r"entry mine-Mine, submitted\.files_sha256"):
        start_leaderboard(suite, ["expert"], out, salt=salt, submissions=[other])
    assert "better" not in (out / "code" / "mine-Mine" / "mine.py").read_text()


@pytest.mark.slow
def test_the_commands(suite: str, given: Path, tmp_path: Path) -> None:
    need_sandbox()

    def bench(*words: object) -> str:
        done = CliRunner().invoke(app, ["bench", *map(str, words), "--jobs", "1"])
        assert done.exit_code == 0, (done.output, done.exception)
        return done.output

    salt = ("--salt-file", tmp_path / "salt")
    words = ("run", suite, "--tuners", "expert", *salt, "--out", tmp_path / "s", "--quiet")
    assert "too few scenarios" in bench(*words, "--submission", given)
    bench("run", "--out", tmp_path / "s", "--quiet")
    bench("report", tmp_path / "s", "--keep", tmp_path / "kept")
    (found,) = load_suites([tmp_path / "kept"])
    assert found.season == load_suites([tmp_path / "s"])[0].season
    assert found.season["salt"] == (tmp_path / "salt").read_text().strip()
    again = bench("run", "--check", tmp_path / "kept", "--tuners", "expert", "--quiet")
    assert "expert: 4 logs are those that were kept" in again


@pytest.mark.slow
def test_a_salt_draws_the_scenarios_of_its_season(tmp_path: Path) -> None:
    folder = tmp_path / "drawn"
    season_suite(folder, "3" * 32, 1, quiet=True)
    drawn = load_suite(str(folder))
    assert [one.name.split("-", 1)[0] for one in drawn.file.scenarios] == ["000"]
    assert drawn.file.intervals == SEASON_INTERVALS
    assert all(s.intervals == SEASON_INTERVALS for s in drawn.scenarios.values())
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    season_suite(folder, "3" * 32, 1, quiet=True)  # it is there, so it stays
    season_suite(tmp_path / "again" / "drawn", "3" * 32, 1, quiet=True)
    assert {p.name: p.read_bytes() for p in (tmp_path / "again" / "drawn").iterdir()} == files
    with pytest.raises(ConfigError, match="holds a suite of 1 scenarios, not of 3"):
        season_suite(folder, "3" * 32, 3)


def test_a_season_is_not_drawn_into_other_files_nor_without_a_salt(
    suite: str, tmp_path: Path
) -> None:
    words = ["bench", "run", str(tmp_path), "--scenarios", "12", "--tuners", "expert"]
    out = ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*words, *out])
    assert "give --salt-file" in str(done.exception)
    done = CliRunner().invoke(app, [*words, *out, "--salt-file", str(tmp_path / "salt")])
    assert "holds no suite; name a new folder" in str(done.exception)
    done = CliRunner().invoke(app, [*words[:2], "--scenarios", "12", *out])
    assert "give SUITE and --tuners" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_killed_draw_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(drawn_suite, "write_suite", stopped)
    monkeypatch.setattr(drawn_suite, "_most_moved", lambda *_: 1.0)
    with pytest.raises(KeyboardInterrupt):
        season_suite(tmp_path / "drawn", "3" * 32, 2, quiet=True)
    assert not list(tmp_path.iterdir())
