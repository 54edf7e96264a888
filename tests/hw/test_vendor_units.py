"""What drivers write against the units on the makers' own pages, typed a second time.

`tests/data/hw/vendor-units.toml` names the pages. Nothing of the project's table of units is used
here: a quantity in SI units goes in by the knob's own unit, and the text that a driver would write
must be that quantity in the maker's unit, under the maker's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from devices import DATA, NIC, PlayedMlxconfig, load_sonic, nic_tree, redis_server
from test_nic_trees import Firmware, ofed, ofed_tree

from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS, KNOBS, NIC_KNOBS, default_setting
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.hw.drivers import DRIVERS, Driver, Surroundings, make_driver
from dcqcn_gym.hw.emit import emit

TABLES: dict[str, Any] = parse_toml((DATA / "vendor-units.toml").read_text(), "vendor-units.toml")
PAGES = TABLES.pop("pages")

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


def expected(table: str, name: str) -> str:
    """Return the whole number by the maker's page."""
    row, (quantity, _) = TABLES[table][name], QUANTITIES[name]
    return str(round(quantity / row["unit"]))


def test_every_knob_of_every_kind_of_device_has_a_page() -> None:
    assert set(TABLES["nic"]) == set(NIC_KNOBS)
    assert all(set(TABLES[kind]) == set(ECN_KNOBS) for kind in ("sonic", "gnmi", "eos"))
    assert set(QUANTITIES) == set(KNOBS)
    rows = [row for table in TABLES.values() for row in table.values()]
    assert {row["page"] for row in rows} <= set(PAGES)
    assert {*DRIVERS.names()} == {
        "mlx5", "mlxconfig", "ofed", "bnxt", "sonic", "sonic-asics", "gnmi",
    }  # fmt: skip  # a new one gets its page


@pytest.mark.parametrize("name", NIC_KNOBS)
def test_nvidia_by_three_ways(name: str, tmp_path: Path) -> None:
    row, text = TABLES["nic"][name], expected("nic", name)
    around = Surroundings(nic_tree(tmp_path / "mlx5", "newer"))
    mlx5 = make_driver("mlx5", {**NIC, "assume_dcqcn": True}, around, "test")
    assert written(mlx5, name) == {name: text}  # the kernel's files are named as the knobs
    side, word = ("roce_np" if name.startswith("np_") else "roce_rp"), row["key"].lower()
    assert written(ofed(ofed_tree(tmp_path / "ofed")), name) == {f"{side}/{word}": text}
    told = PlayedMlxconfig((DATA / "mlxconfig-newer.txt").read_text())
    card = make_driver("mlxconfig", {"pci": NIC["pci"]}, Surroundings(runner=told), "test")
    places = written(card, name)
    assert {place.removesuffix("_P1"): held for place, held in places.items()} == {row["key"]: text}


@pytest.mark.parametrize("name", NIC_KNOBS)
def test_defaults_and_ranges_that_are_printed_are_the_knobs(name: str) -> None:
    row, knob = TABLES["nic"][name], DCQCN[name]
    if "default" in row:
        assert row["default"] == round(default_setting()[name])
    low, high = row.get("range", knob.legal)
    assert knob.legal[0] <= low < high <= knob.legal[1]


@pytest.mark.parametrize("newer", [True, False])
def test_broadcom(newer: bool, tmp_path: Path) -> None:
    name = "np_min_time_between_cnps"
    firmware = Firmware(tmp_path, newer)
    driver = firmware.driver()
    places = written(driver, name)
    assert places == {TABLES["bnxt"][name]["key"]: expected("bnxt", name)}
    driver.apply(places)
    held = (firmware.folder / TABLES["bnxt"][name]["key"]).read_text()
    assert int(held, 16) == int(expected("bnxt", name))  # the kernel reads hexadecimal


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    with redis_server(tmp_path) as socket:
        load_sonic(socket, "sonic-older")
        yield socket


@pytest.mark.parametrize("name", ECN_KNOBS)
def test_sonic(name: str, redis: str) -> None:
    settings = {"socket": redis, "queue": 3, "ports": ["Ethernet0"], "asic_wait_s": 0.0}
    row, text = TABLES["sonic"][name], expected("sonic", name)
    for driver in (
        make_driver("sonic", settings, Surroundings(), "test"),
        make_driver("sonic-asics", {"asics": {"asic0": settings}}, Surroundings(), "test"),
    ):
        found = written(driver, name)
        fields = {place.rpartition("/")[2]: held for place, held in found.items()}
        assert fields[row["key"]] == text
        assert set(fields.values()) == {text}  # other colours that mark follow


@pytest.mark.parametrize("name", ECN_KNOBS)
def test_openconfig(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pygnmi", reason="the extra gnmi is not installed")
    from fake_gnmi import fake_gnmi

    with fake_gnmi(tmp_path) as (_, settings):
        found = written(make_driver("gnmi", settings, Surroundings(), "test"), name)
    key, text = TABLES["gnmi"][name]["key"], expected("gnmi", name)
    assert found
    assert all(place.endswith(key) and held == text for place, held in found.items())


@pytest.mark.parametrize("name", ECN_KNOBS)
def test_arista(name: str) -> None:
    setting = default_setting().replace({knob: value_of(knob) for knob in ECN_KNOBS})
    found = re.search(rf"{TABLES['eos'][name]['key']} (\d+)", emit(setting, "eos"))
    assert found is not None
    assert found[1] == expected("eos", name)
