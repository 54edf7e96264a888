"""Keeper on ns-3: the same signs, sentences and settings as on the native engine."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.core.config import validate
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

INTERVALS = 16
TABLE = {
    "intervals": INTERVALS,
    "monitor_interval_us": 200,
    "warmup_us": 200,
    "topology": {"kind": "single-switch", "hosts": 28, "gbps": 25, "delay_us": 5.0},
    "monitor": {"kind": "elastic"},
    "workloads": [
        {"kind": "incast", "dst": 0, "hosts": list(range(1, 28)), "bytes": 300_000, "off_us": 50},
        {"kind": "poisson", "cdf": "SolarRPC_approx", "load": 0.05, "load_of": "host"},
    ],
}
"""27:1 beside RPCs: an alarm, a block of the default, the rule again."""


def run_on(backend: str, folder: Path) -> Run:
    scenario = validate(TABLE, Scenario, source="27:1")
    log = folder / f"{backend}.jsonl"
    run(RunSpec(scenario, "keeper", 1, INTERVALS, backend), log)
    return read_run(log)


def test_keeper_decides_on_ns3_what_it_decides_on_the_native_engine(tmp_path: Path) -> None:
    native, ns3 = (run_on(backend, tmp_path) for backend in ("native", "ns3"))
    assert native.end is not None
    assert ns3.end is not None
    assert len(native.end["decisions"]) > 2, native.end["decisions"]
    assert ns3.end["decisions"] == native.end["decisions"]
    assert [x["setting"] for x in ns3.intervals] == [x["setting"] for x in native.intervals]
    assert len({str(x["setting"]) for x in native.intervals}) > 1
