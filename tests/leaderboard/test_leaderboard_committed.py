"""The leaderboard as committed data: pages without logs, digests of every run, runs made again."""

from __future__ import annotations

import json
import lzma
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from submissions import Here, small_suite
from typer.testing import CliRunner, Result

from dcqcn_gym.benchmarks.leaderboard import bootstrap
from dcqcn_gym.benchmarks.leaderboard.board_tables import ranking_table
from dcqcn_gym.benchmarks.leaderboard.categories import ranks_within
from dcqcn_gym.benchmarks.leaderboard.committed import (
    RUNS_FILE,
    STORED,
    open_committed,
    ranking_text,
    rerun,
    write_committed,
)
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    Leaderboard,
    open_leaderboard,
    start_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.cli import app
from dcqcn_gym.core.compressed_files import pack_small, read_packed
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, RunError, UnknownNameError
from dcqcn_gym.report.markdown_page import insert
from synthetic_run import write_run

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Leaderboard:
    """Return a finished leaderboard of three entries on two scenarios."""
    root = tmp_path_factory.mktemp("kept")
    small_suite(root / "tiny", 2, 6, 4, 2)
    board = start_leaderboard(str(root / "tiny"), ["expert", "random"], root / "leaderboard")
    assert board.carry_out(executor=Here()) == {}
    return board


@pytest.fixture(scope="module")
def kept(board: Leaderboard) -> Path:
    """Return its committed form."""
    folder = board.out.parent / "kept"
    assert write_committed(board, folder, 1) == []
    return folder


LOGS = shutil.ignore_patterns("runs", "runs.csv", "cost.json")


def bench(*words: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def failure(done: Result) -> str:
    assert isinstance(done.exception, DcqcnGymError), done.output
    return str(done.exception)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_what_is_kept_has_results_and_no_logs(
    board: Leaderboard, kept: Path, tmp_path: Path
) -> None:
    write_results(board, 1)
    found = files(kept)
    assert sorted(found) == [
        "cost.json",
        "leaderboard.md",
        "results.json.xz",
        "runs.jsonl.xz",
        "study.json",
    ]
    for name in ("leaderboard.md", "study.json"):
        assert found[name] == (board.out / name).read_bytes()
    given = (board.out / "results.json").read_text()
    assert json.loads(lzma.decompress(found["results.json.xz"])) == json.loads(given)
    assert read_packed(board.out / "results.json") == given
    again = tmp_path / "again"
    assert write_committed(board, again, 1) == []
    assert {n: d for n, d in files(again).items() if n != "cost.json"} == {
        n: d for n, d in found.items() if n != "cost.json"
    }


def test_a_line_of_every_run_tells_its_setting_and_its_digests(
    board: Leaderboard, kept: Path
) -> None:
    lines = [json.loads(line) for line in read_packed(kept / RUNS_FILE).splitlines()]
    assert len(lines) == 3 * 2
    default = {line["scenario"]: line for line in lines if line["entry"] == "default"}
    for line in lines:
        attempt = next(
            a for a in board.attempts()
            if (a.entry.name, a.scenario.name, a.repetition)
            == (line["entry"], line["scenario"], line["repetition"])
        )  # fmt: skip
        end = json.loads(attempt.logs[0].read_bytes().splitlines()[-1])["end"]
        base = default[line["scenario"]]["recommended"]
        assert {**base, **line["recommended"]} == end["recommended"]
    assert len({line["online"] for line in lines}) == len(lines)
    assert all({"kmin", "rp_gd"} <= line["recommended"].keys() for line in default.values())


def test_the_site_is_made_from_what_is_kept(board: Leaderboard, kept: Path, tmp_path: Path) -> None:
    write_results(board, 1)
    for name, source in (("logs", board.out), ("kept", kept)):
        copied = tmp_path / "same" / "leaderboard"
        shutil.copytree(source, copied, ignore=LOGS)
        done = bench("site", copied, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        shutil.rmtree(copied)
    assert files(tmp_path / "kept") == files(tmp_path / "logs")


def test_entries_with_runs_missing_are_left_out(board: Leaderboard, tmp_path: Path) -> None:
    shutil.copytree(board.out, tmp_path / "leaderboard")
    part = replace(board, out=tmp_path / "leaderboard")
    part.attempts(board.entries[2])[-1].logs[1].unlink()
    done = bench("report", part.out, "--keep", tmp_path / "kept", "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert "left out, runs are missing: random" in done.output
    assert open_committed(tmp_path / "kept").names == ["expert"]
    entries = json.loads(read_packed(tmp_path / "kept" / "results.json"))["rows"]
    assert sorted(entry["entry"] for entry in entries) == ["default", "expert"]
    part.attempts(board.entries[0])[-1].logs[1].unlink()
    with pytest.raises(RunError, match=r"runs of 'default' are missing.*--repetitions N"):
        write_committed(part, tmp_path / "none", 1)
    assert not (tmp_path / "none").exists()
    done = bench("report", part.out, "--keep", tmp_path / "one", "--repetitions", 1, "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert open_committed(tmp_path / "one").names == ["expert", "random"]
    done = bench("site", tmp_path / "one", "--out", tmp_path / "site")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "site" / "index.html").read_text()
    assert "This leaderboard is a part of it: 1 of 2 repetitions." in page


def test_runs_made_again_are_those_that_were_kept(kept: Path, tmp_path: Path) -> None:
    found = open_committed(kept)
    name, runs, differing = rerun(found, tmp_path / "a", "random", executor=Here())
    assert (name, runs, differing) == ("random", 2, [])
    name, runs, differing = rerun(found, tmp_path / "b", executor=Here())
    assert name in ("expert", "random")
    assert differing == []


def test_a_run_that_is_another_is_named(board: Leaderboard, kept: Path, tmp_path: Path) -> None:
    copied = tmp_path / "kept"
    shutil.copytree(kept, copied)
    path = copied / f"{RUNS_FILE}.xz"
    text = lzma.decompress(path.read_bytes()).decode()
    line = next(one for one in text.splitlines() if '"entry":"expert"' in one)
    digest = json.loads(line)["final"]
    path.write_bytes(pack_small(text.replace(digest, "0" * 64).encode()))
    done = bench("run", "--check", copied, "--tuners", "expert", "--jobs", 1, "--quiet")
    assert done.exit_code == 2
    scenario = json.loads(line)["scenario"]
    assert (
        f"expert on {scenario}, repetition 0: the final run is not the one that was committed"
        in done.output
    )
    assert "expert: 1 of 4 logs differ" in done.output


def test_mistakes_get_one_sentence(kept: Path, tmp_path: Path) -> None:
    found = open_committed(kept)
    with pytest.raises(UnknownNameError, match="did you mean 'expert'"):
        rerun(found, tmp_path, "expret")
    assert "holds a leaderboard without its logs" in failure(bench("report", kept))
    copied = tmp_path / "kept"
    shutil.copytree(kept, copied)
    path = copied / f"{RUNS_FILE}.xz"
    lines = lzma.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(pack_small(b"".join(lines[:-1])))
    with pytest.raises(RunError, match=r"has no line for random on .*bench report --keep"):
        open_committed(copied)
    path.write_bytes(pack_small(b"[1]\n"))
    with pytest.raises(RunError, match="holds no runs of a leaderboard"):
        open_committed(copied)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"jsonl\.xz: cannot be unpacked: it is cut, extended"):
        open_committed(copied)


def test_a_folder_of_another_suite_is_not_replaced(board: Leaderboard, tmp_path: Path) -> None:
    """The first commands of docs/leaderboard.md, as they stand, must not cost committed data."""
    copied = tmp_path / "season-1"
    shutil.copytree(COMMITTED, copied)
    before = files(copied)
    said = failure(bench("report", board.out, "--keep", copied, "--jobs", 1))
    assert "season-1 holds a leaderboard of suite 'season-1'" in said
    assert "one of 'tiny'; give another --out" in said
    (copied / "study.json").write_text("{")
    assert "give another --out" in failure(bench("report", board.out, "--keep", copied))
    assert {**files(copied), "study.json": before["study.json"]} == before
    assert (
        write_committed(board, tmp_path / "kept", 1)
        == write_committed(board, tmp_path / "kept", 1)
        == []
    )


def test_a_tuning_run_is_not_replaced(board: Leaderboard, tmp_path: Path) -> None:
    run = write_run(tmp_path / "tune", intervals=2)
    (run / "results.json").write_text("{}\n")
    before = files(run)
    said = failure(bench("report", board.out, "--keep", run, "--jobs", 1))
    assert said.endswith("would replace some; give another --out")
    assert files(run) == before


ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "benchmarks" / "leaderboard" / "data" / "season-1"


def test_the_committed_leaderboard_makes_the_site_and_the_table_of_the_docs(tmp_path: Path) -> None:
    """Its suite is the one that is here, every run has its line, and the docs show its ranking."""
    folder = COMMITTED
    found = open_committed(folder)
    kept = [one for one in found.board.attempts() if one.repetition < STORED]
    assert len(found.runs) == len(kept)
    done = bench("site", folder, "--out", tmp_path / "site")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "site" / "index.html").read_text()
    assert all(f'data-name="{name}"' in page for name in found.names)
    keeper = (tmp_path / "site" / "entries" / "season-1-keeper.html").read_text()
    assert "loses on" in keeper
    docs = tmp_path / "leaderboard.md"
    shutil.copy(ROOT / "docs" / "leaderboard.md", docs)
    insert(docs, "leaderboard season-1", ranking_text(folder))
    assert docs.read_bytes() == (ROOT / "docs" / "leaderboard.md").read_bytes()


def test_the_ranking_goes_into_a_page(board: Leaderboard, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- leaderboard tiny: begin --><!-- leaderboard tiny: end -->\n")
    done = bench("report", board.out, "--keep", tmp_path / "kept", "--jobs", 1, "--write", page)
    assert done.exit_code == 0, done.output
    assert "\n\ntiny: 2 scenarios, 2 repetitions" in page.read_text()
    assert "| expert | " in page.read_text()


def test_the_committed_season_follows_from_its_own_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its ranking has the same bytes, and the ranks are those of its own R."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 2000)
    board = open_leaderboard(COMMITTED)
    lines = [
        EntryLine.model_validate(row)
        for row in json.loads(read_packed(COMMITTED / "results.json"))["rows"]
    ]
    table = ranking_table(board, lines)
    text = (COMMITTED / "leaderboard.md").read_text()
    assert text.startswith(f"## {table.title}\n\n{table.markdown()}\n\n")
    risks = {one.entry: np.array(list(one.stage("online").risks.values())) for one in lines}
    found = ranks_within({line.entry: line.category for line in lines}, risks)
    assert found == {line.entry: line.stage("online").rank for line in lines}
