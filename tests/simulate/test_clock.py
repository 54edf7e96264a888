"""timing.json: a simulator in a process of its own is counted, compilers before it are not."""

from __future__ import annotations

import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest

from dcqcn_gym.simulation.clock import Clock

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def test_the_time_of_processes_that_were_started_counts() -> None:
    clock = Clock()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    spent = clock.spent()
    assert spent.cpu_s > 0.4
    assert spent.peak_memory_bytes > 1_000_000


@pytest.mark.parametrize(("system", "unit"), [("linux", 1024), ("darwin", 1)])
def test_the_peak_of_memory_is_in_bytes(
    monkeypatch: pytest.MonkeyPatch, system: str, unit: int
) -> None:
    """Linux counts it in KiB, macOS in bytes."""
    clock = Clock()
    monkeypatch.setattr(sys, "platform", system)
    used = SimpleNamespace(ru_maxrss=7, ru_utime=0.0, ru_stime=0.0)
    monkeypatch.setattr(resource, "getrusage", lambda who: used)
    assert clock.spent().peak_memory_bytes == 7 * unit


def test_what_ended_before_the_simulation_began_does_not() -> None:
    clock = Clock()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    clock.opened()
    assert clock.spent().cpu_s < 0.4
