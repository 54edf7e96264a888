"""A trace is searched on its begin and judged on later parts, with an interval over them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.runs.log import read_run
from programs import runs_in_threads

TRACE = """
description = "many to one, again and again"
monitor_interval_us = 500
warmup_us = 500
intervals = 4
[weights]
tp = 0.2
rtt = 0.5
pfc = 0.3
[topology]
kind = "single-switch"
hosts = 9
gbps = 100
delay_us = 1.0
[[workloads]]
kind = "flows"
flows = "flows.csv"
"""


def tuned(folder: Path, ms: int, more: str = "") -> dict[str, object]:
    """Tune by the rule on a trace of some length; return best.json."""
    rows = ["src,dst,bytes,start_ns"]
    for burst in range(ms * 4):  # 8 flows of 300 KB meet every 250 us
        rows += [f"{1 + i},0,{300_000 + burst},{burst * 250_000 + 4007 * i}" for i in range(8)]
    (folder / "flows.csv").write_text("\n".join(rows) + "\n")
    (folder / "trace.toml").write_text(TRACE + more)
    words = ["tune", "-s", str(folder / "trace.toml"), "--tuner", "advise", "--eval-seeds", "3"]
    out = folder / "run"
    words += ["--eval-intervals", "4", "--out", str(out), "--quiet"]
    with runs_in_threads():
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads((out / "best.json").read_text())
    return found


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    folder = tmp_path_factory.mktemp("long")
    return folder / "run", tuned(folder, 12)


def test_each_part_has_other_flows_that_the_search_did_not_have(
    long: tuple[Path, dict[str, object]],
) -> None:
    run, _ = long
    logs = sorted((run / "evaluation").glob("recommended-*.jsonl"))
    assert len(logs) == 3
    seen = []
    for log in logs:
        header = read_run(log).header
        assert header["part"].endswith("ms of the trace")
        flows = header["scenario"]["workloads"][0]["flows"]
        sizes = {flow[2] for flow in flows}
        assert min(sizes) >= 300_000 + 10  # 2.5 ms were searched, a burst every 0.25 ms
        seen.append(sizes)
    assert not seen[0] & seen[1] | seen[1] & seen[2]


def test_the_verdict_says_on_what_and_has_an_interval(long: tuple[Path, dict[str, object]]) -> None:
    run, best = long
    answer = best["answer"]
    assert isinstance(answer, dict)
    assert all(one["deploy"] in ("yes", "no") for one in answer["tried"].values())
    page = (run / "report.html").read_text()
    where = "1 to 11.5 of its 11.778 ms"  # what search and parts take, the busiest stretch
    assert f"on 3 later parts of the same trace, {where}, of 4 intervals" in page
    assert "one trace" not in page
    assert "on held-out seeds" not in page.partition("<main>")[0]


def test_blocks_in_another_order_are_said_to_be_so(tmp_path: Path) -> None:
    best = tuned(tmp_path, 12, "blocks_us = 500\n")
    answer = best["answer"]
    assert isinstance(answer, dict)
    assert all(one["deploy"] in ("yes", "no") for one in answer["tried"].values())
    page = (tmp_path / "run" / "report.html").read_text()
    words = "3 later parts of the same trace, blocks in another order, of 4 intervals"
    assert f"on {words}" in page
    log = next((tmp_path / "run" / "evaluation").glob("recommended-*.jsonl"))
    assert "blocks in another order, 0.5 ms each, from 2.5 ms" in read_run(log).header["part"]


def test_a_trace_that_is_too_short_is_still_unknown(tmp_path: Path) -> None:
    answer = tuned(tmp_path, 4)["answer"]
    assert isinstance(answer, dict)
    assert answer["action"] == "cannot tell"
    assert "ms and this session needs" in answer["next_step"]


def test_a_comparison_judges_each_seed_on_parts_of_its_own(
    long: tuple[Path, dict[str, object]], tmp_path: Path, in_threads: None
) -> None:
    scenario = str(long[0].parent / "trace.toml")
    words = ["compare", "-s", scenario, "--tuners", "default,advise", "--seeds", "3", "--quiet"]
    words += ["--eval-seeds", "1", "--eval-intervals", "4", "--jobs", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    parts = {
        tuner: [
            read_run(log).header["part"] for log in sorted(tmp_path.glob(f"*/{tuner}/*-held-out0*"))
        ]
        for tuner in ("default", "advise")
    }
    assert parts["default"] == parts["advise"]  # paired
    assert len(set(parts["advise"])) == 3
    page = (tmp_path / "compare.html").read_text()
    assert "one trace, no interval" not in page
    assert "later parts of the same trace" in page
    rows = pytest.importorskip("pyarrow.csv").read_csv(tmp_path / "seeds.csv").to_pylist()
    assert [(row["tuner"], row["seed"]) for row in rows if row["tuner"] == "advise"] == [
        ("advise", seed) for seed in (1, 2, 3)
    ]
    assert all(isinstance(row["slowdown_mean"], float) for row in rows)
    parquet = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "seeds.parquet")
    assert parquet.to_pylist() == rows
