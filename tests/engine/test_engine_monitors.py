"""Monitors inside the engines: the same packets in the same order, whatever moves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from engine_worlds import ENGINES, MS, apply

from dcqcn_gym._core import MONITOR_KINDS, Monitor, Simulation, flow_keys
from dcqcn_gym.benchmarks.papers.monitor_study.traces import monitor_line
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.monitor import KINDS as MODELS
from dcqcn_gym.envs.scenario.scenario import load_scenario

TIGHT = {"heavy_bytes": 1024, "light_bytes": 64, "tau": 200_000}  # every order shows
KINDS: Mapping[str, Mapping[str, object]] = {
    "elastic": {"kind": "elastic", **TIGHT},
    "packets": {"kind": "elastic", **TIGHT, "unit": "packets"},
    "naive": {"kind": "elastic-naive", **TIGHT},
    "netflow": {"kind": "netflow", "export_ps": MS, "sample_one_in": 10},
    "flow-log": {"kind": "flow-log"},
    "chameleon": {"kind": "chameleon", **TIGHT, "local_ps": MS, "upload_ps": 2 * MS},
}


def mini(options: Mapping[str, object]) -> str:
    return monitor_line(compile_scenario(load_scenario("mini-fb-hadoop")), options)


def started(text: str, engine: str, seed: int = 5) -> Simulation:
    simulation = Simulation(text, seed, engine)
    setting = load_scenario("mini-fb-hadoop").initial_setting()
    apply(simulation, setting)
    return simulation


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("kind", KINDS)
def test_engines_agree_on_every_monitor(kind: str) -> None:
    text = mini({**KINDS[kind], "labels": 1, "trace": 1})
    event, window = (started(text, engine) for engine in ENGINES)
    for i in range(1, 6):
        reports = []
        for simulation in (event, window):
            simulation.advance(i * MS)
            reports.append(simulation.report())
        assert same(reports[0]["fsd"], reports[1]["fsd"])
        assert same(event.labels(), window.labels())
        if kind == "flow-log":
            assert same(event.flow_log(), window.flow_log())
        ours, theirs = event.take_trace(), window.take_trace()
        assert len(ours["tor"]) == len(theirs["tor"]) > 0
        for tor in np.unique(ours["tor"]):
            a, b = ours["tor"] == tor, theirs["tor"] == tor
            assert np.array_equal(ours["key"][a], theirs["key"][b])
            assert np.array_equal(ours["payload_bytes"][a], theirs["payload_bytes"][b])
        assert int(np.sum(ours["payload_bytes"], dtype=np.int64)) > 0
        live, also_live = event.live_flows(), window.live_flows()
        rows = [sorted(zip(*flows.values(), strict=True)) for flows in (live, also_live)]
        assert rows[0] == rows[1]
        assert len(live["src"]) == reports[0]["active_flows"]


def test_a_monitor_changes_nothing_in_the_network() -> None:
    seen = []
    for options in ({"kind": "none"}, {"kind": "elastic"}, {"kind": "exact", "labels": 1}):
        simulation = started(mini(options), "window")
        simulation.advance(4 * MS)
        report = simulation.report()
        seen.append({k: v for k, v in report.items() if k not in ("fsd", "finished")})
    assert same(seen[0], seen[1])
    assert same(seen[0], seen[2])


def test_labels_hold_the_truth() -> None:
    """What a ToR counts of a flow in all is at most its size, and at the end all of it."""
    simulation = started(mini({"kind": "exact", "labels": 1}), "window")
    simulation.advance(3 * MS)
    finished = simulation.report()["finished"]
    labels, live = simulation.labels(), simulation.live_flows()
    total = dict(zip(labels["key"].tolist(), labels["total_bytes"].tolist(), strict=True))
    assert np.array_equal(labels["total_bytes"], labels["seen_bytes"])
    ended = flow_keys(finished["src"], finished["ordinal"]).tolist()
    assert [total[key] for key in ended] == finished["bytes"].tolist()
    running = flow_keys(live["src"], live["ordinal"]).tolist()
    sizes = dict(zip(running, live["bytes"].tolist(), strict=True))
    assert all(total[key] <= sizes[key] for key in total if key in sizes)
    assert set(total) <= set(ended) | set(running)
    tors = dict(zip(labels["key"].tolist(), labels["tor"].tolist(), strict=True))
    assert [tors[key] for key in ended] == [src // 8 for src in finished["src"].tolist()]


def test_a_monitor_alone_refuses_what_is_no_trace() -> None:
    monitor = Monitor(mini({"kind": "exact"}), 1)
    tor, size = np.array([0, 9], np.uint16), np.array([1, 1], np.uint16)
    key = np.array([1, 1], np.uint32)
    with pytest.raises(ValueError, match="out of range"):
        monitor.record(tor, key, size)
    with pytest.raises(ValueError, match="one length"):
        monitor.record(tor[:1], key, size)
    with pytest.raises(ValueError, match="one length"):
        flow_keys(np.array([1]), np.array([1, 2]))
    with pytest.raises(ValueError, match="unknown kind 'elastics'"):
        Monitor(mini({"kind": "elastics"}), 1)


def test_python_and_the_engine_have_the_same_kinds_and_options() -> None:
    """A kind or an option that stands on one side only is found here."""
    renamed = {"tau_bytes": "tau"}
    in_python = {
        kind: {
            renamed.get(name, name.replace("_us", "_ps") if name.endswith("_us") else name)
            for name in model.model_fields
        }
        for kind, model in MODELS.items()
    }
    of_studies = {"labels", "trace", "packet_bytes"}
    in_engine = {kind: set(keys) - of_studies for kind, keys in MONITOR_KINDS.items()}
    assert in_engine.pop("flow-log") == {"kind", "tau", "theta"}  # feeds those in Python
    assert in_python == in_engine
