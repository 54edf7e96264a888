"""Verdicts: written, read, and believed for no other files than those that were verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dcqcn_gym.benchmarks.leaderboard.bootstrap import Score
from dcqcn_gym.benchmarks.leaderboard.verification import (
    FILES,
    STATUSES,
    Finding,
    Verification,
    checked_date,
    files_digest,
    read_verification,
    verdict_file,
    write_verification,
)
from dcqcn_gym.core.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / FILES).write_text('{"files": {}}')
    return tmp_path


def found(folder: Path, status: str = "verified") -> Verification:
    return Verification(
        status=status, date="2026-11-22", files_sha256=files_digest(folder), salt="salt",
        versions={"dcqcn_gym": "0.1.0"}, platform={"system": "Linux"}, checked={"replayed": 12},
        risks={"fresh": Score(value=0.1, low=0.0, high=0.2)},
        findings=(Finding(name="below-on-final", text="S is lower there"),),
    )  # fmt: skip


def read(folder: Path) -> Verification | None:
    return read_verification(verdict(folder), files_digest(folder))


def verdict(folder: Path) -> Path:
    return verdict_file(folder / "verdicts", "tiny", "mine")


@pytest.mark.parametrize("status", STATUSES)
def test_what_is_written_is_read(folder: Path, status: str) -> None:
    path = write_verification(verdict(folder), found(folder, status))
    assert path == folder / "verdicts" / "tiny" / "mine.json"
    assert read(folder) == found(folder, status)


def test_it_holds_for_the_files_that_were_verified_alone(folder: Path) -> None:
    assert read(folder) is None
    write_verification(verdict(folder), found(folder))
    assert read(folder) is not None
    (folder / FILES).write_text('{"files": {"plugin/other.py": {}}}')
    assert read(folder) is None


@pytest.mark.parametrize("text", ["22.11.2026", "2026-13-01", "2026-1-1", "today", ""])
def test_a_day_is_a_day(text: str) -> None:
    with pytest.raises(ConfigError, match="is no day; expected YYYY-MM-DD"):
        checked_date(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "very good"}, "status"),
        ({"schema": 2}, "schema"),
        ({"more": 1}, "more"),
        ({"findings": [{"name": "x"}]}, "text"),
    ],
)
def test_a_bad_file_is_one_sentence(folder: Path, change: dict[str, object], words: str) -> None:
    path = write_verification(verdict(folder), found(folder))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConfigError, match=words) as caught:
        read(folder)
    assert str(caught.value).startswith(str(verdict(folder)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"), [("{", "not valid JSON"), ("[]", "expected an object of JSON")]
)
def test_no_json_is_one_sentence(folder: Path, text: str, words: str) -> None:
    verdict(folder).parent.mkdir(parents=True)
    verdict(folder).write_text(text)
    with pytest.raises(ConfigError, match=words):
        read(folder)
