"""A guard in a process of its own that begins a trial and is killed: `killed_in_a_trial`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TRIAL_S = 3.0
CODE = """
import json, sys, time
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.drivers import Surroundings, make_driver
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.transaction import Guard
from pathlib import Path
name, settings, journal, seconds = json.loads(sys.argv[1])
guard = Guard(make_driver(name, settings, Surroundings(), "test"), Journal(Path(journal)))
guard.start()
guard.stage("c1", {"": {"kmin": 200.0}}, Who("controller", "test"))
guard.apply("c1", seconds)
print("on trial", flush=True)
time.sleep(60)
"""


def killed_in_a_trial(driver: str, settings: Mapping[str, Any], folder: Path) -> float:
    """Begin a trial of TRIAL_S in a child and kill it (SIGKILL); return when it was on trial."""
    given = json.dumps([driver, dict(settings), str(folder / "journal"), TRIAL_S])
    with subprocess.Popen(
        [sys.executable, "-c", CODE, given], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "on trial\n"
        begun = time.monotonic()
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    return begun
