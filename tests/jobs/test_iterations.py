"""Where the time of an iteration goes: by hand, against a slow count, and as files show it."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.collectives import RoundTracker, summary_of_parts
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.interval import JobSpans
from dcqcn_gym.core.iterations import BINS, LANES, Operations, added
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.envs.scenario.jobs.model import Job
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.workloads import collectives_of
from dcqcn_gym.runs.log_check import check_line
from dcqcn_gym.simulation.run import Extras, simulate
from dcqcn_gym.simulation.trace import parse_trace


def operations(*names: str, hosts: int = 2) -> Operations:
    """Labels 1, 2, ...; those that do not compute move bytes from rank 0 to every other."""
    rows = [
        (not name.startswith("compute"), 0, other, i)
        for i, name in enumerate(names, 1)
        for other in range(1, hosts)
    ]
    moves, src, dst, label = (np.array(column) for column in zip(*rows, strict=True))
    known = ("all-reduce", "all-to-all")
    return Operations(moves, src, dst, label, ("", *names), known, tuple(range(hosts)))


def test_an_iteration_by_hand() -> None:
    """Rank 0 computes 0 to 10 and 20 to 30; an all-reduce takes 5 to 15 there, 5 to 25 at 1."""
    of = operations("compute 1 a 1", "compute 1 a 2", "all-reduce 4000 b 1")
    rows = [[0, 1, 0, 7, 17], [0, 3, 0, 12, 22], [0, 3, 1, 12, 32], [0, 2, 0, 27, 37]]
    part = of.part(0, JobSpans.of_rows(rows), 7, 47)
    assert (part["start_ps"], part["time_ps"]) == (7, 40)
    assert part["computing_ps"] == [20, 0]
    assert part["exposed_ps"] == {"all-reduce": 5 + 20}
    assert part["waiting_ps"] == [40 - 20 - 5, 40 - 20]
    assert part["late_ps"] == [0, 10]
    assert part["collectives"] == [["all-reduce", 2, 4000, 1, 20]]
    of_both = summary_of_parts([part, part])
    assert of_both["computing_ns"] == 0.010
    assert of_both["by_rank"][1] == {
        "computing_ns": 0.0, "exposed_ns": 0.020, "waiting_ns": 0.020, "late_ns": 0.010,
    }  # fmt: skip
    (row,) = of_both["busbw"]
    assert (row["times"], row["time_ns_mean"]) == (1.0, 0.020)
    assert row["busbw_gbytes_per_s"] == pytest.approx(4000 / 20e-12 * 1e-9)  # 2 (n-1) / n = 1


def slowly(of: Operations, rows: list[list[int]], length: int) -> dict[str, Any]:
    """Count picosecond by picosecond, in units of 12 so that shares are whole."""
    ranks = range(len(of.hosts))
    found: dict[str, Any] = {"computing": [0, 0, 0], "waiting": [0, 0, 0]}
    exposed: dict[str, int] = defaultdict(int)
    for rank in ranks:
        for t in range(0, length, 12):
            kinds = {
                of.kinds[of.kind_of[label]]
                for _, label, host, begin, end in rows
                if begin <= t < end and host == rank
            }
            if "computation" in kinds:
                found["computing"][rank] += 12
            elif not kinds:
                found["waiting"][rank] += 12
            for kind in kinds if "computation" not in kinds else ():
                exposed[kind] += 12 // len(kinds)
    return {**found, "exposed": dict(exposed)}


@pytest.mark.parametrize("seed", range(20))
def test_against_a_slow_count(seed: int) -> None:
    names = ("compute 1 a 1", "all-reduce 8 b 1", "all-to-all 8 b 1", "my own", "compute")
    of, draw = operations(*names, hosts=3), random.Random(seed)
    rows = []
    for _ in range(draw.randint(1, 30)):
        begin, end = sorted(12 * draw.randrange(51) for _ in range(2))
        rows.append([0, draw.randint(1, 5), draw.randrange(3), begin, end])
    part = of.part(0, JobSpans.of_rows(rows), 0, 600)
    found = slowly(of, rows, 600)
    assert part["computing_ps"] == found["computing"]
    assert part["waiting_ps"] == found["waiting"]
    assert part["exposed_ps"] == found["exposed"]
    again = added([part, part])
    assert again["exposed_ps"] == {k: 2 * v for k, v in found["exposed"].items()}
    assert all(len(lane) == BINS for _, *lanes in part["timeline"]["ranks"] for lane in lanes)


def test_no_rank_has_two_operations_under_one_label() -> None:
    """Equal names and sizes, groups that overlap: else two spans would become one."""
    job = Job(4)
    for ranks in ((0, 1), (2, 3), (1, 2), (0, 3), (0, 1, 2, 3)):
        job.add("all-reduce", ranks, 4000, (), "x")
    job.add("message", (0, 1), 4000, (), "x")
    job.add("message", (1, 2), 4000, (), "x")
    graph = graph_of(job, Algorithms())
    of = Operations(graph.kind <= 1, graph.src, graph.dst, graph.label, graph.labels,
                    ("all-reduce", "message"), (0, 1, 2, 3))  # fmt: skip
    found = defaultdict(set)
    for label in set(graph.label.tolist()) - {0}:
        nodes = graph.label == label
        there = np.unique([graph.src[nodes], graph.dst[nodes]])
        for group in np.unique(of.group_of(np.full_like(there, label), there)):
            ours = of.group_of(np.full_like(there, label), there) == group
            found[graph.labels[label]].add(tuple(there[ours].tolist()))
    assert found == {
        "all-reduce 4000 x 1": {(0, 1), (2, 3)}, "all-reduce 4000 x 2": {(1, 2), (0, 3)},
        "all-reduce 4000 x 3": {(0, 1, 2, 3)}, "message 4000 x 1": {(0, 1)},
        "message 4000 x 2": {(1, 2)},
    }  # fmt: skip


def four_ranks(**more: Any) -> Scenario:
    """A small transformer on 4 ranks, three iterations."""
    model = {"layers": 1, "hidden": 64, "ffn": 256, "heads": 4}
    plan = {"model": model, "dp": 4, "batch": 4, "sequence": 64, "tflops": 1}
    table = {"server": 1, "plan": plan}
    values = {
        "topology": {"kind": "single-switch", "hosts": 4, "gbps": 400, "delay_us": 1},
        "workloads": [{"kind": "job", "graph": table, "rounds": 3}],
        "monitor_interval_us": 100, **more,
    }  # fmt: skip
    return validate(values, Scenario, source="job")


def test_parts_of_a_run_add_up() -> None:
    scenario = load_scenario("job-pipeline-16")
    tracker = RoundTracker(collectives_of(scenario.workloads, scenario.fabric))
    parts = []
    with closing(make_backend("native")) as backend:
        backend.open(scenario, 1)
        backend.apply(scenario.initial_setting())
        for _ in range(6):
            report = backend.advance()
            parts += [r.part for r in tracker.add(report.finished, report.job_spans)]
    (part,) = filter(None, parts)
    exposed = sum(part["exposed_ps"].values())
    busy = sum(part["computing_ps"]) + sum(part["waiting_ps"]) + exposed
    assert busy == 16 * part["time_ps"]
    assert len(set(part["computing_ps"])) == 1  # tensor neighbours compute alike, stages too
    kinds = {(kind, ranks) for kind, ranks, *_ in part["collectives"]}
    assert kinds == {("all-reduce", 2), ("message", 2)}
    assert len(part["timeline"]["ranks"]) == LANES


def test_the_trace_of_a_job_and_its_summary(tmp_path: Path) -> None:
    scenario = four_ranks()
    trace = parse_trace("jobs,queue,pause", "10us", "switches", "none", "csv", scenario.fabric)
    summary = simulate(scenario, tmp_path, intervals=20, extras=Extras(trace=trace))
    events = json.loads((tmp_path / "trace_jobs.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    iterations = [e for e in spans if e["cat"] == "iteration"]
    (found,) = summary["collectives"]
    assert len(iterations) == found["rounds"] == 3
    assert sum(e["dur"] for e in iterations) == pytest.approx(3e-3 * found["time_ns_mean"])
    names = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "process_name"}
    assert names == {(0, "jobs"), *((1 + r, f"job 0 rank {r}") for r in range(4))}
    last: dict[tuple[int, int], float] = {}
    for e in sorted(spans, key=lambda e: (e["ts"], e["dur"])):
        thread = e["pid"], e["tid"]
        assert e["ts"] >= last.get(thread, 0.0) - 1e-6, "spans of one thread lie side by side"
        last[thread] = e["ts"] + e["dur"]
    assert {e["name"] for e in events if e["ph"] == "C"} == {"largest queue, bytes", "paused ports"}
    computing = [e["dur"] for e in spans if e["pid"] == 1 and e["cat"] == "computation"]
    assert sum(computing) == pytest.approx(3e-3 * found["by_rank"][0]["computing_ns"])
    whole = found["computing_ns"] + sum(found["exposed_ns"].values()) + found["waiting_ns"]
    assert whole == pytest.approx(found["time_ns_mean"])
    picture = (tmp_path / "trace.svg").read_text()
    assert "ms of an iteration, by rank" in picture
    assert picture.count('class="panel"') == 3


SMALL = """
name = "four"
monitor_interval_us = 100
intervals = 8
warmup_us = 0
[topology]
kind = "single-switch"
hosts = 4
gbps = 400
delay_us = 1
[[workloads]]
kind = "job"
[workloads.graph]
server = 1
plan = { model = { layers = 1, hidden = 64, ffn = 256, heads = 4 }, dp = 4, batch = 4, sequence = 64, tflops = 1 }
"""  # noqa: E501


def test_a_report_says_what_its_logs_say(tmp_path: Path) -> None:
    (tmp_path / "four.toml").write_text(SMALL)
    words = ("--scenario", str(tmp_path / "four.toml"), "--tuner", "random", "--eval-seeds", "2")
    done = CliRunner().invoke(app, ["tune", *words, "--out", str(tmp_path / "run"), "--quiet"])
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    (table,) = results["figures"]["collectives"]
    (ours,) = (row["summary"] for row in table["held_out"] if row["setting"] == "candidate")
    logs = sorted((tmp_path / "run" / "evaluation").glob("recommended-*.jsonl"))
    assert len(logs) == 2
    lines = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    parts = [part for line in lines for part in line.get("jobs", ())]
    assert len(parts) == ours["rounds"] > 0
    assert {**ours, **summary_of_parts(parts)} == ours
    whole = ours["computing_ns"] + sum(ours["exposed_ns"].values()) + ours["waiting_ns"]
    assert whole == pytest.approx(ours["time_ns_mean"])
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<h2>Where the time of an iteration goes</h2>" in page
    assert page.count("ms of an iteration, by rank") == 4  # default and found: heading and label


GOOD: dict[str, Any] = {
    "workload": 0, "iterations": 1, "start_ps": 0, "time_ps": 5, "computing_ps": [1],
    "waiting_ps": [1], "late_ps": [0], "exposed_ps": {"message": 3},
    "collectives": [["message", 2, 8, 1, 3]],
    "timeline": {"kinds": ["computation", "message"], "ranks": [[0, "a.", ".b"]]},
}  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [
        {"computing_ps": []}, {"computing_ps": [1, 2]}, {"late_ps": [-1]}, {"exposed_ps": [3]},
        {"exposed_ps": {"message": -3}}, {"collectives": [["message", 2, 8, 0, 3]]},
        {"collectives": [["message", 2, 8, 1]]}, {"collectives": [[1, 2, 8, 1, 3]]},
        {"iterations": 0}, {"time_ps": 0.5}, {"timeline": {"kinds": ["a"]}},
        {"timeline": {"kinds": ["a"], "ranks": [[0, "", "."]]}},
        {"timeline": {"kinds": ["a"], "ranks": [[0, "."]]}}, {"workload": None},
    ],
)  # fmt: skip
def test_a_damaged_part_of_a_log_is_refused(damage: dict[str, Any]) -> None:
    check_line(Path("log"), 2, {"jobs": [GOOD]})
    with pytest.raises(RunError, match=r"log: line 2: jobs = .* is damaged; expected a list"):
        check_line(Path("log"), 2, {"jobs": [{**GOOD, **damage}]})
