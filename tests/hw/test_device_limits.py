"""One table of what devices hold: commands, drivers, agents, imports and checks all read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from devices import DATA, NIC, PlayedMlxconfig, load_sonic, nic_tree, redis_server
from test_nic_trees import Firmware, ofed, ofed_tree

from dcqcn_gym.core import device_limits
from dcqcn_gym.core.device_commands import FORMS, emit
from dcqcn_gym.core.device_limits import HELD, SAFE, held_range
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN, default_setting
from dcqcn_gym.extras.traffic.device_state import read_device_state
from dcqcn_gym.extras.traffic.dumps import read_dumps
from dcqcn_gym.extras.traffic.switch_checks import SWITCH_CHECKS
from dcqcn_gym.hw.drivers import DRIVERS, Driver, Surroundings, make_driver
from dcqcn_gym.hw.limits import check_limits

SETTING = default_setting(100e9)
KINDS = {**dict.fromkeys(("mlxconfig", "debugfs", "mlx5", "ofed", "sysfs"), "rp_ai_rate"),
         "bnxt": "np_min_time_between_cnps",
         **dict.fromkeys(("sonic", "eos", "nvue", "gnmi"), "kmax")}  # fmt: skip
"""A form, a driver, or a kind of dump -> one of its knobs."""
DUMPS = {
    "mlxconfig": "RPG_AI_RATE_P1 5", "sysfs": "rpg_ai_rate 5", "bnxt": "min_time_bet_cnp=0x4",
    "sonic": "green_max_threshold 1600000",
    "eos": "random-detect ecn minimum-threshold 1 kbytes maximum-threshold 1600 kbytes",
    "nvue": "nv set qos congestion-control x traffic-class 3 max-threshold 1600000",
}  # fmt: skip
"""What each device has by default, as its dump says it."""


@pytest.fixture(params=[None, *KINDS])
def narrowed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """A kind of device that holds next to nothing of one knob from now on; None: none does."""
    if request.param is not None:
        own = {**HELD.get(request.param, {}), KINDS[request.param]: (2, 3)}
        monkeypatch.setitem(HELD, request.param, own)
    kind: str | None = request.param
    return kind


def test_every_driver_and_form_is_a_kind() -> None:
    stated = {"junos", "hiroce3", "hns"}  # in units that the agent's file states
    assert {*FORMS, *DRIVERS.names()} - set(KINDS) == {"sonic-asics", *stated}  # each is `sonic`
    assert set(HELD) <= set(KINDS)


@pytest.mark.parametrize("form", FORMS)
def test_commands(narrowed: str | None, form: str) -> None:
    try:
        text = emit(SETTING, form)
    except ConfigError as error:
        text = str(error)
    assert ("it holds 2 to 3." in text) == (form == narrowed)


def test_drivers(narrowed: str | None, tmp_path: Path) -> None:
    played = PlayedMlxconfig((DATA / "mlxconfig-newer.txt").read_text())
    around = Surroundings(nic_tree(tmp_path / "mlx5", "newer"))
    with redis_server(tmp_path) as socket:
        load_sonic(socket, "sonic-older")
        own = {"socket": socket, "queue": 3, "ports": ["Ethernet0"], "asic_wait_s": 0.0}
        drivers: dict[str, Driver] = {
            "mlx5": make_driver("mlx5", {**NIC, "assume_dcqcn": True}, around, "test"),
            "ofed": ofed(ofed_tree(tmp_path / "ofed")),
            "mlxconfig": make_driver(
                "mlxconfig", {"pci": NIC["pci"]}, Surroundings(runner=played), "test"),
            "bnxt": Firmware(tmp_path / "bnxt", "newer").driver(),
            "sonic": make_driver("sonic", own, Surroundings(), "test"),
        }  # fmt: skip
        for kind, driver in drivers.items():
            knob = KINDS[kind]
            if kind != narrowed:
                driver.stage({"": {knob: SETTING[knob]}})
                continue
            with pytest.raises(ConfigError, match="holds 2 to 3"):
                driver.stage({"": {knob: SETTING[knob]}})


@pytest.mark.parametrize("kind", DUMPS)
def test_imports(narrowed: str | None, kind: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f"RPG_GD_P1 11\n{DUMPS[kind]}\n")
    found = read_device_state([tmp_path / "x"]).tables()["initial"]
    assert (KINDS[kind] in found) == (kind != narrowed)


def test_checks_of_a_pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = {
        "QUEUE": {"Ethernet0|3": {"wred_profile": "W"}},
        "WRED_PROFILE": {"W": {"green_min_threshold": "1", "green_max_threshold": "2"}},
        "BUFFER_PROFILE": {"pg_lossless": {"dynamic_th": "3", "pool": "p"}},
        "BUFFER_POOL": {"p": {"size": "1000000"}},
    }
    (tmp_path / "x.json").write_text(json.dumps(whole))
    check = SWITCH_CHECKS["marking before pausing"]
    assert check(read_dumps([tmp_path / "x.json"])) is not None
    monkeypatch.setitem(HELD, "sonic", {**HELD["sonic"], "pfc_alpha": (-7, 2)})
    assert check(read_dumps([tmp_path / "x.json"])) is None


def test_agents_and_commands_have_one_safe_range(monkeypatch: pytest.MonkeyPatch) -> None:
    change = {"rp_gd": 13.0, "rp_min_rate": 6000.0}
    text = emit(SETTING.replace(change), "debugfs", line_rate_bps=100e9)
    for name, value in change.items():
        with pytest.raises(ConfigError, match=f"{name} = .* is beyond this agent's limits"):
            check_limits({"": {name: value}}, {}, lambda: 100e9)
        assert f"# {name} = {value:g} {DCQCN[name].unit} is beyond what agents let" in text
    assert "beyond" not in emit(SETTING, "debugfs", line_rate_bps=100e9)
    monkeypatch.setitem(SAFE, "rp_gd", (10, 13))
    monkeypatch.setattr(device_limits, "LOWEST_SHARE", 0.1)
    check_limits({"": change}, {}, lambda: 100e9)
    assert "beyond" not in emit(SETTING.replace(change), "debugfs", line_rate_bps=100e9)


def test_what_is_not_in_the_table_is_the_legal_range_in_the_devices_unit() -> None:
    assert held_range("debugfs", DCQCN["rp_byte_reset"]) == (0, 2**32 - 1)
    assert held_range("mlxconfig", DCQCN["rp_byte_reset"]) == (0, 2**15 - 1)
    assert held_range("gnmi", DCQCN["kmax"]) == (0, 4_000_000_000)
    assert held_range("sonic", DCQCN["pmax"]) == (0, 100)
