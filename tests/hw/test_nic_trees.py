"""NICs by documented trees: MLNX_OFED's and Huawei's sysfs, Broadcom's configfs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from devices import NIC, nic_tree

from dcqcn_gym.core.errors import ConfigError, DeviceError, UnknownNameError
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


def test_the_kernels_own_bnxt_re_is_refused_by_name(tmp_path: Path) -> None:
    driver = Firmware(tmp_path, "newer").driver()
    driver._root.read = lambda path: None  # type: ignore[attr-defined]  # no configfs
    stock = tmp_path / "sys/kernel/debug/bnxt_re/0000:65:00.0/cc_config"
    stock.mkdir(parents=True)
    (stock / "run_avg_weight_g").write_text("8\n")
    with pytest.raises(
        DeviceError, match=r"own bnxt_re \(/sys/.*0000:65:00.0/cc_config\).*none is"
    ):
        driver.knobs()


HIROCE3 = {"rate_inc_ai": 2, "rate_inc_hai": 8, "rate_inc_period": 480, "rate_dec_period": 32,
           "alpha_dec_period": 160, "initial_alpha": 1023, "rate_target_clamp": 1, "min_rate": 1,
           "factor_gita": 7}  # fmt: skip
UNITS = {"roce3_rp/rate_inc_ai": 5e6, "roce3_rp/rate_inc_hai": 5e6, "roce3_np/min_cnp_period": 1e-6}
"""What an operator may state; these are invented."""


def huawei_tree(root: Path) -> Path:
    """Write what openEuler's sources show of hiroce3 and hns; return the root."""
    ecn = root / "sys/class/net/eth5/ecn"
    for side, files in (("roce3_rp", HIROCE3), ("roce3_np", {"min_cnp_period": 16})):
        (ecn / side / "enable").mkdir(parents=True)
        (ecn / side / "enable/3").write_text("1\n")
        for name, value in files.items():
            (ecn / side / name).write_text(f"{value}\n")
    (ecn / "cc_algo").write_text("dcqcn\n")
    (ecn.parent / "speed").write_text("100000\n")
    cc = root / "sys/class/infiniband/hns_0/ports/1/cc_param/dcqcn_cc_param"
    cc.mkdir(parents=True)
    for name, value in {"ai": 5, "f": 5, "tkp": 2, "cnp_time": 50, "lifespan": 0}.items():
        (cc / name).write_text(f"{value}\n")
    (cc / "max_speed").write_text("100000\n")
    return root


def huawei(name: str, root: Path, **more: Any) -> Driver:
    own = {"ibdev": "hns_0"} if name == "hns" else {}
    return make_driver(name, {"netdev": "eth5", **own, **more}, Surroundings(root), "test")


class TestHiroce3(DriverCase):
    counts = False

    @pytest.fixture(autouse=True)
    def _tree(self, tmp_path: Path) -> None:
        self.root = huawei_tree(tmp_path)

    def new_driver(self) -> Driver:
        return huawei("hiroce3", self.root, units=UNITS)

    def targets(self) -> Targets:
        return {"": {"rp_ai_rate": 50.0, "rp_initial_alpha_value": 512.0,
                     "rp_clamp_tgt_rate": 0.0, "np_min_time_between_cnps": 50.0}}  # fmt: skip


class TestHns(DriverCase):
    counts = False

    @pytest.fixture(autouse=True)
    def _tree(self, tmp_path: Path) -> None:
        self.root = huawei_tree(tmp_path)

    def new_driver(self) -> Driver:
        units = {"ai": 1e6, "f": 1, "cnp_time": 1e-6}
        return huawei("hns", self.root, units=units)

    def targets(self) -> Targets:
        return {"": {"rp_ai_rate": 87.0, "np_min_time_between_cnps": 20.0}}


def test_what_no_text_tells_of_huaweis_nics_is_not_guessed(tmp_path: Path) -> None:
    root = huawei_tree(tmp_path)
    driver = huawei("hiroce3", root)
    assert driver.knobs() == ("rp_clamp_tgt_rate", "rp_initial_alpha_value")
    with pytest.raises(DeviceError, match="no public text says what one step of roce3_rp/rate_inc"):
        driver.stage({"": {"rp_ai_rate": 50.0}})
    assert huawei("hiroce3", root, skip=["rp_ai_rate"]).stage({"": {"rp_ai_rate": 50.0}}) == {}
    with pytest.raises(ConfigError, match="rate_inc_ai would be 80; it holds 1 to 63"):
        huawei("hiroce3", root, units=UNITS).stage({"": {"rp_ai_rate": 400.0}})
    with pytest.raises(DeviceError, match="give units of f, max_speed, ai"):
        huawei("hns", root).knobs()
    with pytest.raises(UnknownNameError, match="unknown file of units 'tkp'"):
        huawei("hns", root, units={"tkp": 1.0})
    assert driver.line_rate_bps() == 100e9


def test_a_card_of_huawei_that_runs_something_else_is_refused(tmp_path: Path) -> None:
    ecn = huawei_tree(tmp_path) / "sys/class/net/eth5/ecn"
    (ecn / "cc_algo").write_text("ldcp\n")
    with pytest.raises(DeviceError, match="cc_algo holds ldcp"):
        huawei("hiroce3", tmp_path).knobs()
    (ecn / "cc_algo").write_text("dcqcn\n")
    (ecn / "roce3_np/enable/3").write_text("0\n")
    with pytest.raises(DeviceError, match="roce3_np/enable/3 is not 1"):
        huawei("hiroce3", tmp_path).read()
    for file in tmp_path.rglob("dcqcn_cc_param/ai"):
        file.unlink()
    with pytest.raises(DeviceError, match="dcqcn_cc_param/ai is not there"):
        huawei("hns", tmp_path, units={"ai": 1e6}).read()
