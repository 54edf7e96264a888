"""Units: an action becomes device units once, the engine turns those into SI once, nobody else."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.knobs import Knob, Setting
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

MINI = load_scenario("mini-fb-hadoop")

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


class _Counted:
    """Stands between the backend and the engine; notes the values that cross."""

    def __init__(self, simulation: Any, crossed: list[list[float]]) -> None:
        self._simulation, self._crossed = simulation, crossed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulation, name)

    def apply(self, nic: Any, ecn: Any) -> None:
        self._crossed.append([*nic[0].tolist(), *ecn[0].tolist()])
        self._simulation.apply(nic, ecn)


def test_a_proposal_is_converted_twice_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an action to the knob's unit by the space, from there to SI by the engine."""
    conversions: Counter[str] = Counter()
    crossed: list[list[float]] = []
    to_si, whole = Knob.to_si, NativeBackend._simulate

    def counted(self: Knob, value: float) -> float:
        conversions[self.name] += 1
        return to_si(self, value)

    def simulate(self: NativeBackend, compiled: str, seed: int) -> Any:
        return _Counted(whole(self, compiled, seed), crossed)

    monkeypatch.setattr(Knob, "to_si", counted)
    monkeypatch.setattr(NativeBackend, "_simulate", simulate)
    path = tmp_path / "run.jsonl"
    run(RunSpec(MINI, "fixed", 1, 3, "native", {"kmin": 60.5, "rp_ai_rate": 7}), path)
    logged = [list(line["setting"].values()) for line in read_run(path).intervals]
    assert logged == [crossed[-1]] * 3  # the engine gets what the log says, in device units
    with DcqcnEnv(MINI) as env:
        env.reset(seed=1)
        info = env.step(env.action_space.sample())[4]
    assert isinstance(info["setting"], Setting)
    assert list(info["setting"].values()) == crossed[-1]
    assert not conversions  # neither space nor guard nor log nor backend


def test_hardware_needs_no_engine(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_ENGINE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
