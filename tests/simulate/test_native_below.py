"""Series below the interval: measured sending rates and message completion times."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym import _core
from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.simulation.run import Extras, simulate
from dcqcn_gym.simulation.trace import Trace, parse_trace
from dcqcn_gym.simulation.tracer import Completions, Sending

pytest.importorskip("dcqcn_gym._core")

TABLES = ("trace_sending.csv", "trace_total.csv", "trace_completions.csv")


def trace_of(scenario: Scenario, **changes: str) -> Trace:
    options = {"what": "sending,completions", "every": "20us", "ports": "switches", "flows": "all"}
    return parse_trace(**{**options, "file_format": "csv", **changes}, net=scenario.fabric)


def columns(path: Path) -> dict[str, Any]:
    with path.open(newline="", encoding="utf-8") as handle:
        lines = list(csv.DictReader(handle))
    return {name: np.array([float(line[name]) for line in lines]) for name in lines[0]}


def scenario() -> Scenario:
    """Return messages on kept connections beside flows without an end and lost packets."""
    star = {"kind": "single-switch", "hosts": 6}
    return Scenario.model_validate(
        {
            "topology": star,
            "qp": "pair",
            "switch": {"pfc": False, "buffer_bytes": 300_000},
            "transport": {"rto_us": 200},
            "workloads": [
                {"kind": "incast", "hosts": [1, 2, 3], "bytes": 30_000, "messages": 7,
                 "connections": 3, "off_us": 10},
                {"kind": "streams", "flows": 2, "hosts": [4], "dsts": [0], "within_us": 50},
            ],
        }
    )  # fmt: skip


def test_what_is_sent_adds_up(tmp_path: Path) -> None:
    chosen = scenario()
    summary = simulate(chosen, tmp_path, intervals=2, extras=Extras(trace=trace_of(chosen)))
    total, parts = (columns(tmp_path / name) for name in TABLES[:2][::-1])
    assert total["time_ns"].tolist() == [20_000.0 * i for i in range(1, 101)]
    sent = total["sending_bps"].sum() * 20e-6 / 8
    new = summary["data_packets"] * 62 + summary["delivered_bytes"]
    assert sent >= new  # repeated packets are sent, not delivered
    assert summary["retransmitted_packets"] > 0
    # kept queue pairs and flows without an end never leave, so nothing is missing by flow
    idle = parts["sending_bps"].sum() * 20e-6 / 8
    assert idle == pytest.approx(sent, rel=0.05)
    assert {1.0, 2.0, 3.0, 4.0} == set(parts["src"])
    assert set(parts["workload"]) == {0.0, 1.0}
    assert total["sending_bps"].max() <= 4 * 101e9


def test_messages_are_those_of_the_list_of_flows(tmp_path: Path) -> None:
    chosen = scenario()
    simulate(chosen, tmp_path, intervals=2, extras=Extras(trace=trace_of(chosen)))
    flows, done = columns(tmp_path / "flows.csv"), columns(tmp_path / TABLES[2])
    assert done["messages"].sum() == len(flows["src"]) > 50
    assert done["bytes"].sum() == flows["bytes"].sum()
    spent = (done["messages"] * done["mct_mean_ns"]).sum()
    assert spent == pytest.approx(flows["fct_ns"].sum())
    assert done["mct_max_ns"].max() == flows["fct_ns"].max()
    assert np.all(np.diff(done["time_ns"]) >= 0)


def test_by_hand() -> None:
    def ints(*values: int) -> Any:
        return np.array(values, dtype=np.int64)

    done = FinishedFlows(
        src=ints(0, 1, 2), dst=ints(3, 3, 3), ordinal=ints(0, 0, 0), bytes=ints(10, 20, 30),
        start_ps=ints(0, 5, 95), fct_ps=ints(99, 80, 5), ideal_fct_ps=ints(1, 1, 1),
        workload=ints(0, 0, 1),
    )  # fmt: skip
    # finished at 99, 85 and 100 ps: the last one in the second period
    counted = Completions(100)
    counted.add(done)
    table = counted.take()
    assert [column.tolist() for column in table.values()] == [
        [0.1, 0.2], [0, 1], [2, 1], [30, 30], [0.0895, 0.005], [0.099, 0.005],
    ]  # fmt: skip
    sending = Sending(1_000_000)
    look = {"src": ints(1, 2), "queue_pair": ints(7, 7), "sent_bytes": ints(1000, 0)}
    assert sending.rates(look).tolist() == [8e9, 0.0]
    later = {"src": ints(2, 1), "queue_pair": ints(7, 9), "sent_bytes": ints(500, 250)}
    assert sending.rates(later).tolist() == [4e9, 2e9]  # a new queue pair counts from 0
    assert [sending.total(ints(2000)), sending.total(ints(2500))] == [16e9, 4e9]


def test_both_engines_write_the_same(tmp_path: Path) -> None:
    class Event(NativeBackend):
        def _simulate(self, compiled: str, seed: int) -> Any:
            return _core.Simulation(compiled, seed, "event")

    for chosen in (scenario(), load_scenario("mini-storm")):
        short = chosen.model_copy(update={"monitor_interval_us": 400.0})
        for name, backend in (("window", NativeBackend()), ("event", Event())):
            simulate(short, tmp_path / name, intervals=2, backend=backend,
                     force=True, extras=Extras(trace=trace_of(short)))  # fmt: skip
        for file in TABLES:
            first, second = ((tmp_path / name / file).read_bytes() for name in ("window", "event"))
            assert first == second
            assert len(first) > 80


def test_a_period_that_goes_on_in_the_next_interval_is_one_line(tmp_path: Path) -> None:
    storm = load_scenario("mini-storm")
    found = {}
    for every in ("3ms", "1ms", "1000s"):
        trace = parse_trace("completions", every, "switches", "all", "csv", storm.fabric)
        simulate(storm, tmp_path, intervals=4, force=True, extras=Extras(trace=trace))
        found[every] = columns(tmp_path / "trace_completions.csv")
    for table in found.values():
        keys = list(zip(table["time_ns"], table["workload"], strict=True))
        assert len(set(keys)) == len(keys)
        assert table["messages"].sum() == found["1ms"]["messages"].sum()
        assert table["mct_max_ns"].max() == found["1ms"]["mct_max_ns"].max()
    assert sorted(set(found["3ms"]["time_ns"])) == [3e6, 6e6]  # the last one is not filled
    assert set(found["1000s"]["time_ns"]) == {1e12}
