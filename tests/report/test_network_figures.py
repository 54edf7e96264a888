"""The papers' sizes, round trips, fairness and curves: by hand, and from a recorded run."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.statistics import (
    PAPER_BINS,
    Fairness,
    SizeBin,
    fairness_of,
    paper_bins,
    slowdown_by_size,
)
from dcqcn_gym.report.network import CDF_POINTS, cdf_rows, network_figures, size_table
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from synthetic_run import write_run


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_the_sizes_of_the_papers_end_where_they_say() -> None:
    sizes = ints(100_000, 100_001, 9_999_999, 10_000_000, 119_999, 120_000, 1_000_000, 1_000_001)
    counts = {
        name: [row.count for row in slowdown_by_size(sizes, np.ones(len(sizes)), bins)]
        for name, bins in PAPER_BINS.items()
    }
    assert counts == {"acc": [1, 1, 8], "paraleon": [3, 3, 8]}
    with pytest.raises(UnknownNameError, match="did you mean 'acc'"):
        paper_bins("ac")


def test_jain_of_long_flows() -> None:
    mb, ms = 1_000_000, 10**9
    # rates 1, 1, 2 MB/ms; the small flow does not count: 4^2 / (3 * 6)
    sizes, times = ints(mb, 2 * mb, 2 * mb, 999_999), ints(ms, 2 * ms, ms, 1)
    assert fairness_of(sizes, times) == pytest.approx(16 / 18)
    parts = Fairness()
    for i in range(4):
        parts.add(sizes[i : i + 1], times[i : i + 1])
    assert parts.index == pytest.approx(16 / 18)
    assert fairness_of(ints(5 * mb), ints(ms)) == 1.0
    assert math.isnan(fairness_of(ints(5), ints(1)))


def test_a_curve_keeps_its_ends_and_its_ranks() -> None:
    bins = [SizeBin("small", "small", 0, 10), SizeBin("none", "none", 10, 20),
            SizeBin("large", "large", 20, math.inf)]  # fmt: skip
    rows = list(cdf_rows(ints(1, 30, 2, 40, 3), ints(3000, 9000, 1000, 8000, 2000), bins))
    assert rows == [
        ("small", 3, 1.0, 1 / 3), ("small", 3, 2.0, 2 / 3), ("small", 3, 3.0, 1.0),
        ("large", 2, 8.0, 0.5), ("large", 2, 9.0, 1.0),
    ]  # fmt: skip
    n = 50_000
    many = list(cdf_rows(np.ones(n, dtype=np.int64), np.arange(n)[::-1] * 1000, bins[:1]))
    assert len(many) == CDF_POINTS
    assert many[0] == ("small", n, 0.0, 1 / n)
    assert many[-1] == ("small", n, n - 1.0, 1.0)
    assert all(fct == pytest.approx(share * n - 1) for _, _, fct, share in many)


def test_figures_of_a_recorded_run(tmp_path: Path) -> None:
    run = Series.of(read_run(write_run(tmp_path / "run", intervals=5) / "run.jsonl"))
    found = network_figures(run)
    assert found.rtt_p99_us == pytest.approx(np.percentile(run.column("rtt_mean_ps"), 99) * 1e-6)
    assert found.jain == pytest.approx(fairness_of(run.finished.bytes, run.fct_ps), nan_ok=True)
    assert found.sizes["acc"][-1].count == run.every_flow[0].size
    table = size_table({"ours": found}, "acc")
    assert table.columns[-3:] == ["all sizes, flows", "all sizes, mean", "all sizes, p99"]
    assert len(table.columns) == len(table.rows[0])


def test_the_report_shows_them_and_writes_curves(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=5, seeds=2)
    done = CliRunner().invoke(app, ["report", str(run), "--bins", "paraleon", "--fct-cdf"])
    assert done.exit_code == 0, done.output
    page = (run / "report.html").read_text()
    assert "Round trips and fairness" in page
    assert "Slowdown by the sizes asked for" in page
    rows = list(csv.DictReader(io.StringIO((run / "fct-cdf.csv").read_text())))
    assert {row["traffic"] for row in rows} == {"tuning", "held_out"}
    assert {row["setting"] for row in rows} >= {"default", "expert", "candidate"}
    ends = [row for row in rows if float(row["share"]) == 1.0]
    assert len(ends) == len({(r["traffic"], r["setting"], r["size"]) for r in rows})
    plain = CliRunner().invoke(app, ["report", str(run)])
    assert plain.exit_code == 0
    assert "Slowdown by the sizes asked for" not in (run / "report.html").read_text()
    refused = CliRunner().invoke(app, ["report", str(run), "--bins", "paralon"])
    assert refused.exit_code != 0


def test_a_simulation_writes_them(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["simulate", "--scenario", "mini-fb-hadoop", "--intervals", "5", "--out", str(out)]
    done = CliRunner().invoke(app, [*words, "--bins", "acc", "--fct-cdf"])
    assert done.exit_code == 0, done.output
    summary = (out / "summary.json").read_text()
    for key in ("slowdown_by_paper", "rtt_p99_ns", "jain_index", "applications"):
        assert f'"{key}"' in summary
    flows = list(csv.DictReader(io.StringIO((out / "flows.csv").read_text())))
    curve = list(csv.DictReader(io.StringIO((out / "fct-cdf.csv").read_text())))
    everything = [row for row in curve if row["size"] == "all"]
    assert everything[0]["flows"] == str(len(flows))
    slowest = max(float(row["fct_ns"]) for row in flows)
    assert float(everything[-1]["fct_ns"]) == pytest.approx(slowest)
    again = CliRunner().invoke(app, [*words, "--force"])
    assert again.exit_code == 0
    assert not (out / "fct-cdf.csv").exists()
