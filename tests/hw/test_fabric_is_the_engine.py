"""A run over controller, gRPC, agents, files and Redis has the log that the engine alone makes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.hw.fabric.native_fabric import fabric_for_now
from dcqcn_gym.runs.log import read_run, short_json
from dcqcn_gym.runs.loop import run as run_to_log
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.spec import RunSpec

pytestmark = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)


def check_same(scenario: Scenario, intervals: int, folder: Path) -> None:
    """PARALEON tunes twice; behind the first line, which names the backend, all bytes are equal."""
    near, far = folder / "native-devices.jsonl", folder / "fabric.jsonl"
    RunJob(RunSpec(scenario, "paraleon", 1, intervals, "native-devices"), near).run()
    with fabric_for_now(scenario) as fabric:
        run_to_log(RunSpec(scenario, "paraleon", 1, intervals, f"hardware:{fabric.fleet}"), far)
        audit = (fabric.fleet.parent / "audit.jsonl").read_text(encoding="utf-8")
    assert audit.count('"event": "step"') == intervals
    lines = read_run(far).intervals
    assert len({short_json(line["setting"]) for line in lines}) > 1
    assert near.read_bytes().splitlines()[1:] == far.read_bytes().splitlines()[1:]


def test_four_hosts(small: Scenario, tmp_path: Path) -> None:
    check_same(small, 4, tmp_path)


@pytest.mark.slow
def test_the_mini_scenario(tmp_path: Path) -> None:
    check_same(load_scenario("mini-fb-hadoop"), 10, tmp_path)
