"""The digital fabric of a scenario, in this process, for as long as a test runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.fabric.fabric import DigitalFabric
from dcqcn_gym.hw.fabric.native_fabric import fabric_for_now

SMALL = """
description = "4 hosts and 3 switches, for tests of the digital fabric"
intervals = 12
monitor_interval_us = 1000.0

[weights]
tp = 0.2
rtt = 0.5
pfc = 0.3

[topology]
kind = "leaf-spine"
tors = 2
hosts_per_tor = 2
spines = 1
host_gbps = 25
uplink_gbps = 25

[[workloads]]
kind = "poisson"
cdf = "FB_Hadoop"
load = 0.6
load_of = "host"
"""


@contextmanager
def fabric_of(scenario: Scenario, **options: Any) -> Iterator[DigitalFabric]:
    """Run a fabric, where there is a ``redis-server``."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    with fabric_for_now(scenario, **options) as fabric:
        yield fabric
