"""Results of papers' figures that are kept, and measured again: what is refused, what is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paper_runs import command, smoke

from dcqcn_gym.benchmarks.papers import catalog
from dcqcn_gym.benchmarks.papers.catalog import PAPERS
from dcqcn_gym.benchmarks.papers.committed import commit_results, committed_results
from dcqcn_gym.benchmarks.papers.page import came_out
from dcqcn_gym.benchmarks.papers.rerun import cheapest, committed, compared
from dcqcn_gym.benchmarks.papers.results import RESULTS_FILE, read_results
from dcqcn_gym.core.errors import RunError

KEPT = catalog.results_folder()


def test_keeping_needs_a_folder(tmp_path: Path) -> None:
    smoke(catalog.figure("D-fig5"), tmp_path / "a")
    with pytest.raises(RunError, match="run this in a checkout"):
        commit_results(tmp_path / "a", tmp_path / "nowhere")
    (tmp_path / "kept").mkdir()
    path = commit_results(tmp_path / "a", tmp_path / "kept")
    assert read_results(path) == read_results(tmp_path / "a" / RESULTS_FILE)


@pytest.mark.parametrize("changed", [{"revision": 99}, {"length_ms": 1.5}, {"seed": 77}])
def test_only_results_of_a_figure_as_it_is_are_kept(
    changed: dict[str, object], tmp_path: Path
) -> None:
    path = kept_smoke("R-fig3", tmp_path)
    there = path.read_bytes()
    first, *rest = (tmp_path / "first" / RESULTS_FILE).read_bytes().splitlines(keepends=True)
    line = json.dumps({**json.loads(first), **changed}).encode() + b"\n"
    (tmp_path / "first" / RESULTS_FILE).write_bytes(b"".join([line, *rest]))
    with pytest.raises(RunError, match="another state of R-fig3: its rows, length or revision"):
        commit_results(tmp_path / "first", tmp_path / "kept")
    assert path.read_bytes() == there


def test_damaged_files_among_the_kept_ones_are_named(tmp_path: Path) -> None:
    path = kept_smoke("R-fig3", tmp_path)
    good = path.read_bytes()
    for bad in (
        b'{"figure":"R-fig3","size":"smoke"}\n',
        good.replace(b'"size":"smoke"', b'"size":"tiny"'),
        good.replace(b'"hops":0', b'"hops":null'),
        b"",
    ):
        path.write_bytes(bad)
        with pytest.raises(RunError, match=r"R-fig3-smoke.jsonl does not hold results"):
            committed_results(path.parent)
    path.write_bytes(good)
    timing = path.with_suffix(".timing.json")
    for bad in (b"[]", b"{", b'{"cpu_s": "long"}'):
        timing.write_bytes(bad)
        with pytest.raises(RunError, match=r"R-fig3-smoke.timing.json does not hold the CPU time"):
            committed_results(path.parent)


def kept_smoke(name: str, folder: Path) -> Path:
    """Run a figure at smoke size and keep it in ``folder``; return the file."""
    smoke(catalog.figure(name), folder / "first")
    (folder / "kept").mkdir()
    return commit_results(folder / "first", folder / "kept")


def test_a_rerun_compares_with_what_is_kept(tmp_path: Path) -> None:
    path = kept_smoke("D-fig13a", tmp_path)
    words = ["run", "--check", "D-fig13a", "--size", "smoke", "--jobs", "1", "--quiet",
             "--keep", "kept", "--out", "again"]  # fmt: skip
    found = command(*words, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "the same bytes" in found.stdout
    lines = path.read_bytes().splitlines(keepends=True)
    changed = json.loads(lines[1])
    path.write_bytes(b"".join([lines[0], lines[1].replace(b'"hops":', b'"hops":1'), *lines[2:]]))
    found = command(*words, cwd=tmp_path)
    assert found.returncode == 2
    cell = f"{changed['row']} at {changed['x']}, seed {changed['seed']}"
    assert f"differs: D-fig13a: {cell}" in found.stderr
    assert found.stderr.count("differs:") == 1


@pytest.mark.slow
def test_a_rerun_goes_on_in_the_folder_that_is_named_and_measures_all_without(
    tmp_path: Path,
) -> None:
    """What was measured by other code must not pass for a rerun unless it is asked for."""
    kept_smoke("R-fig3", tmp_path)
    words = [
        "run",
        "--check",
        "R-fig3",
        "--size",
        "smoke",
        "--keep",
        "kept",
        "--jobs",
        "1",
        "--quiet",
    ]
    assert command(*words, "--out", "again", cwd=tmp_path).returncode == 0
    (cell, *_) = sorted((tmp_path / "again" / "R-fig3" / "cells").iterdir())
    cell.write_bytes(cell.read_bytes().replace(b'"hops":', b'"hops":1'))
    assert command(*words, "--out", "again", cwd=tmp_path).returncode == 2
    assert command(*words, cwd=tmp_path).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"first", "kept", "again"}


def test_a_rerun_tells_cells_that_are_missing_or_in_another_order(tmp_path: Path) -> None:
    path = kept_smoke("R-fig3", tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)

    def again() -> list[str]:
        done = compared(tmp_path / "first" / RESULTS_FILE, path)
        assert (done.paper, done.cells) == ("dolce-rc", len(lines))
        return list(done.differing)

    assert again() == []
    path.write_bytes(b"".join(lines[:-1]))
    last = json.loads(lines[-1])
    assert again() == [f"{last['row']} at {last['x']}, seed {last['seed']}"]
    path.write_bytes(b"".join(reversed(lines)))
    assert again() == ["the order of the cells"]


def test_a_rerun_without_names_takes_the_two_cheapest_of_each_paper() -> None:
    names = cheapest(KEPT, "quick")
    by_paper = {p.name: [n for n in names if catalog.figure(n).paper == p.name] for p in PAPERS}
    assert {name: len(found) for name, found in by_paper.items()} == {
        "paraleon": 2, "acc": 2, "chameleon": 1, "dolce-rc": 2, "dcqcn-plus": 2,
    }  # fmt: skip
    assert by_paper["acc"][0] == "A-fig14"


def test_a_wheel_says_that_results_are_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="in the repository, not in wheels"):
        committed("P-fig12", "quick", tmp_path / "results")
    (row,) = (row for row in catalog.ROWS if row.name == "P-fig12")
    assert "not in wheels" in came_out(row, committed_results(tmp_path / "results"))
