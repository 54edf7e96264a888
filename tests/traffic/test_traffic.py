"""The commands: flows of a scenario, a scenario that is like them, a page; and what they refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from test_text import nccl
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.rounds import Ring
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.scenario.tables import read_flows
from dcqcn_gym.envs.scenario.workloads import Poisson
from dcqcn_gym.extras.traffic.fitting import fit, read_into, size_points
from dcqcn_gym.simulation.run import simulate

TRACE = """start_us,from,to,bytes
10,gpu-a1,gpu-b1,2000000
10,gpu-a10,gpu-b1,2000000
15,gpu-b2,gpu-a1,30000
15,gpu-b2,gpu-a1,30000
20,gpu-b2,gpu-b2,30000
25,gpu-b2,gpu-a2,0
910,gpu-b2,gpu-b1,2000000
"""
FABRIC = """
description = "a rack"
intervals = 4
[weights]
tp = 0.2
rtt = 0.5
pfc = 0.3
[topology]
kind = "single-switch"
hosts = 6
gbps = 100
[[workloads]]
kind = "alltoall"
bytes = 1000
"""


def typed(*words: str) -> str:
    done = CliRunner().invoke(app, ["traffic", *words], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("trace.csv").write_text(TRACE)
    Path("fabric.toml").write_text(FABRIC)
    return tmp_path


def test_a_trace_becomes_flows_and_a_file_of_names(folder: Path) -> None:
    said = typed("import", "trace.csv", "--out", "o")
    assert "7 records, 5 flows between 4 names over 0.0009 s" in said
    assert "1 records are from a host to itself, for example 'gpu-b2'" in said
    assert "1 records have no payload" in said
    assert "1 records appear twice (all were taken)" in said
    assert Path("o/hosts.csv").read_text() == (
        "name,host\ngpu-a1,h0\ngpu-a10,h1\ngpu-b1,h2\ngpu-b2,h3\n"
    )
    balance = json.loads(Path("o/balance.json").read_text())["records"]
    assert (balance["in"], balance["taken"]) == (7, 5)
    assert sum(balance["left_out"].values()) == 2
    flows = [(f.src, f.dst, f.bytes, f.start_ns) for f in read_flows(Path("o/flows.csv"))]
    assert flows == [
        (0, 2, 2_000_000, 0.0), (1, 2, 2_000_000, 0.0), (3, 0, 30_000, 5000.0),
        (3, 0, 30_000, 5000.0), (3, 2, 2_000_000, 900_000.0),
    ]  # fmt: skip


def test_names_that_the_hosts_file_has_not_are_left_out_and_said(folder: Path) -> None:
    Path("hosts.csv").write_text("gpu-a1,4\ngpu-b1,2\ngpu-b2,h0\n")
    said = typed("import", "trace.csv", "--out", "o", "--hosts", "hosts.csv")
    assert "2 records name a host that the hosts file has not, for example" in said or (
        "1 records name a host that the hosts file has not" in said
    )
    assert "gpu-a10; did you mean 'gpu-a1'" in said
    assert [f[:2] for f in read_flows(Path("o/flows.csv"))] == [(4, 2), (0, 4), (0, 4), (0, 2)]


def test_a_window_begins_at_zero_and_an_empty_one_writes_nothing(folder: Path) -> None:
    typed("import", "trace.csv", "--out", "o", "--window", "0.0009:1")
    assert [f.start_ns for f in read_flows(Path("o/flows.csv"))] == [0.0]
    with pytest.raises(ConfigError, match=r"no flow starts within --window; it has 0\.0009 s"):
        typed("import", "trace.csv", "--out", "p", "--window", "5:6")
    assert not Path("p").exists()
    with pytest.raises(ConfigError, match="--window '3'; expected FROM:TO"):
        typed("import", "trace.csv", "--out", "p", "--window", "3")


def test_a_clock_that_goes_back_is_said(folder: Path) -> None:
    Path("skew.csv").write_text("src,dst,bytes,start_s\na,b,1,9\nb,a,1,7.5\n")
    assert "1 records start over a second before one above" in typed(
        "import", "skew.csv", "--out", "o"
    )


def test_a_fitted_scenario_runs_and_offers_the_same_load(folder: Path) -> None:
    draw = np.random.default_rng(3)
    n = 20_000
    starts = np.cumsum(draw.exponential(1000.0, n)).astype(int)
    sizes = np.ceil(draw.lognormal(8.0, 2.0, n)).astype(int)
    ends = [draw.choice(6, 2, replace=False) for _ in range(n)]
    with open("trace.csv", "w") as file:
        rows = csv.writer(file)
        rows.writerow(["src", "dst", "bytes", "start_ns"])
        rows.writerows(
            (f"h{a}", f"h{b}", s, t) for (a, b), s, t in zip(ends, sizes, starts, strict=True)
        )
    said = typed("import", "--fit", "trace.csv", "--scenario", "fabric.toml", "--out", "o")
    assert "bursty" not in said
    fitted = load_scenario("o/scenario.toml")
    workload = fitted.workloads[0]
    assert isinstance(workload, Poisson)
    assert workload.mean_gap_ps(fitted.fabric) == pytest.approx(6e6, rel=0.02)  # 1 us for all six
    assert workload.cdf.mean_bytes == pytest.approx(float(sizes.mean()), rel=0.01)
    assert simulate(fitted, Path("run"), intervals=2)["intervals"] == 2


def test_bursts_and_busy_pairs_are_said(folder: Path) -> None:
    rows = ["src,dst,bytes,start_us"]
    rows += [f"a{i % 5},b,1000,{1000 * (i // 50)}" for i in range(5000)]
    rows += ["b,a0,1000000000,5"]
    Path("trace.csv").write_text("\n".join(rows))
    said = typed("import", "--fit", "trace.csv", "--scenario", "fabric.toml", "--out", "o")
    assert "arrivals are bursty: in windows of 100 us" in said
    assert "the busiest tenth of all pairs of hosts has 100% of the bytes" in said


def test_a_table_of_many_sizes_is_close_to_them() -> None:
    draw = np.random.default_rng(1)
    sizes = np.ceil(draw.pareto(1.2, 100_000) * 1000).astype(np.int64)
    points = size_points(sizes)
    assert len(points) <= 202
    assert points[-1] == (int(sizes.max()), 1.0)
    flows = ((0, 1, int(s), i) for i, s in enumerate(sizes))
    found = fit(read_into(flows), 100e9)
    assert found.size_distance < 0.012
    assert abs(found.mean_change) < 0.05


def test_incast_counts_flows_that_overlap_at_line_rate() -> None:
    flows = [(0, 9, 1_250_000, 0), (1, 9, 1_250_000, 50_000), (2, 9, 1_250_000, 100_000),
             (3, 8, 100, 0)]  # fmt: skip
    found = fit(read_into(flows), 100e9)  # 100 us each: the third begins as the first ends
    assert (found.most_incast, found.incast) == (2, 1.5)


def test_the_largest_collective_of_a_log_becomes_a_workload(folder: Path) -> None:
    lines = [nccl(rank, "ReduceScatter", 1 << 20, 7, 8) for rank in range(8)]
    lines += [nccl(rank, "Broadcast", 1 << 18, 7, 8) for rank in range(8)]
    Path("log").write_text("".join(lines))
    said = typed("import", "--fit", "log", "--scenario", "fabric.toml", "--out", "o")
    assert "16 calls of 2 kinds and sizes by 8 ranks" in said
    assert "other calls, with 20% of the log's bytes, are left out" in said
    assert "8 ranks on the 6 hosts of fabric: one rank a host" in said
    workload = load_scenario("o/scenario.toml").workloads[0]
    assert isinstance(workload, Ring)
    assert (workload.kind, workload.collective) == ("ring", "reduce-scatter")
    assert (workload.bytes, workload.hosts) == (8 << 22, 6)
    with pytest.raises(ConfigError, match="collectives without times"):
        typed("import", "log", "--out", "p")


def test_the_page_has_figures_charts_and_the_matrix(folder: Path) -> None:
    said = typed("import", "--page", "trace.csv", "--out", "page")
    page = Path("page/traffic.html").read_text()
    assert "payload, GB" in said
    assert page.count('<svg class="panel"') == 2
    assert ">h1</th>" in page
    assert '<td style="--part:60%">33</td>' in page


def test_hosts_that_the_fabric_has_not_are_named(folder: Path) -> None:
    Path("hosts.csv").write_text("gpu-a1,40\ngpu-b1,2\ngpu-b2,h0\ngpu-a10,h1\n")
    with pytest.raises(ConfigError, match="host h40, and fabric has 6"):
        typed(
            "import",
            "--fit",
            "trace.csv",
            "-s",
            "fabric.toml",
            "--out",
            "o",
            "--hosts",
            "hosts.csv",
        )
    assert not Path("o").exists()


def test_show_names_the_busiest_windows_and_who_is_in_it(tmp_path: Path) -> None:
    sizes = [1000 + 10**6 * (70 <= i < 80) for i in range(100)]
    rows = [f"{i * 0.01:.2f},gpu-a{i % 3},gpu-b{i % 5},{size}" for i, size in enumerate(sizes)]
    (tmp_path / "t.csv").write_text("start,src,dst,bytes\n" + "\n".join(rows) + "\n")
    result = CliRunner().invoke(
        app, ["traffic", "import", str(tmp_path / "t.csv"), "--page", "--out", str(tmp_path / "p")]
    )
    assert result.exit_code == 0, result.output
    assert "busiest windows, for --window: 0.7:0.8 (10 flows" in result.output
    assert "100 flows; 3 senders and 5 receivers of 8 hosts" in result.output
