"""The final draw: bound before anybody submits, revealed once, and checked by everybody."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.__main__ import app as maintainers
from dcqcn_gym.benchmarks.leaderboard import final
from dcqcn_gym.benchmarks.leaderboard.final import BLIND_SCENARIOS, commit, reveal
from dcqcn_gym.benchmarks.leaderboard.kinds import INTERVALS, draw
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError

SECOND_GENERATION = "a65de0e0f10c1529b9364d9b8bbb4aaf4229d25a28b3bdbae06da730c7bba29b"
"""Of 24 scenarios and their second attempts, from a salt of zeros."""


@pytest.fixture(autouse=True)
def _first_salt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the first salt, whatever it draws; to simulate those of a dozen takes long."""
    if "salts" not in request.fixturenames:
        monkeypatch.setattr(final, "blind_scenarios", lambda _: [])


@pytest.fixture
def salts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the generator of salts say what is known: the first one draws two blind scenarios."""
    said = iter(["x0", "x4", "never asked"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(said))


@pytest.fixture
def bound(tmp_path: Path) -> tuple[Path, Path]:
    """Return the file of a salt and the commitment to it."""
    commit(tmp_path / "salt", tmp_path / "commitment.json")
    return tmp_path / "salt", tmp_path / "commitment.json"


def test_commit_and_reveal(bound: tuple[Path, Path], tmp_path: Path) -> None:
    salt_file, commitment = bound
    assert stat.S_IMODE(salt_file.stat().st_mode) == 0o600
    salt = salt_file.read_text().strip()
    published = json.loads(commitment.read_text())
    assert salt not in commitment.read_text()
    assert published["salt_sha256"] == hashlib.sha256(salt.encode()).hexdigest()
    suite = load_suite(str(reveal(commitment, salt_file, tmp_path / "final")))
    assert suite.digest == published["suite_digest"]
    assert len(suite.scenarios) == 12
    assert (tmp_path / "final" / "salt.txt").read_text().strip() == salt


@pytest.mark.usefixtures("salts")
@pytest.mark.slow
def test_a_salt_with_a_scenario_that_tells_nothing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path / "salt", tmp_path / "commitment.json")
    assert (tmp_path / "salt").read_text() == "x4\n"
    monkeypatch.setattr(final, "MOST_SALTS", 0)
    with pytest.raises(RunError, match="the generator needs another look"):
        commit(tmp_path / "salt-2", tmp_path / "commitment-2.json")
    assert not (tmp_path / "salt-2").exists()


def test_two_draws_differ(bound: tuple[Path, Path], tmp_path: Path) -> None:
    other = commit(tmp_path / "salt-2", tmp_path / "commitment-2.json")
    assert other.suite_digest != json.loads(bound[1].read_text())["suite_digest"]


def test_a_salt_is_never_replaced(bound: tuple[Path, Path], tmp_path: Path) -> None:
    for salt, out in ((bound[0], tmp_path / "new"), (tmp_path / "new", bound[1])):
        with pytest.raises(RunError, match="is there already; a salt is for one draw"):
            commit(salt, out)
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("salt", "words"),
    [("secret", "is no salt; expected the 64"), ("0" * 64, "is not the salt that .* is bound to")],
)
def test_another_salt_is_refused(
    bound: tuple[Path, Path], tmp_path: Path, salt: str, words: str
) -> None:
    (tmp_path / "other").write_text(salt)
    with pytest.raises(ConfigError, match=words):
        reveal(bound[1], tmp_path / "other", tmp_path / "final")
    assert not (tmp_path / "final").exists()


def test_another_generator_is_refused(
    bound: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dcqcn_gym.benchmarks.leaderboard.generator.LOADS", (0.2,))
    with pytest.raises(ConfigError, match="this generator draws another suite"):
        reveal(bound[1], bound[0], tmp_path / "final")
    assert not (tmp_path / "final").exists()


def test_the_commands(tmp_path: Path) -> None:
    salt, out = str(tmp_path / "salt"), str(tmp_path / "commitment.json")
    words = ["leaderboard", "commit", "--salt-file", salt, "--out", out]
    assert CliRunner().invoke(maintainers, words).exit_code == 0
    words = ["leaderboard", "reveal", out, "--salt-file", salt, "--out", str(tmp_path / "f")]
    assert CliRunner().invoke(maintainers, words).exit_code == 0
    again = CliRunner().invoke(maintainers, words).exception
    assert isinstance(again, RunError)
    assert "is there already" in str(again)


def test_the_generator_of_the_blind_draw_is_the_one_that_stood_before_keeper() -> None:
    drawn = [
        draw("0" * 64, i, INTERVALS, attempt) for i in range(BLIND_SCENARIOS) for attempt in (0, 1)
    ]
    text = json.dumps([(d.name, d.third, d.table, d.phases) for d in drawn], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == SECOND_GENERATION


@pytest.mark.slow
def test_the_walk_of_the_blind_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/measured/keeper.md says, with a salt of our own, for one scenario of 24."""
    monkeypatch.setattr(final, "BLIND_SCENARIOS", 1)
    salt = hashlib.sha256(b"a walk").hexdigest()
    (tmp_path / "salt").write_text(salt + "\n")
    suite, out = str(tmp_path / "final-v2"), tmp_path / "runs"
    reveal = ["leaderboard", "reveal", "", "--salt-file", str(tmp_path / "salt"), "--out", suite]
    reveal[2] = hashlib.sha256(b"another").hexdigest()
    assert "is not the salt whose SHA-256" in str(CliRunner().invoke(maintainers, reveal).exception)
    reveal[2] = hashlib.sha256(salt.encode()).hexdigest()
    assert CliRunner().invoke(maintainers, reveal).exit_code == 0
    words = ["bench", "run", suite, "--tuners", "keeper", "--repetitions", "1", "--jobs", "1"]
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--quiet"])
    assert done.exit_code == 0, done.output
    assert "keeper" in (out / "leaderboard.md").read_text()
