"""``jobs`` on a file whose figures are known by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
import making_jobs as making

from dcqcn_gym.cli import app
from dcqcn_gym.envs.scenario.job_graph import JobGraph, NodeKind
from dcqcn_gym.envs.scenario.scenario import load_scenario


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One layer on 8 ranks, tensor groups of 2, a data-parallel group of 4."""
    layer = making.row("mlp", (1000, "ALLREDUCE", 80_000), (2000, "NONE", 0),
                       (1000, "ALLREDUCE", 40_000), 500)  # fmt: skip
    path = tmp_path / "mine.txt"
    path.write_text(making.simai([layer], making.header(ep=8)))
    return path


def said(*words: object) -> str:
    done = CliRunner().invoke(app, ["jobs", *map(str, words)])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_inspect_says_what_is_in_a_file(file: Path) -> None:
    text = said(file, "--server", 2)
    assert "all-reduce 2 80,000 4 all-reduce 4 40,000 2" in text
    fabric, inside = 2 * 4 * 2 * 3 * 10_000, 8 * 80_000  # 2 (n - 1) shares of each rank
    assert f"{fabric:,} on the fabric, {inside:,} inside servers of 2" in text
    assert "computation of a rank: 0.0045 to 0.0045 ms; longest chain 0.0045 ms" in text
    assert "1 ep in the first line: taken as 4" in text
    assert f"{fabric + inside:,} on the fabric, 0 inside" in said(file, "--server", 1)


def test_convert_writes_what_a_scenario_runs(file: Path) -> None:
    out = file.with_name("mine.job")
    assert "8 ranks" in said(file, "--server", 2, "--out", out)
    graph = JobGraph.from_file(out)
    moved = {k: int(graph.sizes[graph.kind == k].sum()) for k in NodeKind}
    assert (moved[NodeKind.TRANSFER], moved[NodeKind.LOCAL]) == (480_000, 640_000)
    file.with_name("mine.toml").write_text(
        "[servers]\ngpus = 2\n"
        '[topology]\nkind = "servers"\nservers = 4\ngpus = 2\nspines = 1\n'
        '[[workloads]]\nkind = "job"\ngraph = "mine.job"\n'
    )
    (job,) = load_scenario(file.with_name("mine.toml")).workloads
    assert job.graph == graph  # type: ignore[attr-defined]
