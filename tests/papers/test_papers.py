"""Figures of the papers: every one runs at smoke size, one of a kind twice; bad input; resume."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from paper_runs import command, smoke

from dcqcn_gym.benchmarks.papers import catalog
from dcqcn_gym.benchmarks.papers.acks import with_data_acks
from dcqcn_gym.benchmarks.papers.claims import Growth, Outcome, judge
from dcqcn_gym.benchmarks.papers.committed import (
    committed_checks,
    committed_results,
    cost_in_words,
)
from dcqcn_gym.benchmarks.papers.figure import SIZES, Figure
from dcqcn_gym.benchmarks.papers.page import by_paper, judge_before, verdict_text, write_pages
from dcqcn_gym.benchmarks.papers.plot import draw
from dcqcn_gym.benchmarks.papers.results import RESULTS_FILE, produce, read_results
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.markdown import plain
from programs import program_of
from waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
FIGURES = [figure for paper in catalog.PAPERS for figure in catalog.figures_of(paper.name)]
KEPT = catalog.results_folder()
FIRST = list({figure.paper: figure for figure in reversed(FIGURES)}.values())
"""One figure of each paper: the quick tests run these, the slow ones all."""


OTHERWISE = ("P-fig9", "P-fig10a", "A-fig16", "A-txt-tcp", "R-fig6", "D-fig9")
"""What no first figure has: pretrained settings, monitors, an agent that learns, TCP beside, a
thousand hosts, incast of thousands."""


def run_and_judge(figure: Figure, folder: Path) -> None:
    first = smoke(figure, folder / "a")
    assert first == read_results(folder / "a" / RESULTS_FILE)
    assert len(judge(figure.claims, first)) == len(figure.claims) > 0
    assert all(svg.count('class="line"') > 1 for svg in draw(figure, first))


def assert_repeats(figure: Figure, folder: Path) -> None:
    smoke(figure, folder / "b")
    a, b = ((folder / name / RESULTS_FILE).read_bytes() for name in "ab")
    assert a == b


@pytest.mark.parametrize("figure", FIRST, ids=lambda f: f.name)
def test_a_figure_of_each_paper_runs_and_repeats(figure: Figure, tmp_path: Path) -> None:
    run_and_judge(figure, tmp_path)
    assert_repeats(figure, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("figure", [f for f in FIGURES if f not in FIRST], ids=lambda f: f.name)
def test_every_figure_runs_and_those_of_other_kinds_repeat(figure: Figure, tmp_path: Path) -> None:
    run_and_judge(figure, tmp_path)
    if figure.name in OTHERWISE:
        assert_repeats(figure, tmp_path)


@pytest.mark.parametrize(
    ("name", "size", "labels"),
    [
        ("P-fig13", "full", ["32", "64", "128"]),
        ("D-fig4", "quick", ["50", "100", "200", "500"]),  # 12 places: round numbers
        ("A-fig9", "quick", ["vdi, 16", "vdi, 32", "vdi, 64", "vdi, 128"]),  # of 14: those shown
    ],
)
def test_a_plot_names_the_places_that_were_measured(
    name: str, size: str, labels: list[str]
) -> None:
    found = read_results(KEPT / f"{name}-{size}.jsonl")
    written = re.findall(r'class="tick x"[^>]*>([^<]*)<', draw(catalog.figure(name), found)[0])
    assert written == labels


@pytest.mark.parametrize(
    ("name", "size", "says"), [("D-fig13b", "full", True), ("D-fig4", "quick", False)]
)
def test_a_plot_of_one_run_names_its_seed(name: str, size: str, says: bool) -> None:
    """A curve of D-fig13b is of one seed of 60; the first plot of D-fig4 has the mean of all."""
    found = read_results(KEPT / f"{name}-{size}.jsonl")
    assert ("(seed 1)" in draw(catalog.figure(name), found)[0]) is says


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_a_figure_is_whole(figure: Figure) -> None:
    assert tuple(figure.sizes) == SIZES
    assert all(
        claim.text and re.search(r"section|Fig|Table", claim.place) for claim in figure.claims
    )
    assert figure.name in [part for row in catalog.ROWS for part in row.files]


def test_the_catalogue_holds_every_figure_and_table_once() -> None:
    names = [row.name for row in catalog.ROWS]
    assert len(names) == len(set(names)) == 42
    files = {path.stem for path in (KEPT.parent / "figures").glob("[a-z]*.py")}
    known = {part.lower().replace("-", "_") for row in catalog.ROWS for part in row.files}
    assert files <= known
    assert files == {figure.name.lower().replace("-", "_") for figure in FIGURES}
    assert {row.paper for row in catalog.ROWS} == {paper.name for paper in catalog.PAPERS}


def test_unknown_names_are_refused_with_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'D-fig5'"):
        catalog.figure("D-fig5x")
    with pytest.raises(ConfigError, match="D-fig3 is not possible here: measured on"):
        catalog.figure("D-fig3")


def test_a_figure_without_a_file_is_not_yet_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "built", lambda name: False)
    with pytest.raises(ConfigError, match="P-fig14 is not yet"):
        catalog.figure("P-fig14")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "D-fg5"], "error: unknown figure 'D-fg5'; did you mean 'D-fig5'"),
        (
            ["run", "D-fig5", "--size", "quik"],
            "unknown size of D-fig5 'quik'; did you mean 'quick'",
        ),
        (["run", "--check", "D-fg5"], "error: unknown figure 'D-fg5'; did you mean 'D-fig5'"),
        (
            ["run", "--check", "D-fig3"],
            "error: figure D-fig3 is not possible here: measured on network",
        ),
        (
            ["run", "--check", "D-fig5", "--size", "full"],
            "unknown figure kept at size 'full' 'D-fig5'",
        ),
        (
            ["run", "--check", "--keep", "nowhere"],
            "error: nowhere holds no results of size 'quick'",
        ),
    ],
)
def test_the_command_says_what_is_wrong(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            run_command(*program_of(["paper", *words]))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 2
    written = capsys.readouterr().err
    assert said in written
    assert written.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    """Ctrl-C once a cell is there; the same command makes the rest and the same bytes."""
    words = [sys.executable, "-m", "dcqcn_gym", "paper", "run", "D-fig5", "--size", "smoke"]
    words += ["--jobs", "1", "--quiet", "--out", str(tmp_path / "a")]
    cut = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, process_group=0)
    cells = tmp_path / "a" / "cells"
    wait_for(lambda: cut.poll() is not None or any(cells.glob("*.json")), "a cell is there")
    os.killpg(cut.pid, signal.SIGINT)
    _, said = cut.communicate()
    if cut.returncode != 0:  # it was not over yet
        assert cut.returncode == 130
        assert "the same command continues it" in said
        assert not (tmp_path / "a" / RESULTS_FILE).exists()
    before = {path: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert before
    subprocess.run(words, check=True, capture_output=True)
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    smoke(catalog.figure("D-fig5"), tmp_path / "b")
    a, b = ((tmp_path / name / RESULTS_FILE).read_bytes() for name in "ab")
    assert a == b


EXTRAS = ("scipy", "matplotlib", "pyarrow", "optuna", "torch", "stable_baselines3", "pettingzoo")


@pytest.mark.slow
def test_figures_need_no_extra(tmp_path: Path) -> None:
    """Every recipe loads, one runs and pages are written without any optional package."""
    program = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))
from pathlib import Path
from dcqcn_gym.benchmarks.papers import catalog
from dcqcn_gym.benchmarks.papers.committed import committed_results
from dcqcn_gym.benchmarks.papers.page import write_pages
from dcqcn_gym.cli import app
loaded = [one for paper in catalog.PAPERS for one in catalog.figures_of(paper.name)]
assert len(loaded) == {len(FIGURES)}
write_pages(Path("pages"), committed_results(catalog.results_folder()))
app("paper run R-fig3 --size smoke --jobs 1 --quiet --out a".split())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "pages").glob("*.md"))) == len(catalog.PAPERS)
    assert (tmp_path / "a" / RESULTS_FILE).is_file()


def test_a_damaged_cell_is_made_again_and_another_revision_is_refused(
    tmp_path: Path,
) -> None:
    figure = catalog.figure("R-fig3")
    smoke(figure, tmp_path)
    (cell, other, *_) = sorted((tmp_path / "cells").iterdir())
    whole = (tmp_path / RESULTS_FILE).read_bytes()
    old, untouched = cell.read_bytes(), other.stat().st_mtime_ns
    cell.write_bytes(old[:-20])
    smoke(figure, tmp_path)
    assert json.loads(cell.read_bytes())["values"] == json.loads(old)["values"]
    assert other.stat().st_mtime_ns == untouched
    assert (tmp_path / RESULTS_FILE).read_bytes() == whole
    with pytest.raises(RunError, match="made with revision = 1, now it is 2"):
        smoke(replace(figure, revision=2), tmp_path)


def test_a_folder_holds_one_figure_at_one_size(tmp_path: Path) -> None:
    """A cell's file has row, place and seed in its name alone: another size would replace it."""
    first = catalog.figure("D-fig13a")
    smoke(first, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
    for other, size in ((first, "quick"), (catalog.figure("R-fig3"), "smoke")):
        said = 'size = "smoke"' if other is first else 'figure = "D-fig13a"'
        with pytest.raises(RunError, match=f"made with {said}, now it is"):
            produce(other, size, tmp_path)
    acks = with_data_acks(catalog.figure("D-fig11"))
    smoke(acks, tmp_path / "acks")
    with pytest.raises(RunError, match=r"made with more\.acks_as_data = 1\.0, now it is null"):
        produce(catalog.figure("D-fig11"), "smoke", tmp_path / "acks")
    assert {path: path.read_bytes() for path in before} == before


def test_results_that_lack_a_measure_say_so(tmp_path: Path) -> None:
    results = smoke(catalog.figure("D-fig5"), tmp_path)
    with pytest.raises(ConfigError, match="D-fig5: no 'bakc' of row"):
        results.values("bakc", *results.places[0])


# --- what is kept with the project


def test_kept_results_are_of_the_figures_as_they_are() -> None:
    paths = list(KEPT.glob("*.jsonl"))
    assert paths
    for path in paths:
        results = read_results(path)
        figure = catalog.figure(results.figure)
        assert path.name == f"{results.figure}-{results.size}.jsonl"
        cells = [(c.row, c.x, c.seed) for c in figure.sizes[results.size].cells()]
        assert [(o["row"], o["x"], o["seed"]) for o in results.lines] == cells
        size = figure.sizes[results.size]
        assert cells
        for line in results.lines:
            assert line["revision"] == figure.revision
            assert (line["length_ms"], line["more"]) == (size.length_ms, dict(size.more))


def test_pages_are_made_of_the_kept_results_alone(tmp_path: Path) -> None:
    written = write_pages(tmp_path, committed_results(KEPT), committed_checks(KEPT))
    assert written
    files = [*(tmp_path / "images").iterdir(), *(tmp_path / "tables").iterdir()]
    assert len(files) > len(FIGURES)
    for path in (*written, *files):
        there = ROOT / "docs/measured/papers" / path.relative_to(tmp_path)
        assert path.read_bytes() == there.read_bytes(), f"tools/paper_pages.py: {path.name}"


def test_a_page_says_a_cause_once_and_its_file_has_every_row() -> None:
    results, _ = committed_results(KEPT)["P-fig5"]
    judged = judge(catalog.figure("P-fig5").claims, results)
    causes = [one.cause for one in judged if one.cause]
    text = verdict_text(judged)
    assert len(causes) > len(set(causes)) == 2
    assert all(text.count(plain(cause)) == 1 for cause in causes)
    said = [text.count(f"{verdict} (") for verdict in ("not reproduced", "another reading")]
    assert said == [2, 3]
    with (ROOT / "docs/measured/papers/tables/P-fig5.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["series"], float(line["value"])) for line in lines] == list(results.places)
    mean = 1e-9 * np.mean(results.values("tp", *results.places[0]))
    assert float(lines[0]["throughput, Gb/s"]) == pytest.approx(mean, rel=1e-5)


def test_a_claim_like_the_one_before_is_written_from_where_they_differ() -> None:
    results, _ = committed_results(KEPT)["P-fig9"]
    lines = verdict_text(judge(catalog.figure("P-fig9").claims, results)).splitlines()[2:6]
    first = [line.split("|")[1].strip() for line in lines]
    influx, after = "lower round trips in the influx", "higher throughput after it"
    rest = "… Pretrained 2"
    assert first == [f"{influx} than Pretrained 1", rest, f"{after} than Pretrained 1", rest]


def test_the_readme_counts_the_verdicts_of_every_paper() -> None:
    table = by_paper(committed_results(KEPT), "docs/measured/papers").markdown()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert table in readme, "tools/paper_pages.py --readme README.md writes it anew"


def test_a_run_says_before_it_starts_what_it_cost_when_it_was_kept(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    figure = catalog.figure("D-fig5")
    assert cost_in_words(keep, figure, "smoke") == "D-fig5 at size smoke: 8 cells, cost not known"
    (keep / "D-fig5-quick.timing.json").write_text('{"cpu_s": 1234.5}')
    assert cost_in_words(keep, figure, "smoke").endswith(
        "cost not known; quick took 1,234 s of CPU time"
    )
    (keep / "D-fig5-smoke.timing.json").write_text('{"cpu_s": 2.0}')
    assert cost_in_words(keep, figure, "smoke").endswith(
        "8 cells, 2 s of CPU time when they were kept"
    )
    first = command("run", "D-fig5", "--size", "smoke", cwd=tmp_path).stderr.splitlines()[0]
    assert first == cost_in_words(KEPT, figure, "smoke")


def test_the_list_says_what_came_out_of_every_row() -> None:
    found = command("run")
    assert found.returncode == 0
    results, spent = committed_results(KEPT)["P-fig12"]
    assert f"{results.size} ({spent:,.0f})" in found.stdout
    lines = [line.split() for line in found.stdout.splitlines()]
    for row in catalog.ROWS:
        (line,) = (words for words in lines if words[:1] == [row.name])
        said = " ".join(line)
        assert "claim" in said or row.impossible in said or "not yet measured" in said
    judged = [
        one
        for results, _ in committed_results(KEPT).values()
        if not catalog.figure(results.figure).judged_in
        for one in judge(catalog.figure(results.figure).claims, results)
    ]
    right = [one for one in judged if one.verdict is Outcome.REPRODUCED]
    assert f"In all, {len(judged)} claims: {len(right)} reproduced" in found.stdout


def test_the_series_of_before_are_judged_by_the_same_claims() -> None:
    """P-fig7ab: the two rows change places, nothing else does."""
    of, (results, _) = catalog.figure("P-fig7ab"), committed_results(KEPT)["P-fig7ab"]
    now, then = judge(of.claims, results)[0], judge_before(of, results)[0]
    (row, before), place = next(iter(of.before.items())), "30 % of uplinks"
    assert then.found != now.found
    found = [Growth("mice", name, "DCQCN+", place).of(results) for name in (row, before)]
    assert [now.found, then.found] == found
    page = (ROOT / "docs/measured/papers/paraleon.md").read_text(encoding="utf-8")
    table = page.split("| judged now |")[1].split("<!-- table: end -->")[0]
    assert f"{100 * then.found.mean:+.1f} %" in table
    assert f"{100 * now.found.mean:+.1f} %" in table
