"""Device units need no engine: agents, drivers and commands convert without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT_ENGINE = """
import sys
sys.modules["dcqcn_gym._core"] = None
import importlib, pkgutil
import dcqcn_gym.hw
names = [m.name for m in pkgutil.walk_packages(dcqcn_gym.hw.__path__, "dcqcn_gym.hw.")]
# backends and commands stand on the controller's side, where environments are
ours = ("backend", "native_devices", "commands", "fabric", "driver_case", "queue_pair_sizes")
names = [n for n in names if n.split(".")[2] not in ours]
for name in names:
    importlib.import_module(name)
from dcqcn_gym.core.knobs import DCQCN, default_setting
from dcqcn_gym.core.device_units import to_device
from dcqcn_gym.core.device_commands import emit
setting = default_setting(25e9).replace(kmin=40)
assert to_device(DCQCN["kmin"], setting["kmin"]) == 40_000
assert "green_min_threshold 40000" in emit(setting, "sonic")
print(len(names))
"""


def test_hardware_needs_no_engine(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_ENGINE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
