"""What every backend must do, as tests: subclass :class:`BackendCase`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter

import numpy as np
import pytest

from dcqcn_gym.core.capabilities import check_figures, check_needs
from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.core.interval import FSD_BINS, REPORT_FIELDS, IntervalReport
from dcqcn_gym.core.knobs import expert_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import count, total
from dcqcn_gym.core.utility import terms
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.backends.base import live_flows_of
from dcqcn_gym.envs.observation import observe
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario


class BackendCase:
    """Base class of backend tests; supply :meth:`new_backend`, and a scenario if you like."""

    def new_backend(self) -> Backend:
        """Return a new, closed backend."""
        raise NotImplementedError

    @pytest.fixture
    def scenario(self) -> Scenario:
        """The scenario that the tests run: small, with traffic from the start."""
        return load_scenario("mini-fb-hadoop").model_copy(update={"monitor_interval_us": 200.0})

    @pytest.fixture
    def backend(self, scenario: Scenario) -> Iterator[Backend]:
        """An open backend with the scenario's initial setting; closed after the test."""
        backend = self.new_backend()
        backend.open(scenario, 1)
        try:
            backend.apply(scenario.initial_setting())
            yield backend
        finally:
            backend.close()

    def run(self, scenario: Scenario, seed: int, intervals: int = 3) -> list[IntervalReport]:
        """Return the first reports of a fresh backend."""
        backend = self.new_backend()
        backend.open(scenario, seed)
        backend.apply(scenario.initial_setting())
        reports = [backend.advance() for _ in range(intervals)]
        backend.close()
        return reports

    def test_is_a_backend(self) -> None:
        """It has the methods of the contract."""
        assert isinstance(self.new_backend(), Backend)

    def test_says_what_it_offers_and_cannot_know(self, backend: Backend) -> None:
        """Both are sets of names that exist, and its reports say the same."""
        new = self.new_backend()
        check_needs("the backend", "offers", new.offers)
        check_figures("the backend", "unknown", new.unknown)
        assert backend.advance().unknown == backend.unknown == new.unknown

    def test_calls_out_of_order_name_the_missing_call(self, scenario: Scenario) -> None:
        """A StateError says what to call first."""
        backend = self.new_backend()
        with pytest.raises(StateError, match="open"):
            backend.apply(scenario.initial_setting())
        with pytest.raises(StateError, match="open"):
            backend.advance()
        backend.open(scenario, 0)
        with pytest.raises(StateError, match="apply"):
            backend.advance()
        with pytest.raises(StateError, match="close"):
            backend.open(scenario, 0)
        backend.close()
        with pytest.raises(StateError, match="open"):
            backend.advance()

    def test_close_is_allowed_in_every_state(self, scenario: Scenario) -> None:
        """Close twice, before open, after open; open again afterwards."""
        backend = self.new_backend()
        backend.close()
        backend.open(scenario, 0)
        backend.close()
        backend.close()
        assert backend.done is False
        backend.open(scenario, 0)
        backend.close()

    def test_intervals_follow_each_other(self, backend: Backend, scenario: Scenario) -> None:
        """Interval k begins where k-1 ended; a given duration holds."""
        first, second = backend.advance(), backend.advance(duration_ps=50_000_000)
        assert first.start_ps == 0
        assert first.duration_ps == scenario.monitor_interval_ps
        assert (second.start_ps, second.duration_ps) == (first.end_ps, 50_000_000)
        assert second.index == first.index + 1

    def test_same_seed_same_bytes(self, scenario: Scenario) -> None:
        """Two fresh backends report the same, another seed something else."""
        assert self.run(scenario, 7) == self.run(scenario, 7)
        assert self.run(scenario, 7) != self.run(scenario, 8)

    def test_reopening_equals_a_fresh_backend(self, scenario: Scenario) -> None:
        """Nothing of an earlier episode is left."""
        backend = self.new_backend()
        for seed in (3, 7):
            backend.open(scenario, seed)
            backend.apply(scenario.initial_setting())
            reports = [backend.advance() for _ in range(3)]
            backend.close()
        assert reports == self.run(scenario, 7)

    def test_reports_are_consistent(self, backend: Backend, scenario: Scenario) -> None:
        """Shapes, types, ranges and sums hold in every interval."""
        for _ in range(5):
            check_report(backend.advance(), scenario.n_hosts)

    def test_live_flows_are_those_that_are_active(self, backend: Backend) -> None:
        """Where the backend knows them: as many as the report says, by source and ordinal."""
        for _ in range(3):
            report, live = backend.advance(), live_flows_of(backend)
            if live is None:
                return
            assert len(live.src) == report.active_flows
            named = list(zip(live.src.tolist(), live.ordinal.tolist(), strict=True))
            assert named == sorted(set(named))
            assert np.all(live.start_ps < report.end_ps)
            assert np.all(live.ideal_fct_ps > 0)

    def test_there_is_traffic(self, backend: Backend) -> None:
        """The scenario's senders send."""
        reports = [backend.advance() for _ in range(5)]
        figure = "delivered_bytes" if "delivered_bytes" not in backend.unknown else "data_packets"
        assert count(getattr(r, figure) for r in reports) > 0
        assert any(len(r.rtt_count) for r in reports)
        assert not all(r.idle for r in reports)

    def test_terms_and_observation_are_in_their_ranges(
        self, backend: Backend, scenario: Scenario
    ) -> None:
        """What the environment makes of a report is well formed."""
        report = backend.advance()
        value = terms(report)
        assert all(0.0 <= t <= 1.0 for t in (value.tp, value.rtt, value.pfc))
        space = KnobSpace(line_rate_bps=scenario.line_rate_bps)
        assert np.all(np.isfinite(observe(report, scenario.initial_setting(), space)))

    def test_settings_per_group(self, backend: Backend, scenario: Scenario) -> None:
        """Groups are accepted, unknown devices and a missing cluster are refused."""
        base, other = scenario.initial_setting(), expert_setting(scenario.line_rate_bps)
        switch = scenario.n_hosts
        backend.apply({"cluster": base, "hosts": other, "tor": other, "nic:0": base})
        backend.apply({"cluster": base, f"switch:{switch}": other, f"port:{switch}:0": base})
        backend.advance()
        with pytest.raises(ConfigError, match="cluster"):
            backend.apply({"hosts": other})
        with pytest.raises(ConfigError, match="nic:999999"):
            backend.apply({"cluster": base, "nic:999999": other})
        with pytest.raises(ConfigError, match="switches"):
            backend.apply({"cluster": base, "switchs": other})

    def test_a_setting_matters(self, scenario: Scenario) -> None:
        """A very different setting leads to a different report sooner or later."""
        base = scenario.initial_setting()
        timid = base.replace({"kmin": 5, "kmax": 10, "pmax": 1.0})
        outcomes = []
        for setting in (base, timid):
            backend = self.new_backend()
            backend.open(scenario, 1)
            backend.apply(setting)
            outcomes.append([backend.advance() for _ in range(10)])
            backend.close()
        assert outcomes[0] != outcomes[1]


PER_PORT = [name for name in REPORT_FIELDS if name.startswith("port_")]


def check_report(report: IntervalReport, n_hosts: int) -> None:
    """Assert that a report is well formed: shapes, types, ranges and sums."""
    for name, field in REPORT_FIELDS.items():
        value, wanted = attrgetter(name)(report), field.zeros(0)
        if isinstance(wanted, np.ndarray):
            assert value.dtype == wanted.dtype, f"{name} is {value.dtype}, expected {wanted.dtype}"
            assert np.all(np.isfinite(value)), name
        elif field.kind == "int":
            assert type(value) is int, f"{name} is {type(value).__name__}, expected int"
        assert np.all(np.asarray(value) >= 0), name
    assert len(report.host_tx_bytes) == len(report.host_rate_bps) == n_hosts
    assert len({len(getattr(report, name)) for name in PER_PORT}) == 1
    assert len({len(getattr(report, f"rtt_{n}")) for n in ("src", "dst", "count", "sum_ps")}) == 1
    assert np.all(report.rtt_count > 0)
    assert np.all(report.rtt_base_ps * report.rtt_count <= report.rtt_sum_ps)
    assert np.all(report.port_pause_ps <= report.duration_ps)
    assert np.all(report.port_marked_packets <= report.port_tx_packets)
    assert np.all(report.port_queue_bytes <= report.port_max_queue_bytes)
    assert int(np.sum(report.port_dropped_packets)) == report.drops
    assert int(np.sum(report.port_pfc_sent)) == report.pauses + report.resumes
    assert int(np.sum(report.port_pfc_received)) == count(report.pfc_received_by_kind())
    assert total(report.pause_ps_by_kind()) == pytest.approx(float(np.sum(report.port_pause_ps)))
    _check_flows(report)


def _check_flows(report: IntervalReport) -> None:
    fsd, finished = report.fsd, report.finished
    assert len(fsd.bins) == FSD_BINS
    if fsd.known:
        states = fsd.elephants + fsd.potential + fsd.mice
        assert states == pytest.approx(float(np.sum(fsd.bins)))
        assert fsd.weighted_elephants + fsd.weighted_mice == pytest.approx(states)
    assert 0.0 <= fsd.elephant_share <= 1.0
    assert np.isfinite(fsd.kl)
    assert len({len(getattr(finished, f.name)) for f in fields(finished)}) == 1
    assert np.all(finished.fct_ps >= finished.ideal_fct_ps)
    assert np.all(finished.bytes > 0)
    assert np.all(finished.src != finished.dst)
