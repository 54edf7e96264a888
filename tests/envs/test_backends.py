"""Every backend against the same kit; groups of devices; recording and replay."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.core.errors import BackendError, ConfigError, UnknownNameError
from dcqcn_gym.core.groups import Devices, resolve
from dcqcn_gym.core.knobs import (
    DCQCN,
    ECN_KNOBS,
    NIC_KNOBS,
    KnobTable,
    default_setting,
    expert_setting,
)
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.backends import Backend, backend_names, make_backend
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.backends.replay import RecordingBackend, ReplayBackend
from dcqcn_gym.envs.backends.report_dict import read_reports, write_reports
from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names
from dcqcn_gym.testing.backend_case import BackendCase, check_report
from large import LARGE
from toy_tables import OTHER_SCHEME

SCENARIOS = [name for name in scenario_names() if name not in LARGE]
IN_PROCESS = [name for name in backend_names() if name != "ns3"]


class TestEveryBackend(BackendCase):
    """Registered means tested."""

    name: str

    @pytest.fixture(autouse=True, params=IN_PROCESS)
    def _choose(self, request: pytest.FixtureRequest) -> None:
        if request.param == "native":
            pytest.importorskip("dcqcn_gym._core")
        self.name = request.param

    def new_backend(self) -> Backend:
        return make_backend(self.name)


@pytest.mark.parametrize(
    ("name", "corner"), [*zip(SCENARIOS, itertools.cycle([-1.0, 0.0, 1.0]), strict=False)]
)
def test_reports_of_every_scenario_are_consistent(name: str, corner: float) -> None:
    pytest.importorskip("dcqcn_gym._core")
    short = {"monitor_interval_us": 200.0}
    scenario = load_scenario(name).model_copy(update=short)
    space = KnobSpace(line_rate_bps=scenario.line_rate_bps)
    backend = make_backend("native")
    backend.open(scenario, 1)
    backend.apply(space.setting(np.full(space.n, corner), scenario.initial_setting()))
    for _ in range(4):
        check_report(backend.advance(), scenario.n_hosts)


def test_an_unknown_backend_offers_near_matches() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'native'"):
        make_backend("nativ")


def test_a_more_specific_group_wins() -> None:
    devices = Devices(
        n_hosts=2, port_node=[0, 1, 2, 2, 3], port_index=[0, 0, 0, 1, 0], tiers={2: 0, 3: 1}
    )
    base = default_setting()
    settings = [base.replace({"kmin": float(i), "rp_ai_rate": float(i)}) for i in range(6)]
    nic, ecn = resolve(
        {
            "cluster": settings[0],
            "hosts": settings[1],
            "nic:1": settings[2],
            "switches": settings[3],
            "tor": settings[4],
            "port:2:1": settings[5],
        },
        devices,
    )
    assert nic.shape == (2, len(NIC_KNOBS))
    assert ecn.shape == (5, len(ECN_KNOBS))
    assert nic[:, NIC_KNOBS.index("rp_ai_rate")].tolist() == [1.0, 2.0]
    assert ecn[:, ECN_KNOBS.index("kmin")].tolist() == [0.0, 0.0, 4.0, 5.0, 3.0]


def test_groups_of_two_knob_tables_are_refused() -> None:
    devices = Devices(n_hosts=1, port_node=[0], port_index=[0], tiers={})
    other = default_setting(table=OTHER_SCHEME)
    with pytest.raises(ConfigError, match=r"group 'hosts': .*scheme 'toy'.*scheme 'dcqcn'"):
        resolve({"cluster": default_setting(), "hosts": other}, devices)
    with pytest.raises(ConfigError, match=r"the network: .*scheme 'toy'.*scheme 'dcqcn'"):
        resolve(other, devices)
    nic, ecn = resolve(other, devices, OTHER_SCHEME)
    assert (nic.tolist(), ecn.shape) == ([[other["toy_gap"]]], (1, 3))


@pytest.mark.parametrize("name", IN_PROCESS)
def test_a_network_refuses_settings_of_another_knob_table(name: str) -> None:
    scenario = load_scenario("mini-fb-hadoop")
    same_length = KnobTable("toy", DCQCN.rows)
    with closing(make_backend(name)) as backend:
        backend.open(scenario, 1)
        for table in (OTHER_SCHEME, same_length):
            with pytest.raises(ConfigError, match=r"scheme 'toy'.*scheme 'dcqcn'"):
                backend.apply(default_setting(scenario.line_rate_bps, table))


def test_the_fake_backend_answers_to_the_knobs() -> None:
    scenario = load_scenario("mini-fb-hadoop")
    base = scenario.initial_setting()
    throughput = []
    for kmin in (10.0, 100.0, 400.0):
        backend = FakeBackend()
        backend.open(scenario, 0)
        backend.apply(base.replace({"kmin": kmin}))
        throughput.append(backend.advance().delivered_bytes)
    assert throughput == sorted(throughput)
    assert len(set(throughput)) == 3


def test_the_fake_backend_can_finish() -> None:
    scenario = load_scenario("mini-fb-hadoop")
    backend = FakeBackend(work_intervals=2)
    backend.open(scenario, 0)
    backend.apply(scenario.initial_setting())
    assert [(backend.advance().idle, backend.done) for _ in range(3)] == [
        (False, False),
        (False, True),
        (True, True),
    ]


def record() -> RecordingBackend:
    scenario = load_scenario("mini-fb-hadoop")
    recorder = RecordingBackend(FakeBackend())
    recorder.open(scenario, 4)
    recorder.apply(expert_setting(scenario.line_rate_bps))
    for _ in range(3):
        recorder.advance()
    recorder.close()
    return recorder


def test_a_recording_is_played_back_to_the_byte(tmp_path: Path) -> None:
    recorder = record()
    write_reports(tmp_path / "r.jsonl", recorder.reports)
    assert read_reports(tmp_path / "r.jsonl") == recorder.reports
    backend = make_backend(f"replay:{tmp_path / 'r.jsonl'}")
    scenario = load_scenario("mini-fb-hadoop")
    backend.open(scenario, 0)
    backend.apply(scenario.initial_setting())
    assert [backend.advance() for _ in range(3)] == recorder.reports
    assert backend.done
    with pytest.raises(BackendError, match="ends after 3"):
        backend.advance()


def test_a_replay_refuses_another_duration() -> None:
    backend = ReplayBackend(record().reports)
    scenario = load_scenario("mini-fb-hadoop")
    backend.open(scenario, 0)
    backend.apply(scenario.initial_setting())
    with pytest.raises(BackendError, match="lasts"):
        backend.advance(duration_ps=1)


def test_a_broken_recording_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_reports(path, record().reports[:1])
    path.write_text(path.read_text() + '{"index": 1}\n')
    with pytest.raises(ConfigError, match="line 2"):
        read_reports(path)


def test_reports_compare_by_value() -> None:
    first, second = record().reports[0], record().reports[0]
    assert first == second
    assert first != record().reports[1]
    assert np.array_equal(first.host_tx_bytes, second.host_tx_bytes)
