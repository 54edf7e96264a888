"""What every driver of a device must do, as tests: subclass :class:`DriverCase`."""

from __future__ import annotations

import pytest

from dcqcn_gym.core.device_units import on_devices
from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.core.knobs import DCQCN
from dcqcn_gym.hw.drivers import Driver, Targets


class DriverCase:
    """Base class of driver tests; supply :meth:`new_driver` and :meth:`targets`."""

    counts = True
    """False for a driver that shows no counters."""

    def new_driver(self) -> Driver:
        """Return a driver of a device at its usual setting."""
        raise NotImplementedError

    def targets(self) -> Targets:
        """Return knobs that differ from the usual setting."""
        raise NotImplementedError

    @pytest.fixture
    def driver(self) -> Driver:
        """A driver of a device at its usual setting."""
        return self.new_driver()

    def test_knobs_are_those_of_its_kind(self, driver: Driver) -> None:
        """All are in the table, a NIC has none of a switch and the other way round."""
        assert driver.knobs()
        for name in driver.knobs():
            assert DCQCN[name].is_ecn == (driver.kind == "switch")

    def test_looking_changes_nothing(self, driver: Driver) -> None:
        """Reading, staging and asking for the difference write nothing."""
        before = driver.read()
        after = driver.stage(self.targets())
        driver.diff(before, after)
        driver.setting()
        assert after
        assert set(after) <= set(before)
        assert driver.read() == before

    def test_diff_names_every_place_once(self, driver: Driver) -> None:
        """With what it holds, what it will hold, the knob and its unit."""
        before = driver.read()
        after = driver.stage(self.targets())
        lines = driver.diff(before, after)
        assert sorted(line.place for line in lines) == sorted(after)
        for line in lines:
            assert (line.before, line.after) == (before[line.place], after[line.place])
            assert line.before != line.after
            assert DCQCN[line.knob]
            assert line.unit

    def test_a_change_comes_into_force(self, driver: Driver) -> None:
        """It is read back as knobs, to the device's step; another staging finds nothing to do."""
        after = driver.stage(self.targets())
        assert set(driver.read_back(after)) == set(after)
        driver.apply(after)
        assert driver.read_back(after) == {}
        setting = driver.setting()
        for port, knobs in self.targets().items():
            for name, value in on_devices(knobs).items():
                for own in setting if not port and driver.kind == "switch" else [port]:
                    assert setting[own][name] == value
        assert driver.stage(self.targets()) == {}

    def test_revert_restores_every_place(self, driver: Driver) -> None:
        """Whole, and after half a change."""
        before = driver.read()
        after = driver.stage(self.targets())
        driver.apply(after)
        driver.revert(before)
        assert driver.read() == before
        place = next(iter(after))
        driver.apply({place: after[place]})
        driver.revert(before)
        assert driver.read() == before

    def test_a_value_out_of_range_is_refused(self, driver: Driver) -> None:
        """Nothing is written and the message names the knob."""
        before = driver.read()
        port, knobs = next(iter(self.targets().items()))
        name = next(iter(knobs))
        for wrong in (-1.0, float("nan"), 1e30):
            with pytest.raises(ConfigError, match=name):
                driver.stage({port: {**knobs, name: wrong}})
        assert driver.read() == before

    def test_a_knob_that_the_device_lacks_is_refused(self, driver: Driver) -> None:
        """The message names it and says what to do."""
        missing = next(n for n in DCQCN.knobs if n not in driver.knobs())
        port, knobs = next(iter(self.targets().items()))
        with pytest.raises(DeviceError, match=f"lacks the knob {missing}.*skip"):
            driver.stage({port: {**knobs, missing: 1.0}})

    def test_a_port_that_is_none_is_quoted(self, driver: Driver) -> None:
        """A name from a message stays on one line, whatever is in it."""
        knobs = next(iter(self.targets().values()))
        with pytest.raises(DeviceError) as caught:
            driver.stage({"no\nport": knobs})
        assert "'no\\nport'" in str(caught.value)

    def test_counters_are_whole_numbers(self, driver: Driver) -> None:
        """Not below 0; a driver without counters says so."""
        if not self.counts:
            with pytest.raises(DeviceError, match="counters"):
                driver.counters()
            return
        found = driver.counters()
        assert found
        for name, value in found.items():
            assert type(value) is int, name
            assert value >= 0, name
