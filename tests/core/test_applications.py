"""IOPS, iterations/s and the time of a job: from hand-made flows, logs, and whole simulations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.applications import (
    Application,
    ApplicationTracker,
    summary_of_applications,
)
from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import applications_of
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.simulation.run import simulate

MS = 10**9
STORAGE = Application(0, "storage", (0, 1), 1, 5, 1000)
SERVER = Application(1, "parameter-server", (2, 3), 2, 0)


def flows(*rows: tuple[int, int, int, int]) -> FinishedFlows:
    """Return finished flows; rows are (workload, dst, bytes, finish in ms), by finish."""
    w, dst, size, end = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    zero = np.zeros_like(w)
    names = {"workload": w, "dst": dst, "bytes": size, "fct_ps": end * MS}
    return FinishedFlows(**{n: names.get(n, zero) for n in FinishedFlows.__dataclass_fields__})


def test_operations_are_told_from_flows() -> None:
    tracker = ApplicationTracker([STORAGE, SERVER])
    first = tracker.add(
        flows(
            (0, 9, 64, 1),  # a request: at a node
            (0, 1, 64, 2),  # a write
            (1, 2, 500, 2),
            (1, 9, 500, 3),  # a push
            (0, 0, 1000, 4),  # a read
            (1, 3, 500, 4),  # both workers have their answers
            (1, 2, 500, 5),
        )
    )
    assert [d.as_dict() for d in first] == [
        {"workload": 0, "application": "storage", "operations": 2, "reads": 1, "start_ps": 5,
         "first_ps": 2 * MS, "last_ps": 4 * MS},
        {"workload": 1, "application": "parameter-server", "operations": 1, "start_ps": 0,
         "first_ps": 4 * MS, "last_ps": 4 * MS},
    ]  # fmt: skip
    # the iteration that had begun is over with the first answer of the next interval
    (second,) = tracker.add(flows((1, 3, 500, 9)))
    assert second.as_dict() == {"workload": 1, "application": "parameter-server", "operations": 1,
                                "start_ps": 0, "first_ps": 9 * MS, "last_ps": 9 * MS}  # fmt: skip
    assert tracker.add(flows((0, 9, 64, 10))) == ()


def test_rates_are_between_completions() -> None:
    def done(operations: int, first: int, last: int, **more: Any) -> dict[str, Any]:
        return {"workload": 0, "application": "storage", "operations": operations, "start_ps": MS,
                "first_ps": first * MS, "last_ps": last * MS} | more  # fmt: skip

    (found,) = summary_of_applications([done(3, 2, 4, reads=3), done(2, 5, 12, reads=1)])
    assert found == {
        "workload": 0, "application": "storage", "operations": 5, "unit": "IOPS",
        "per_s": pytest.approx(400.0), "job_ns": 11e6, "reads_per_s": pytest.approx(320.0),
    }  # fmt: skip
    (one,) = summary_of_applications([done(1, 2, 2)])
    assert one["per_s"] is None
    rounds = [{"workload": 3, "collective": "all-to-all", "start_ps": s * MS, "time_ps": 2 * MS}
              for s in (1, 5, 9)]  # fmt: skip
    (collective,) = summary_of_applications([], rounds)
    assert collective["unit"] == "rounds/s"
    assert collective["per_s"] == pytest.approx(250.0)
    assert collective["job_ns"] == 10e6
    assert summary_of_applications([]) == []


def scenario(*workloads: dict[str, Any]) -> Scenario:
    top = {"kind": "single-switch", "hosts": 8, "gbps": 25}
    return Scenario.model_validate({"topology": top, "workloads": workloads})


IOS = {"kind": "storage", "pattern": "vdi", "depth": 4, "copies": 1}
TRAIN = {"kind": "parameter-server", "bytes": 50_000, "server": 7, "workers": [0, 1, 2]}


def test_what_the_scenario_says() -> None:
    mixed = scenario(IOS | {"start_us": 3}, TRAIN)
    assert applications_of(mixed.workloads, mixed.fabric) == [
        Application(0, "storage", (0, 1, 2, 4, 5, 6), 1, 3_000_000, 1024),
        Application(1, "parameter-server", (0, 1, 2), 3, 0),
    ]


def test_a_simulation_counts_every_io_and_iteration(tmp_path: Path) -> None:
    mixed = scenario(IOS | {"ios": 20}, TRAIN | {"iterations": 5, "compute_us": 100})
    summary = simulate(mixed, tmp_path)
    io, training = summary["applications"]
    assert io["operations"] == 6 * 20
    assert training["operations"] == 5
    # an iteration takes its computing and twice 150 KB at 25 Gb/s at least
    assert 1 / training["per_s"] > 100e-6 + 2 * 150_000 * 8 / 25e9
    assert training["job_ns"] / 1e9 > 5 * (1 / training["per_s"]) - 100e-6
    assert io["job_ns"] <= summary["makespan_ns"]
    assert json.loads((tmp_path / "summary.json").read_text())["applications"] == [io, training]


@pytest.mark.parametrize("depth", [1, 16])
def test_deeper_queues_give_more_ios(depth: int, tmp_path: Path) -> None:
    alone = scenario(IOS | {"depth": depth, "read_share": 1.0, "pattern": None,
                            "block_bytes": [4096, 4096]})  # fmt: skip
    (io,) = simulate(alone, tmp_path, intervals=4)["applications"]
    assert io["reads_per_s"] == pytest.approx(io["per_s"])
    if depth == 1:  # a round trip of 4 x 5 us and the wire
        assert 6 / 26e-6 < io["per_s"] < 6 / 20e-6
    else:  # the two storage nodes send all they can
        assert 0.9 < io["per_s"] * 4096 * 8 / (2 * 25e9) < 1


def test_a_log_tells_them(tmp_path: Path) -> None:
    mixed = scenario(IOS, TRAIN).model_copy(update={"warmup_us": 0.0})
    log = tmp_path / "run.jsonl"
    run(RunSpec(mixed, "default", 1, 4), log)
    lines = read_run(log).intervals
    logged = summary_of_applications(d for line in lines for d in line["applications"])
    (tmp_path / "again").mkdir()
    again = simulate(mixed, tmp_path / "again", intervals=4)["applications"]
    assert logged == again
    assert logged[0]["operations"] > 100
