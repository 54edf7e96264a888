"""The first lab day (examples/lab_day), played on two hosts and a switch of the digital fabric."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fabrics import SMALL, fabric_of

from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.hw.fabric.fabric import DigitalFabric

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "lab_day" / "lab_day.py"
LAB = (
    SMALL[: SMALL.index("[topology]")].replace("4 hosts and 3 switches", "a lab")
    + """
[topology]
kind = "single-switch"
hosts = 2
gbps = 25

[[workloads]]
kind = "poisson"
cdf = "FB_Hadoop"
load = 0.6
load_of = "host"
"""
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[DigitalFabric]:
    file = tmp_path / "lab.toml"
    file.write_text(LAB)
    with fabric_of(load_scenario(file)) as fabric:
        yield fabric


def day(lab: DigitalFabric, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [str(lab.fleet), str(folder / "lab.toml"), str(folder / "day")]
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_every_step_of_the_day_passes(lab: DigitalFabric, tmp_path: Path) -> None:
    done = day(lab, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  pass\n") == done.stdout.count("\nstep ") + 1 == 13
    assert "FAIL" not in done.stdout
    assert done.stdout.endswith("the day is over: every step passed\n")


@pytest.mark.slow
def test_a_switch_that_polls_its_queues_slowly_ends_the_day_with_a_cure(
    lab: DigitalFabric, tmp_path: Path
) -> None:
    (switch,) = lab._switches
    switch._config.hset("FLEX_COUNTER_TABLE|QUEUE", "POLL_INTERVAL", "10000")
    done = day(lab, tmp_path)
    said = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert done.stdout.count("  pass\n") == 6
    assert "polls its QUEUE counters every 10000 ms" in said
    assert "allows an interval of 10 s" in said
    assert "FAIL. What to do: the message names the counters: `counterpoll" in said
    assert said.endswith("`dcqcn-gym hw rollback` undoes step 4")


def test_an_agent_that_does_not_start_ends_the_day_at_its_first_step(
    lab: DigitalFabric, tmp_path: Path
) -> None:
    lab.agents[0].close()  # as one does that finds programmable congestion control
    done = day(lab, tmp_path)
    assert done.returncode == 1
    assert "step 2" not in done.stdout
    assert "nic-0 is not known" in done.stdout
    assert "mlxconfig -d DEVICE set USER_PROGRAMMABLE_CC=0" in done.stdout
