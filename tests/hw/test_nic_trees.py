"""NICs by documented trees: MLNX_OFED's sysfs, and Broadcom's configfs before its firmware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from devices import NIC, nic_tree

from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.core.knobs import NIC_KNOBS, expert_setting
from dcqcn_gym.hw.driver_case import DriverCase
from dcqcn_gym.hw.drivers import Driver, Surroundings, Targets, make_driver
from dcqcn_gym.hw.drivers.bnxt import BnxtDriver
from dcqcn_gym.hw.runner import RecordedRunner, recorded_name

EXPERT = expert_setting()
RP = {"clamp_tgt_rate": 0, "clamp_tgt_rate_after_time_inc": 1, "rpg_time_reset": 300,
      "rpg_byte_reset": 32767, "rpg_threshold": 1, "rpg_max_rate": 0, "rpg_ai_rate": 5,
      "rpg_hai_rate": 50, "rpg_gd": 11, "rpg_min_dec_fac": 50, "rpg_min_rate": 1,
      "rate_to_set_on_first_cnp": 0, "rate_reduce_monitor_period": 4, "dce_tcp_g": 1019,
      "dce_tcp_rtt": 1, "initial_alpha_value": 1023}  # fmt: skip
NP = {"min_time_between_cnps": 4, "cnp_dscp": 48, "cnp_802p_prio": 6}


def ofed_tree(root: Path) -> Path:
    """Write what MLNX_OFED shows beside the kernel's own files; return the root."""
    nic_tree(root, "newer")
    ecn = root / "sys/class/net/eth2/ecn"
    for side, files in (("roce_rp", RP), ("roce_np", NP)):
        (ecn / side / "enable").mkdir(parents=True)
        for name, value in files.items():
            (ecn / side / name).write_text(f"{value}\n")
        for priority in range(8):
            (ecn / side / "enable" / str(priority)).write_text("1\n")
    told = root / "commands" / recorded_name("cma_roce_tos", "-d", "mlx5_0", "-p", "1")
    told.write_text("106\n")
    return root


def ofed(root: Path, **more: Any) -> Driver:
    around = Surroundings(root, RecordedRunner(root / "commands"))
    return make_driver("ofed", {**NIC, **more}, around, "test")


class TestOfed(DriverCase):
    @pytest.fixture(autouse=True)
    def _tree(self, tmp_path: Path) -> None:
        self.root = ofed_tree(tmp_path)

    def new_driver(self) -> Driver:
        return ofed(self.root, roce_tos=106)

    def targets(self) -> Targets:
        return {"": {name: EXPERT[name] for name in NIC_KNOBS}}


def test_every_knob_has_a_file_of_ofed_and_nothing_else_is_written(tmp_path: Path) -> None:
    driver = ofed(ofed_tree(tmp_path))
    assert driver.knobs() == NIC_KNOBS
    assert {place.rpartition("/")[2] for place in driver.read()} == {*RP, "min_time_between_cnps"}
    driver.apply(driver.stage({"": {"rp_ai_rate": 87.0, "np_min_time_between_cnps": 50.0}}))
    ecn = tmp_path / "sys/class/net/eth2/ecn"
    assert (ecn / "roce_rp/rpg_ai_rate").read_text() == "87\n"
    assert (ecn / "roce_np/min_time_between_cnps").read_text() == "50\n"
    assert (ecn / "roce_np/cnp_dscp").read_text() == "48\n"
    assert (ecn / "roce_rp/enable/3").read_text() == "1\n"


def test_hexadecimal_which_the_files_would_take_for_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="write_as"):
        ofed(ofed_tree(tmp_path), write_as="hex")


def test_a_priority_without_dcqcn_is_refused(tmp_path: Path) -> None:
    root = ofed_tree(tmp_path)
    (root / "sys/class/net/eth2/ecn/roce_rp/enable/3").write_text("0\n")
    with pytest.raises(DeviceError, match="roce_rp/enable/3 holds 0: DCQCN is off for priority 3"):
        ofed(root).knobs()
    assert ofed(root, priority=4).knobs() == NIC_KNOBS
    with pytest.raises(DeviceError, match="this is not MLNX_OFED"):
        ofed(nic_tree(tmp_path / "mainline", "newer")).knobs()


def test_any_priority_turns_on_the_notification_point_of_the_port(tmp_path: Path) -> None:
    root = ofed_tree(tmp_path)
    for n in range(1, 8):
        (root / f"sys/class/net/eth2/ecn/roce_np/enable/{n}").write_text("0\n")
    assert ofed(root).knobs() == NIC_KNOBS
    (root / "sys/class/net/eth2/ecn/roce_np/enable/0").write_text("0\n")
    with pytest.raises(DeviceError, match="roce_np/enable holds 1: the notification point"):
        ofed(root).knobs()


@pytest.mark.parametrize(("said", "wanted"), [("0", 106), ("104", 106), ("104", 104)])
def test_packets_that_are_not_ecn_capable_are_refused(
    said: str, wanted: int, tmp_path: Path
) -> None:
    root = ofed_tree(tmp_path)
    next((root / "commands").glob("cma_roce_tos*")).write_text(f"{said}\n")
    with pytest.raises(
        DeviceError, match=f"says '{said}' and roce_tos of the agent's file {wanted}"
    ):
        ofed(root, roce_tos=wanted).knobs()
    assert ofed(root).knobs() == NIC_KNOBS  # not asked


class Firmware:
    """configfs of bnxt_re: files are what is pending, ``apply`` what the firmware holds."""

    def __init__(self, root: Path, version: str) -> None:
        self.root, self.version, self.held, self.takes = root, version, 4, True
        self.folder = root / "sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
        self.folder.mkdir(parents=True)
        (root / "sys/class/net/eth4").mkdir(parents=True)
        (root / "sys/class/net/eth4/speed").write_text("200000\n")
        for name, text in (("min_time_bet_cnp", "0x4"), ("advanced", "0"), ("g", "0x8")):
            (self.folder / name).write_text(f"{text}\n")
        self.ecn = 1
        self.show()

    def show(self) -> None:
        """Print as one of three published versions does (vendor-units.toml: bnxt)."""
        words = {"oldest": ("", ""), "older": (" (cnp_ecn)", " (min_time_bet_cnp)")}
        if self.version == "newer":
            lines = [
                f"ecn_enable={self.ecn:#x}\t\t\t# ecn status\t\t\t\t: Enabled",
                "g=0x8\t# weight : 8",
            ]
            more = [
                f"min_time_bet_cnp={self.held:#x}\t# minimum time between cnp\t: {self.held} usec"
            ]
        else:
            one, two = words[self.version]
            lines = [f"ecn status{one}\t\t\t\t: {'Enabled' if self.ecn else 'Disabled'}"]
            more = [f"minimum time between cnps{two}\t\t: {self.held:#x} usec"]
        if (self.folder / "advanced").read_text().strip() in ("0x1", "1"):
            lines += more
        (self.folder / "apply").write_text("\n".join(lines) + "\n")

    def driver(self) -> Driver:
        settings = {"ibdev": "bnxt_re0", "netdev": "eth4"}
        driver = make_driver("bnxt", settings, Surroundings(self.root), "test")
        assert isinstance(driver, BnxtDriver)
        write = driver._root.write

        def written(path: str, text: str) -> None:
            write(path, text)
            if path.endswith("/apply") and self.takes:
                assert text == "0x1"
                self.held = int((self.folder / "min_time_bet_cnp").read_text(), 16)
            self.show()

        driver._root.write = written  # type: ignore[method-assign]
        return driver


@pytest.fixture(params=["newer", "older", "oldest"])
def firmware(request: pytest.FixtureRequest, tmp_path: Path) -> Firmware:
    return Firmware(tmp_path, request.param)


class TestBnxt(DriverCase):
    counts = False

    @pytest.fixture(autouse=True)
    def _firmware(self, firmware: Firmware) -> None:
        self.firmware = firmware

    def new_driver(self) -> Driver:
        return self.firmware.driver()

    def targets(self) -> Targets:
        return {"": {"np_min_time_between_cnps": 50.0}}


def test_the_firmware_is_asked_and_not_the_file(firmware: Firmware) -> None:
    driver = firmware.driver()
    assert driver.knobs() == ("np_min_time_between_cnps",)
    driver.apply(driver.stage({"": {"np_min_time_between_cnps": 50.0}}))
    assert (firmware.folder / "min_time_bet_cnp").read_text() == "0x32\n"
    assert (firmware.held, driver.read()) == (50, {"min_time_bet_cnp": "50"})
    firmware.takes = False
    with pytest.raises(DeviceError, match="the firmware holds min_time_bet_cnp = 50 after 7 was"):
        driver.apply({"min_time_bet_cnp": "7"})
    assert (firmware.folder / "g").read_text() == "0x8\n"
    assert driver.line_rate_bps() == 200e9


def test_what_bnxt_refuses(firmware: Firmware, tmp_path: Path) -> None:
    driver = firmware.driver()
    with pytest.raises(ConfigError, match="bnxt holds 0 to 65535 us"):
        driver.stage({"": {"np_min_time_between_cnps": 70000.0}})
    with pytest.raises(DeviceError, match="lacks the knob rp_ai_rate"):
        driver.stage({"": {"rp_ai_rate": 5.0}})
    firmware.ecn = 0
    firmware.show()
    with pytest.raises(DeviceError, match="congestion control is off"):
        driver.knobs()
    (firmware.folder / "apply").unlink()
    with pytest.raises(DeviceError, match="mkdir /sys/kernel/config/bnxt_re/bnxt_re0"):
        driver.knobs()
