"""timing.json: a simulator in a process of its own is counted, compilers before it are not."""

from __future__ import annotations

import subprocess
import sys

from dcqcn_gym.simulate.clock import Clock

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def test_the_time_of_processes_that_were_started_counts() -> None:
    clock = Clock()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    spent = clock.spent()
    assert spent.cpu_s > 0.4
    assert spent.peak_memory_bytes > 1_000_000


def test_what_ended_before_the_simulation_began_does_not() -> None:
    clock = Clock()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    clock.opened()
    assert clock.spent().cpu_s < 0.4
