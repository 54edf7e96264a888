"""What a scheme says in its CNPs stands in the bytes of a capture."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_ns3_pcap import Frame, invariant_crc, read

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.backends.ns3 import Ns3Backend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

CNP = 0x81
BTH = 14 + 20 + 8


def cnps(folder: Path, scheme: object) -> tuple[list[Frame], IntervalReport]:
    """Return every CNP that the receiver of an incast of 16 sends in 300 us, and the report."""
    values = load_scenario("incast").model_dump(mode="json", exclude_unset=True)
    scenario = Scenario.model_validate({**values, "scheme": scheme, "initial": "dcqcn-plus"})
    backend = Ns3Backend(pcap=folder / "incast")
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    report = backend.advance(300_000_000)
    backend.close()
    sent = [f for f in read(folder / "incast-0-0.pcap") if f.opcode == CNP]
    assert len(sent) > 20
    assert all(f.data[-4:] == invariant_crc(f.data) and len(f.data) == 74 for f in sent)
    return sent, report


def tau_ns(frame: Frame) -> int:
    """Return the first four of the 16 reserved bytes, which follow the BTH of 12."""
    return int.from_bytes(frame.data[BTH + 12 : BTH + 16], "big")


def count(frame: Frame) -> int:
    """Return the 7 bits beside the acknowledge request, in the ninth byte of the BTH."""
    return frame.data[BTH + 8] & 0x7F


def test_a_cnp_of_dcqcn_plus_has_tau(tmp_path: Path) -> None:
    sent, _ = cnps(tmp_path, "dcqcn-plus")
    # tau = l delta: delta is 1 us, and the list grows from the first sender to all 16
    taus = [tau_ns(frame) for frame in sent]
    assert {t % 1000 for t in taus} == {0}
    assert taus[0] == 1000 or taus[0] < max(taus)
    assert max(taus) == 16_000
    assert taus == sorted(taus)
    assert {count(frame) for frame in sent} == {0}
    assert all(frame.data[BTH + 16 : BTH + 28] == bytes(12) for frame in sent)
    # a sender sees the same bytes arrive
    received = [f for f in read(tmp_path / "incast-1-0.pcap") if f.opcode == CNP]
    assert received
    assert {tau_ns(f) for f in received} <= set(taus)


def test_a_cnp_of_dolce_rc_has_its_count(tmp_path: Path) -> None:
    sent, report = cnps(tmp_path, {"name": "dolce-rc", "ratio": "count"})
    counts = [count(frame) for frame in sent]
    assert min(counts) >= 1
    assert sum(counts) <= report.marks
    assert {tau_ns(frame) for frame in sent} == {0}


@pytest.mark.parametrize("scheme", ["dcqcn", "dolce-rc"])
def test_other_cnps_are_empty(scheme: str, tmp_path: Path) -> None:
    sent, _ = cnps(tmp_path, scheme)
    assert {(tau_ns(frame), count(frame)) for frame in sent} == {(0, 0)}
