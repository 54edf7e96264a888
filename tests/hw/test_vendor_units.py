"""What drivers write against the makers' public text, typed a second time.

`tests/data/hw/vendor-units.toml` names the pages. Nothing of the project's table of units is used
here: a quantity in SI units goes in by the knob's own unit, and the text that a driver would write
must be that quantity in the maker's unit, under the maker's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from devices import DATA, NIC, PlayedMlxconfig, load_sonic, nic_tree, redis_server
from test_nic_trees import Firmware, ofed, ofed_tree

from dcqcn_gym.core.device_commands import FORMS, emit
from dcqcn_gym.core.device_limits import safe_range
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS, KNOBS, NIC_KNOBS, Knob, default_setting
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.hw.drivers import DRIVERS, Driver, Surroundings, make_driver

TABLES: dict[str, Any] = parse_toml((DATA / "vendor-units.toml").read_text(), "vendor-units.toml")
ROWS: Mapping[str, Mapping[str, Any]] = {
    "nvidia": {**TABLES["nvidia"], **TABLES["disputed"]},
    "bnxt": TABLES["bnxt"],
    "switch": TABLES["switch"],
}
KINDS = {  # of every driver and every form of commands: the table that has its rows
    "mlx5": "nvidia", "ofed": "nvidia", "mlxconfig": "nvidia", "bnxt": "bnxt",
    "sonic": "switch", "sonic-newer": "switch", "gnmi": "switch", "eos": "switch",
    "nvue": "switch",
}  # fmt: skip
SAME = {"sonic-asics": "sonic", "debugfs": "mlx5"}
"""Drivers and forms that write what another does."""
STATED = {"junos", "hiroce3", "hns"}
"""Drivers whose units no text says: the agent's file does (test_committed_switches.py and
test_nic_trees.py have what they then write)."""
UNSAID = {"rp_dce_tcp_g", "rp_dce_tcp_rtt"}
"""Knobs of which no text says which way a larger number moves a sender."""
DISPUTED = {"rp_byte_reset"}
"""Knobs whose unit by the makers' text is not the driver's (docs/reference/decisions.md)."""

# a quantity of each knob in SI units, and the knob's own unit in SI units: written by hand
QUANTITIES: Mapping[str, tuple[float, float]] = {
    "rp_clamp_tgt_rate": (1.0, 1.0), "rp_clamp_tgt_rate_ati": (0.0, 1.0),
    "rp_time_reset": (0.000_55, 1e-6), "rp_byte_reset": (640_000.0, 64.0),
    "rp_threshold": (5.0, 1.0), "rp_max_rate": (40e9, 1e6), "rp_ai_rate": (87e6, 1e6),
    "rp_hai_rate": (430e6, 1e6), "rp_gd": (10.0, 1.0), "rp_min_dec_fac": (0.25, 0.01),
    "rp_min_rate": (100e6, 1e6), "rp_rate_to_set_on_first_cnp": (20e9, 1e6),
    "rp_rate_reduce_monitor_period": (90e-6, 1e-6), "rp_dce_tcp_g": (0.9765625, 1 / 1024),
    "rp_dce_tcp_rtt": (55e-6, 1e-6), "rp_initial_alpha_value": (0.5, 1 / 1024),
    "np_min_time_between_cnps": (50e-6, 1e-6),
    "kmin": (150e3, 1e3), "kmax": (640e3, 1e3), "pmax": (0.25, 1.0),
}  # fmt: skip


def value_of(name: str) -> float:
    """Return the quantity in the knob's own unit."""
    quantity, unit = QUANTITIES[name]
    return round(quantity / unit, 9)


def written(driver: Driver, name: str) -> dict[str, str]:
    """Return place -> text that a driver would write for this knob alone."""
    return driver.stage({"": {name: value_of(name)}})


def expected(row: Mapping[str, Any], name: str) -> str:
    """Return the whole number by the maker's text, or by what was measured against it."""
    return str(round(QUANTITIES[name][0] / row.get("measured", row["unit"])))


def test_every_knob_of_every_driver_and_form_has_a_row() -> None:
    named = {*DRIVERS.names(), *FORMS, "sonic-newer"}
    assert {*KINDS, *SAME, *STATED} == named  # a new one gets its rows
    held = {"nvidia": set(NIC_KNOBS), "switch": set(ECN_KNOBS)}
    for kind, table in KINDS.items():
        named = {name for name, row in ROWS[table].items() if row.get(kind)}
        assert named == held.get(table, {"np_min_time_between_cnps"}), kind
        assert TABLES["names"][kind] in TABLES["pages"], kind
    assert set(QUANTITIES) == set(KNOBS)


def test_every_row_names_its_pages_and_says_unit_and_direction() -> None:
    rows = {(t, name): row for t, table in ROWS.items() for name, row in table.items()}
    for (table, name), row in rows.items():
        pages = row["page"].split()
        assert pages, name
        assert set(pages) <= set(TABLES["pages"]), name
        assert row["unit"] > 0, name
        if name in UNSAID:
            assert "larger" not in row, name
        else:
            more = {"sends more": 1, "sends less": -1}[row["larger"]]
            assert more == DCQCN[name].direction, f"{table} {name}"
    assert {name for _, name in rows} == set(KNOBS)


def test_what_is_disputed_is_counted_and_kept_as_it_is_held() -> None:
    assert set(TABLES["disputed"]) == DISPUTED
    for name, row in TABLES["disputed"].items():
        assert row["against"] in TABLES["pages"]
        assert row["measured"] != row["unit"] == 1.0
        assert KNOBS[name].si_per_unit == row["measured"]  # the label alone: numbers pass as held


@pytest.mark.parametrize("name", NIC_KNOBS)
def test_nvidia_by_three_ways(name: str, tmp_path: Path) -> None:
    row = ROWS["nvidia"][name]
    text = expected(row, name)
    around = Surroundings(nic_tree(tmp_path / "mlx5", "newer"))
    mlx5 = make_driver("mlx5", {**NIC, "assume_dcqcn": True}, around, "test")
    assert {mlx5.files[row["mlx5"]].name} == {name}  # type: ignore[attr-defined]
    assert written(mlx5, name) == {row["mlx5"]: text}
    assert written(ofed(ofed_tree(tmp_path / "ofed")), name) == {row["ofed"]: text}
    told = PlayedMlxconfig((DATA / "mlxconfig-newer.txt").read_text())
    card = make_driver("mlxconfig", {"pci": NIC["pci"]}, Surroundings(runner=told), "test")
    places = written(card, name)
    assert {p.removesuffix("_P1"): held for p, held in places.items()} == {row["mlxconfig"]: text}


@pytest.mark.parametrize("name", NIC_KNOBS)
def test_defaults_and_ranges_that_are_printed_are_the_knobs(name: str) -> None:
    row, knob = ROWS["nvidia"][name], DCQCN[name]
    if "default" in row:
        assert row["default"] == round(default_setting()[name])
    low, high = row.get("range", knob.legal)
    assert knob.legal[0] <= low < high <= knob.legal[1]
    assert low <= tuned_by_agents(knob)[0]
    assert tuned_by_agents(knob)[1] <= high


def tuned_by_agents(knob: Knob) -> tuple[float, float]:
    """Return what an agent lets through at 100 Gb/s, the knob's `off` apart."""
    found = safe_range(knob, 100e9)
    assert found is not None
    return found


@pytest.mark.parametrize("version", ["newer", "older", "oldest"])
def test_broadcom(version: str, tmp_path: Path) -> None:
    name = "np_min_time_between_cnps"
    row = TABLES["bnxt"][name]
    firmware = Firmware(tmp_path, version)
    driver = firmware.driver()
    places = written(driver, name)
    assert places == {row["bnxt"]: expected(row, name)}
    driver.apply(places)
    held = (firmware.folder / row["bnxt"]).read_text()
    assert held.startswith("0x")  # older kernels read hexadecimal, newer ones by its prefix
    assert int(held, 16) == int(expected(row, name))
    top = row["range"][1]
    assert driver.stage({"": {name: float(top)}}) == {row["bnxt"]: str(top)}


@pytest.fixture(params=["sonic", "sonic-newer"])
def sonic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Yield the kind and the Redis socket of an image that marks by the drop curve, or apart."""
    with redis_server(tmp_path) as socket:
        load_sonic(socket, "sonic-older" if request.param == "sonic" else request.param)
        yield request.param, socket


@pytest.mark.parametrize("name", ECN_KNOBS)
def test_sonic(name: str, sonic: tuple[str, str]) -> None:
    kind, socket = sonic
    settings = {"socket": socket, "queue": 3, "ports": ["Ethernet0"], "asic_wait_s": 0.0}
    row = TABLES["switch"][name]
    text = expected(row, name)
    for driver in (
        make_driver("sonic", settings, Surroundings(), "test"),
        make_driver("sonic-asics", {"asics": {"asic0": settings}}, Surroundings(), "test"),
    ):
        found = written(driver, name)
        fields = {place.rpartition("/")[2]: held for place, held in found.items()}
        assert fields[row[kind]] == text
        assert set(fields.values()) == {text}  # other colours that mark follow


def test_thresholds_that_sonic_takes(sonic: tuple[str, str]) -> None:
    settings = {"socket": sonic[1], "queue": 3, "ports": ["Ethernet0"], "asic_wait_s": 0.0}
    driver = make_driver("sonic", settings, Surroundings(), "test")
    low, high = TABLES["limits"]["sonic"]["bytes"]
    edge = set(driver.stage({"": {"kmin": low / 1e3, "kmax": high / 1e3}}).values())
    assert edge == {str(low), str(high)}
    for kmin, kmax in ((0.0, 100.0), (100.0, (high + 1) / 1e3)):
        with pytest.raises(ConfigError, match=f"SONiC holds {low} to {high} B"):
            driver.stage({"": {"kmin": kmin, "kmax": kmax}})


@pytest.mark.parametrize("name", ECN_KNOBS)
def test_openconfig(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pygnmi", reason="the extra gnmi is not installed")
    from fake_gnmi import fake_gnmi

    with fake_gnmi(tmp_path) as (_, settings):
        driver = make_driver("gnmi", settings, Surroundings(), "test")
        found = written(driver, name)
        driver.apply(found)  # the fake refuses a uint64 that is a number, a percentage that is text
    key, text = TABLES["switch"][name]["gnmi"], expected(TABLES["switch"][name], name)
    assert found
    assert all(place.endswith(key) and held == text for place, held in found.items())


@pytest.mark.parametrize("name", ECN_KNOBS)
def test_arista(name: str) -> None:
    setting = default_setting().replace({knob: value_of(knob) for knob in ECN_KNOBS})
    row = TABLES["switch"][name]
    found = re.search(rf"{row['eos']} (\d+)( bytes)?", emit(setting, "eos"))
    assert found is not None
    assert found[1] == expected(row, name)
    assert bool(found[2]) == (name != "pmax")


@pytest.mark.parametrize("name", ECN_KNOBS)
def test_nvue(name: str) -> None:
    setting = default_setting().replace({knob: value_of(knob) for knob in ECN_KNOBS})
    row = TABLES["switch"][name]
    said = f"nv set $CLASS {row['nvue']} {expected(row, name)}"
    assert said in emit(setting, "nvue").splitlines()


@pytest.mark.parametrize("form", ["sonic", "eos"])
def test_commands_hold_what_the_switch_takes(form: str) -> None:
    take = TABLES["limits"][form]
    held: Callable[[dict[str, float]], str] = lambda s: emit(default_setting().replace(s), form)  # noqa: E731
    (low, high), (least, most) = take["bytes"], take["percents"]
    edge = held({"kmin": low / 1e3, "kmax": high / 1e3, "pmax": least / 100})
    assert {str(low), str(high)} <= set(re.findall(r"\d+", edge))
    assert f" {most}" in held({"pmax": most / 100})
    odd: list[dict[str, float]] = [{"kmin": (low - 1) / 1e3}, {"kmax": (high + 1) / 1e3}]
    for change in odd:
        with pytest.raises(ConfigError, match="cannot hold this setting"):
            held(change)
