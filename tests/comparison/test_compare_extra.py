"""A comparison shows what applications get done, round trips, fairness, and a paper's sizes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.report.network import network_figures
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from programs import runs_in_threads

CLUSTER = """
name = "small-cluster"
monitor_interval_us = 200
warmup_us = 0
intervals = 4
topology = { kind = "single-switch", hosts = 10, gbps = 25 }

[weights]
tp = 0.5
rtt = 0.2
pfc = 0.3

[[workloads]]
kind = "storage"
pattern = "file-backup"
depth = 8
copies = 1
compute = [0, 1, 2, 3]
storage = [4, 5]

[[workloads]]
kind = "parameter-server"
bytes = 100000
server = 6
workers = [7, 8, 9]
compute_us = 10
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    (folder / "small-cluster.toml").write_text(CLUSTER)
    words = ["compare", "--scenario", str(folder / "small-cluster.toml"), "--quiet"]
    words += ["--tuners", "default,secn1", "--seeds", "2", "--eval-seeds", "1", "--jobs", "1"]
    words += ["--eval-intervals", "10", "--out", str(folder / "out")]
    with runs_in_threads():
        done = CliRunner().invoke(app, [*words, "--bins", "acc", "--fct-cdf"])
    assert done.exit_code == 0, done.output
    return folder / "out"


def test_the_page_and_the_table_show_iops_and_iterations(compared: Path) -> None:
    for name in ("table.md", "compare.html"):
        page = (compared / name).read_text()
        for words in ("IOPS", "iterations", "round trips and fairness", "slowdown by size"):
            assert words in page, (name, words)


def test_figures_are_those_of_the_logs(compared: Path) -> None:
    log = compared / "small-cluster" / "secn1" / "seed1-held-out0.jsonl"
    found = network_figures(Series.of(read_run(log)))
    results = json.loads((compared / "results.json").read_text())
    (row,) = (row for row in results["rows"] if row["tuner"] == "secn1")
    shown = row["figures"][0]
    assert shown["network"]["rtt_p99_us"] == pytest.approx(found.rtt_p99_us)
    assert shown["network"]["sizes"]["acc"][-1]["count"] == found.sizes["acc"][-1].count
    done = [one for line in read_run(log).intervals for one in line["applications"]]
    total = {0: 0, 1: 0}
    for one in done:
        total[one["workload"]] += one["operations"]
    operations = [one["operations"] for one in shown["applications"]]
    assert operations == list(total.values())
    assert min(operations) > 0
    rows = list(csv.DictReader(io.StringIO((compared / "fct-cdf.csv").read_text())))
    assert {row["setting"] for row in rows} == {"default", "secn1"}
    last = [row for row in rows if row["size"] == "all" and float(row["share"]) == 1.0]
    assert len(last) == 2
    logs = sorted((compared / "small-cluster" / "secn1").glob("*-held-out*.jsonl"))
    slowest = max(float(Series.of(read_run(path)).fct_ps.max()) * 1e-3 for path in logs)
    assert float(last[1]["fct_ns"]) == pytest.approx(slowest)
