"""What `trace.svg` shows of what is sent and of messages is what the tables say."""

from __future__ import annotations

import csv
import math
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dcqcn_gym._core")

from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.simulation.bins import PLOTTED_FLOWS, CompletionBins, FlowLines
from dcqcn_gym.simulation.files import ResultFiles
from dcqcn_gym.simulation.picture import _port_panels
from dcqcn_gym.simulation.run import Extras, simulate
from dcqcn_gym.simulation.trace import Trace, parse_trace
from dcqcn_gym.simulation.tracer import Tracer

STORM = load_scenario("mini-storm").model_copy(update={"monitor_interval_us": 250.0})


def trace_of(what: str) -> Trace:
    return parse_trace(what, "10us", "switches", "all", "csv", STORM.fabric)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_a_panel_for_each(tmp_path: Path) -> None:
    counts = []
    for what in ("queue", "sending", "completions", "queue,sending,completions"):
        simulate(STORM, tmp_path, intervals=2, force=True, extras=Extras(trace=trace_of(what)))
        picture = (tmp_path / "trace.svg").read_bytes()
        counts.append(picture.count(b'class="panel"'))
    # one; all hosts, flows; one; all four
    assert counts == [1, 2, 1, 4]
    simulate(
        STORM,
        tmp_path,
        intervals=2,
        force=True,
        extras=Extras(trace=trace_of("queue,sending,completions")),
    )
    assert (tmp_path / "trace.svg").read_bytes() == picture


def traced(what: str, files: ResultFiles, intervals: int) -> Tracer:
    """Return the tracer of a run."""
    backend = NativeBackend()
    backend.open(STORM, 1)
    backend.apply(STORM.initial_setting())
    tracer = Tracer(trace_of(what), files)
    tracer.attach(backend)
    for _ in range(intervals):
        report = backend.advance()
        tracer.end_interval(report.finished, report.end_ps)
    tracer.close()
    return tracer


def test_it_shows_what_the_tables_have(tmp_path: Path) -> None:
    with ResultFiles(tmp_path, {}, ()) as files:
        tracer = traced("sending,completions", files, 8)
        names = ("trace_total", "trace_sending", "trace_completions")
        total, sent, done = (rows(files.draft(f"{name}.csv")) for name in names)
    every_ns = tracer.trace.every_ps / 1000
    ends, mean, _ = tracer.total_sending.table()
    assert (ends * every_ns).tolist() == [float(r["time_ns"]) for r in total]
    assert mean[:, 0].tolist() == [float(r["sending_bps"]) for r in total]
    name, column = next(iter(tracer.flow_sending.names.items()))
    own = [r for r in sent if tuple(int(r[n]) for n in ("src", "dst", "ordinal")) == name]
    values = tracer.flow_sending.binned.table()[1][:, column].tolist()
    drawn = [v for v in values if not math.isnan(v)]
    assert len(drawn) > 10
    assert drawn == [float(r["sending_bps"]) for r in own][-len(drawn) :]
    first = [float(r["sending_bps"]) for r in sent if r["time_ns"] == sent[0]["time_ns"]]
    assert tracer.flow_sending.mean.table()[1][0, 0] == pytest.approx(np.mean(first))
    ends, mean, longest = tracer.completed.table()
    assert (np.unique(ends) * every_ns).tolist() == sorted({float(r["time_ns"]) for r in done})
    for values, column_name in ((mean, "mct_mean_ns"), (longest, "mct_max_ns")):
        for row in done:
            bin_of = ends.tolist().index(float(row["time_ns"]) / every_ns)
            drawn = values[bin_of, int(row["workload"])] / 1000
            assert drawn == pytest.approx(float(row[column_name]))
    assert np.count_nonzero(~np.isnan(mean)) == len(done) > 3


def done(*times: int, workload: int = 0) -> FinishedFlows:
    """Return messages that start at 0 and take so long."""
    zeros = np.zeros(len(times), dtype=np.int64)
    columns = {field.name: zeros for field in fields(FinishedFlows)}
    own = {"fct_ps": np.array(times, dtype=np.int64), "workload": zeros + workload}
    return FinishedFlows(**(columns | own))


def test_completions_need_bounded_memory() -> None:
    bins = CompletionBins(limit=4)
    assert bins.table()[1].shape == (0, 0)
    bins.add(done(5, 15, 17), 10)
    bins.add(done(36, workload=1), 10)
    ends, mean, longest = bins.table()
    assert ends.tolist() == [1, 2, 4]
    assert mean[:2, 0].tolist() == [5, 16]
    assert longest[:2, 0].tolist() == [5, 17]
    assert np.isnan(mean[2, 0])
    assert mean[2, 1] == 36
    bins.add(done(155), 10)  # the 16th period: bins of four
    ends, mean, longest = bins.table()
    assert (bins.width, ends.tolist()) == (4, [4, 16])
    assert mean[0].tolist() == [37 / 3, 36]
    assert longest[:, 0].tolist() == [17, 155]


def test_the_first_eight_flows_have_lines() -> None:
    lines = FlowLines()
    lines.add([(src, 0, 0) for src in range(6)], np.arange(6.0))
    lines.add([(src, 1, 0) for src in range(6)], np.arange(6.0) + 10)
    lines.add([], np.zeros(0))
    assert list(lines.names) == [*((src, 0, 0) for src in range(6)), (0, 1, 0), (1, 1, 0)]
    assert lines.seen == 12
    _, mean, _ = lines.binned.table()
    assert mean[1, 6:].tolist() == [10, 11]
    assert np.isnan(mean[1, :6]).all()
    assert np.isnan(mean[2]).all()
    assert lines.mean.table()[1][:2, 0].tolist() == [2.5, 12.5]


def test_a_flow_that_lives_longer_takes_the_line_of_one_that_has_ended() -> None:
    lines = FlowLines()
    short = [(src, 0, 0) for src in range(PLOTTED_FLOWS)]
    late, later = (9, 0, 0), (10, 0, 0)
    lines.add([*short, late], np.arange(9.0))
    lines.add([*short[1:], late], np.arange(8.0))
    assert lines.names[late] == 0  # the first has ended after one sample
    lines.add([*short[2:], late], np.arange(7.0))
    lines.add([late, later], np.array([4.0, 5.0]))
    assert later not in lines.names  # the second lived for two
    for value in (6.0, 7.0):
        lines.add([later], np.array([value]))
    assert lines.names[later] == 1
    column = lines.binned.table()[1].T
    assert column[0][1:4].tolist() == [7, 6, 4]
    assert np.isnan(column[0][[0, 4, 5]]).all()
    assert np.isnan(column[1][:5]).all()
    assert column[1][5] == 7
    assert lines.seen == PLOTTED_FLOWS + 2


def test_each_quantity_of_the_ports_has_its_lines(tmp_path: Path) -> None:
    with ResultFiles(tmp_path, {}, ()) as files:
        tracer = traced("queue,pause,rate", files, 4)
    panels = {panel.title.partition(" (")[0]: panel for panel in _port_panels(tracer, 1.0)}
    assert list(panels) == ["Queue, KB", "Data sent, Gb/s", "Paused, %"]
    assert len({len(panel.keys) for panel in panels.values()}) == 1
    assert len(panels["Queue, KB"].keys) == 8
    # the busiest port sends at its line rate of 25 Gb/s, give or take a packet in 10 us
    assert 24 < panels["Data sent, Gb/s"].y.high / 1.06 < 26
    for panel in panels.values():
        assert panel.svg(panel.keys).count('class="line"') == 8
