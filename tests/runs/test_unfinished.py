"""What was under way at the end of a run: told by the engine, logged, and counted at its age."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.collectives import Collective, RoundTracker
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.interval import FinishedFlows, LiveFlows
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.base import live_flows_of
from dcqcn_gym.envs.backends.replay import RecordingBackend
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

MINI = load_scenario("mini-fb-hadoop")


def recorded(tmp_path: Path, scenario: str, n: int, backend: str = "native") -> Path:
    path = tmp_path / f"{scenario}-{n}.jsonl"
    run(RunSpec(load_scenario(scenario), "default", 1, n, backend), path)
    return path


def end_of(path: Path) -> dict[str, Any]:
    end = read_run(path).end
    assert end is not None
    return end


def test_the_engine_tells_what_finishes_later(tmp_path: Path) -> None:
    short, long = (recorded(tmp_path, "mini-fb-hadoop", n) for n in (6, 40))
    cut = read_run(short).intervals[-1]["end_ps"]
    left = end_of(short)["unfinished"]
    assert len(left["bytes"]) == read_run(short).intervals[-1]["active_flows"] > 0
    told = sorted(zip(left["bytes"], left["start_ps"], left["ideal_fct_ps"], strict=True))
    later = [
        row
        for line in read_run(long).intervals[6:]
        for row in zip(*(line["flows"][k] for k in ("bytes", "start_ps", "ideal_fct_ps")),
                       strict=True)
        if row[1] < cut
    ]  # fmt: skip
    still = end_of(long)["unfinished"]
    later += [
        row
        for row in zip(still["bytes"], still["start_ps"], still["ideal_fct_ps"], strict=True)
        if row[1] < cut
    ]
    assert told == sorted(later)


def test_a_series_cut_short_counts_what_finished_later(tmp_path: Path) -> None:
    short, long = (Series.of(read_run(recorded(tmp_path, "mini-fb-hadoop", n))) for n in (6, 40))
    ours, theirs = short.all_flows, long.first(6).all_flows
    assert ours is not None
    assert theirs is not None
    assert ours.bytes.size > 100
    assert 0 < ours.unfinished_share == theirs.unfinished_share
    assert sorted(ours.slowdown.tolist()) == sorted(theirs.slowdown.tolist())


def test_running_rounds_are_told(tmp_path: Path) -> None:
    path = recorded(tmp_path, "mini-llm-alltoall", 3)
    end, last = end_of(path), read_run(path).intervals[-1]
    (running,) = end["running_rounds"]
    assert running["workload"] == 0
    assert running["start_ps"] <= min(end["unfinished"]["start_ps"])
    assert running["start_ps"] < last["end_ps"]
    done = [r for line in read_run(path).intervals for r in line.get("rounds", ())]
    for r in done:
        assert r["start_ps"] + r["time_ps"] + r["pause_ps"] <= running["start_ps"]


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_a_round_runs_from_its_first_start() -> None:
    tracker = RoundTracker([Collective(1, "all-to-all", 2, 100, 2, 10)])
    nothing = LiveFlows()
    assert tracker.running(nothing) == {}
    live = LiveFlows(start_ps=ints(50, 60, 7), workload=ints(1, 1, 0))
    assert tracker.running(live) == {1: 50}
    one = FinishedFlows(src=ints(0), start_ps=ints(40), fct_ps=ints(5), workload=ints(1))
    assert tracker.add(one) == []
    assert tracker.running(live) == {1: 40}
    assert tracker.running(nothing) == {1: 40}  # the rest of a ring has not been sent yet


def test_a_backend_that_cannot_know_says_so(tmp_path: Path) -> None:
    end = end_of(recorded(tmp_path, "mini-fb-hadoop", 3, "fake"))
    assert end["unfinished"] is None
    assert end["running_rounds"] is None
    assert Series.of(read_run(recorded(tmp_path, "mini-fb-hadoop", 2, "fake"))).all_flows is None


def test_a_recording_passes_on_what_its_inner_backend_knows() -> None:
    backend = RecordingBackend(make_backend("native"))
    backend.open(MINI, 1)
    backend.apply(MINI.initial_setting())
    report = backend.advance()
    live = live_flows_of(backend)
    assert live is not None
    assert len(live.src) == report.active_flows > 0
    order = list(zip(live.src.tolist(), live.ordinal.tolist(), strict=True))
    assert order == sorted(order)
    assert live_flows_of(RecordingBackend(make_backend("fake"))) is None


def changed(path: Path, change: Any) -> Path:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    "value",
    [3, {}, {"bytes": [1], "start_ps": [1]}, {"bytes": [1], "start_ps": [1], "ideal_fct_ps": []},
     {"bytes": [1], "start_ps": [1], "ideal_fct_ps": [0]},
     {"bytes": ["1"], "start_ps": [1], "ideal_fct_ps": [5]}],
)  # fmt: skip
def test_damaged_unfinished_flows_are_named(tmp_path: Path, value: object) -> None:
    path = recorded(tmp_path, "mini-fb-hadoop", 2, "fake")
    changed(path, lambda lines: lines[-1]["end"].update(unfinished=value))
    with pytest.raises(RunError, match=r"line 4: unfinished = .* is damaged"):
        read_run(path)


def test_a_log_without_them_opens_with_the_figure_unknown(tmp_path: Path) -> None:
    def older(lines: list[dict[str, Any]]) -> None:
        del lines[-1]["end"]["unfinished"], lines[-1]["end"]["running_rounds"]

    path = changed(recorded(tmp_path, "mini-fb-hadoop", 3), older)
    found = read_run(path)
    assert Series.of(found).all_flows is None
    assert Series.of(found).flows[0].size > 0
