"""The whole path on the digital fabric: controller, gRPC, agents, files and Redis, engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fabrics import fabric_of

from dcqcn_gym.core.abort_rules import AbortRules, Seen
from dcqcn_gym.core.errors import BackendError, ConfigError, DeviceError
from dcqcn_gym.envs.backends import Backend, make_backend
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.hw.device_counters import shape_of
from dcqcn_gym.hw.fabric.fabric import DigitalFabric
from dcqcn_gym.hw.fleet import load_fleet
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.testing.backend_case import BackendCase


@pytest.fixture(scope="module")
def fabric(small: Scenario) -> Iterator[DigitalFabric]:
    with fabric_of(small) as fabric:
        yield fabric


class TestHardwareBackend(BackendCase):
    """The kit that every backend passes, over a fleet."""

    @pytest.fixture(autouse=True)
    def _choose(self, fabric: DigitalFabric) -> None:
        self.fabric = fabric

    @pytest.fixture
    def scenario(self, small: Scenario) -> Scenario:
        return small

    def new_backend(self) -> Backend:
        return make_backend(f"hardware:{self.fabric.fleet}")


def test_reports_are_those_of_the_native_engine_behind_devices(
    small: Scenario, fabric: DigitalFabric
) -> None:
    worlds = [make_backend(name) for name in ("native-devices", f"hardware:{fabric.fleet}")]
    setting = small.initial_setting().replace({"kmin": 63.1234, "pmax": 0.1875})
    for world in worlds:
        world.open(small, 5)
        world.apply(setting)
    try:
        for i in range(4):
            near, far = (world.advance() for world in worlds)
            assert near == far
            if i == 1:
                for world in worlds:
                    world.apply({"cluster": setting, "nic:1": setting.replace({"rp_gd": 12})})
    finally:
        for world in worlds:
            world.close()


def test_paraleon_chooses_the_same_settings_over_the_whole_path(
    small: Scenario, fabric: DigitalFabric, tmp_path: Path
) -> None:
    chosen: dict[str, list[str]] = {}
    for name in ("native-devices", f"hardware:{fabric.fleet}"):
        spec = RunSpec(small, "paraleon", 3, 12, name, {})
        path = tmp_path / f"{len(chosen)}.jsonl"
        run(spec, path)
        chosen[name] = path.read_text().splitlines()[1:]
    near, far = chosen.values()
    assert near == far  # every figure of every interval, and what was recommended
    assert len({line.partition('"setting"')[2][:400] for line in near}) > 3


def test_the_shape_is_that_of_the_engine(small: Scenario) -> None:
    for name in ("mini-fb-hadoop", "fat-tree-1024"):
        other = load_scenario(name)
        if other.n_hosts > 100:
            other = small
        native = NativeBackend()
        native.open(other, 1)
        native.apply(other.initial_setting())
        report, shape = native.advance(10**8), shape_of(other)
        assert np.array_equal(report.port_rate_bps, shape.port_rate_bps)
        assert np.array_equal(report.host_rate_bps, shape.host_rate_bps)
        assert report.port_node.tolist() == list(shape.devices.port_node)
        native.close()


def test_another_scenario_is_refused(small: Scenario, fabric: DigitalFabric) -> None:
    backend = make_backend(f"hardware:{fabric.fleet}")
    with pytest.raises(ConfigError, match="the fleet has 4 NICs, the scenario 16"):
        backend.open(load_scenario("mini-fb-hadoop"), 1)
    changed = small.model_copy(update={"description": "another"})
    with pytest.raises(ConfigError, match="plays another scenario"):
        backend.open(changed, 1)


def test_a_counter_that_goes_back_is_no_interval(small: Scenario, fabric: DigitalFabric) -> None:
    backend = make_backend(f"hardware:{fabric.fleet}")
    backend.open(small, 1)
    try:
        backend.apply(small.initial_setting())
        backend.advance()
        ledger, fabric._ledger = fabric._ledger, replace(fabric._ledger)
        with pytest.raises(DeviceError, match=r"its counter \w+ went from"):
            backend.advance()
        fabric._ledger = ledger
    finally:
        backend.close()


def test_errors_of_nics_are_counted_and_end_a_run(small: Scenario, fabric: DigitalFabric) -> None:
    backend = make_backend(f"hardware:{fabric.fleet}")
    backend.open(small, 1)
    folder = next((fabric.fleet.parent / "nic-2").glob("root/sys/class/infiniband/*/ports/1"))
    timeouts = folder / "hw_counters" / "local_ack_timeout_err"
    rules = AbortRules(max_errors=10, patience=1)
    try:
        backend.apply(small.initial_setting())
        assert not backend.advance().scheme_counters
        timeouts.write_text("11\n")
        report = backend.advance()
        assert report.scheme_counters == {"nic_errors": 11}
        assert "errors 11 is beyond" in rules.broken(Seen.of_report(report, 1.0, 1.0))
    finally:
        backend.close()
        timeouts.unlink()


def test_a_silent_collector_is_no_interval(small: Scenario, fabric: DigitalFabric) -> None:
    backend = make_backend(f"hardware:{fabric.fleet}")
    backend.open(small, 1)
    try:
        backend.apply(small.initial_setting())
        show, fabric._show_fsd = fabric._show_fsd, lambda report: None  # type: ignore[method-assign]
        with pytest.raises(BackendError, match="collector has said nothing"):
            backend.advance()
        fabric._show_fsd = show  # type: ignore[method-assign]
    finally:
        backend.close()


def test_shared_profiles_refuse_ports_that_differ(small: Scenario) -> None:
    with fabric_of(small, shared_profiles=True) as fabric:
        backend = make_backend(f"hardware:{fabric.fleet}")
        backend.open(small, 1)
        try:
            setting = small.initial_setting()
            backend.apply(setting)
            with pytest.raises(DeviceError, match="share the profile AZURE_LOSSLESS"):
                backend.apply({"cluster": setting, "port:4:0": setting.replace({"kmin": 5})})
        finally:
            backend.close()


def test_the_fleet_file_is_one(fabric: DigitalFabric) -> None:
    fleet = load_fleet(fabric.fleet)
    assert [m.name for m in fleet.nics] == ["nic-0", "nic-1", "nic-2", "nic-3"]
    assert [m.name for m in fleet.switches] == ["switch-4", "switch-5", "switch-6"]
