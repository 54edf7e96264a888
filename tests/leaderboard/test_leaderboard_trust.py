"""Who has a rank, and what a submission may do to others' entries, to files and to the disk."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from submissions import (
    DAY,
    edit_json,
    tiny_suite,
    verdicts,
    verified,
)
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard import submission as module
from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
from dcqcn_gym.benchmarks.leaderboard.submission import write_list
from dcqcn_gym.benchmarks.leaderboard.verification import (
    Finding,
    Verification,
    files_digest,
    verdict_file,
    write_verification,
)
from dcqcn_gym.cli import app
from dcqcn_gym.core.compressed_files import pack
from dcqcn_gym.core.errors import ConfigError

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_suite(tmp_path_factory.mktemp("suite") / "tiny", 3)


def judged(folder: Path, *findings: str, **more: Any) -> Path:
    """Write a verdict of ``verified`` with findings; return the folder of verdicts."""
    found = Verification(
        status="verified", date=DAY, files_sha256=files_digest(folder), salt="salt",
        findings=tuple(Finding(name=name, text="a sentence") for name in findings), **more,
    )  # fmt: skip
    write_verification(verdict_file(verdicts(folder), "tiny", "mine-Mine"), found)
    return verdicts(folder)


def shown(
    *folders: Path, by: Path | None = None, name: str = "mine-Mine"
) -> tuple[SiteSuite, SiteEntry]:
    """Return the one suite and an entry of it."""
    (found,) = load_suites(folders, by)
    entry = found.entry(name)
    assert entry is not None
    return found, entry


def front_page(out: Path, *folders: Path, by: Path | None = None) -> tuple[str, str]:
    """Write the site by its command; return what it said, and the front page."""
    words = ["bench", "site", *map(str, folders), "--out", str(out)]
    done = CliRunner().invoke(app, [*words, *(["--verdicts", str(by)] if by else [])])
    assert done.exit_code == 0, done.output
    return done.output, (out / "index.html").read_text()


def cells(page: str, name: str) -> list[str]:
    """Return the cells of an one's line."""
    (line,) = (one for one in page.splitlines() if f'data-name="{name}"' in one)
    return [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in line.split("</td>")]


# ranks


def test_a_submission_is_a_claim_even_if_it_is_verified(ours: Path, given: Path) -> None:
    """What is ranked was run by the maintainers, in a season."""
    (before,) = load_suites([ours])
    found, entry = shown(ours, given, by=judged(given))
    assert entry.status == "verified"
    assert not entry.ranked
    assert found.ranks == before.ranks


def test_a_convicted_submission_has_no_rank_and_the_front_page_says_why(
    ours: Path, given: Path, tmp_path: Path
) -> None:
    by = judged(given, "below-on-fresh-seeds")
    found, entry = shown(ours, given, by=by)
    assert not entry.ranked
    assert "mine-Mine" not in found.ranks
    _, page = front_page(tmp_path / "site", ours, given, by=by)
    assert "verified; below-on-fresh-seeds" in cells(page, "mine-Mine")
    text = (tmp_path / "site" / "entries" / "tiny-mine-Mine.html").read_text()
    assert "none: verified; below-on-fresh-seeds" in text


def test_what_is_lower_on_fresh_seeds_loses_its_rank(
    calm: Path, given: Path, tmp_path: Path
) -> None:
    """Also where it is measured here."""
    board = Path(shutil.copytree(calm.parent / "leaderboard", tmp_path / "leaderboard"))
    write_results(open_leaderboard(board))
    assert shown(board, given, by=judged(given))[1].ranked
    assert not shown(board, given, by=judged(given, "below-on-fresh-seeds"))[1].ranked


# files and disk


def test_logs_that_are_too_large_together_are_refused_before_the_first_is_written(
    suite: str, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_UNPACKED_BYTES", 2**22)
    logs = sorted(given.rglob("*.gz"))
    for log in logs:
        log.write_bytes(pack(bytes(2**20)))
    write_list(given)
    assert len(logs) * 2**20 > 2**22
    with pytest.raises(ConfigError, match="its logs are larger than 4194304 bytes together"):
        verified(given, suite)
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and given not in path.parents
    ]


# the site survives one bad submission


def test_a_bad_submission_is_left_out_and_the_others_are_shown(
    ours: Path, calm: Path, given: Path, tmp_path: Path
) -> None:
    _, alone = front_page(tmp_path / "alone", ours)
    by = judged(given)

    def left_out(why: str) -> None:
        said, page = front_page(tmp_path / "site", ours, given, by=by)
        assert "left out: " in said
        assert why in said.replace("\n", "")
        assert page == alone

    edit_json(given / "results.json", lambda v: v["final"]["risk"].update(value=-800.0))
    left_out("results.json: has ")
    write_list(given)
    left_out("there is no verdict on its files")
    (given / "results.json").write_text("[")
    left_out("results.json: has 1 bytes")
    # nobody takes another's name
    forged = Path(shutil.copytree(calm, tmp_path / "forged" / "submission"))
    edit_json(forged / "results.json", lambda v: v["final"].update(utility=0.5))
    write_list(forged)
    board = calm.parent / "leaderboard"
    write_results(open_leaderboard(board))
    said, _ = front_page(tmp_path / "site", board, forged, by=judged(forged))
    assert "entry 'mine-Mine' stands in" in said.replace("\n", "")
