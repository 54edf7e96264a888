"""A NIC, its journal and its guard for tests of what an agent remembers, without any network."""

from __future__ import annotations

from pathlib import Path

from devices import NIC, nic_tree

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import NIC_KNOBS, expert_setting
from dcqcn_gym.hw.agent.reserved_files import RESERVED
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.drivers import Driver, Surroundings, Values, make_driver
from dcqcn_gym.hw.drivers.mlx5 import Mlx5Driver
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.runner import RecordedRunner
from dcqcn_gym.hw.transaction import Guard

WHO = Who("test", "to see")
_EXPERT = expert_setting().replace({
    "rp_time_reset": 200, "rp_threshold": 5, "rp_gd": 10, "rp_min_dec_fac": 60,
    "rp_dce_tcp_g": 1000,
})  # fmt: skip
WANTED = {"": {name: _EXPERT[name] for name in NIC_KNOBS}}  # nine knobs change
OTHER = {"": {"rp_ai_rate": 7.0, "rp_gd": 12.0}}


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Device:
    """A NIC's tree, its journal, and an agent's mind that can be lost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = nic_tree(folder / "root", "newer")
        self.clock = Clock()
        self.factual = self.driver().read()
        self.guard = self.restarted()

    def driver(self) -> Driver:
        around = Surroundings(self.root, RecordedRunner(self.root / "commands"))
        return make_driver("mlx5", NIC, around, "test")

    def restarted(self, driver: Driver | None = None) -> Guard:
        self.guard = Guard(driver or self.driver(), self.journal(), self.clock, RESERVED.given)
        self.guard.start()
        return self.guard

    def journal(self, most_bytes: int = 1 << 20) -> Journal:
        return Journal(self.folder / "journal", most_bytes)

    def held(self) -> Values:
        return self.driver().read()

    def file(self, name: str) -> Path:
        return self.root / f"sys/kernel/debug/mlx5/{NIC['pci']}/cc_params/{name}"


def on_trial(guard: Guard, name: str = "t1", seconds: float = 5.0) -> None:
    guard.stage(name, WANTED, WHO)
    guard.apply(name, seconds)


class Failing(Mlx5Driver):
    """A driver whose k-th write fails, or lies, once."""

    def __init__(self, device: Device, at: int, lies: bool) -> None:
        around = Surroundings(device.root, RecordedRunner(device.root / "commands"))
        settings = Mlx5Driver.Settings.model_validate(NIC)
        super().__init__(settings, around)
        self.at, self.lies, self.writes = at, lies, 0

    def apply(self, values: Values) -> None:
        for place, text in values.items():
            self.writes += 1
            if self.writes == self.at:
                if self.lies:
                    continue
                raise DeviceError(f"{place}: the device said no")
            super().apply({place: text})
