"""What a scheme says in its CNPs stands in the bytes of a capture."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_ns3_pcap import Frame, captured, dissected, invariant_crc, read

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend

FIRST, MIDDLE, LAST, ONLY, ACKNOWLEDGE, CNP = 0x00, 0x01, 0x02, 0x04, 0x11, 0x81
BTH = 14 + 20 + 8


def cnps(folder: Path, scheme: object) -> tuple[list[Frame], IntervalReport]:
    """Return every CNP that the receiver of an incast of 16 sends in 300 us, and the report."""
    values = load_scenario("incast").model_dump(mode="json", exclude_unset=True)
    scenario = Scenario.model_validate({**values, "scheme": scheme, "initial": "dcqcn-plus"})
    report = captured(scenario, folder / "incast")
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


def word(frame: Frame, at: int) -> int:
    """Return the low 24 bits of a word of the headers after UDP: QP (4), PSN (8), MSN (12)."""
    return int.from_bytes(frame.data[BTH + at + 1 : BTH + at + 4], "big")


def between(scenario: Scenario, folder: Path, length_ps: int) -> tuple[list[Frame], list[Frame]]:
    """Return the data that host 1 sends and the ACKs that host 0 returns, of 17 hosts or fewer."""
    captured(scenario, folder / "run", length_ps)
    address = [bytes([11, 0, 0, host + 1]) for host in (0, 1)]
    sent = [
        f
        for f in read(folder / "run-1-0.pcap")
        if f.opcode in (FIRST, MIDDLE, LAST, ONLY) and f.data[30:34] == address[0]
    ]
    acks = [
        f
        for f in read(folder / "run-0-0.pcap")
        if f.opcode == ACKNOWLEDGE and f.data[30:34] == address[1]
    ]
    assert len(sent) > 50 < len(acks)
    return sent, acks


def by_pair(frames: list[Frame]) -> dict[int, list[Frame]]:
    pairs: dict[int, list[Frame]] = {}
    for frame in frames:
        pairs.setdefault(word(frame, 4), []).append(frame)
    return pairs


def check_messages(sent: list[Frame], acks: list[Frame], packets: int) -> None:
    """Check every opcode and MSN of a queue pair whose messages have so many packets each."""
    place = {0: FIRST, packets - 1: LAST} if packets > 1 else {0: ONLY}
    assert [f.opcode for f in sent] == [place.get(word(f, 8) % packets, MIDDLE) for f in sent]
    # a NAK asks for the packet of its PSN, an ACK has all up to it
    had = [word(f, 8) + (f.data[BTH + 12] & 0x60 == 0) for f in acks]
    assert [word(f, 12) for f in acks] == [n // packets for n in had]


@pytest.mark.parametrize(
    ("bytes_", "packets"), [(3000, 3), pytest.param(1000, 1, marks=pytest.mark.slow)]
)
def test_the_messages_of_a_kept_queue_pair_are_told_apart(
    bytes_: int, packets: int, tmp_path: Path
) -> None:
    values = load_scenario("osu-alltoall-16").model_dump(mode="json", exclude_unset=True)
    [workload] = values["workloads"]
    few = {**workload, "bytes": bytes_, "messages": 12, "connections": 2}
    sent, acks = between(
        Scenario.model_validate({**values, "workloads": [few]}), tmp_path, 200_000_000
    )
    pairs, answers = by_pair(sent), by_pair(acks)
    assert len(pairs) == 2
    for qp, frames in pairs.items():
        assert max(word(f, 8) for f in frames) >= 6 * packets  # more than one round
        check_messages(frames, answers[qp], packets)


def test_a_packet_sent_again_keeps_its_opcode(tmp_path: Path) -> None:
    sent, acks = between(load_scenario("lossy-incast"), tmp_path, 1_000_000_000)
    assert by_pair(sent)
    for qp, frames in by_pair(sent).items():
        numbers = [word(f, 8) for f in frames]
        assert len(set(numbers)) < len(numbers)  # the switch dropped some
        packets = 977  # 1 MB in packets of 1024 B
        check_messages(frames, by_pair(acks)[qp], packets)


def test_a_cnp_that_outlives_its_queue_pair_keeps_its_addresses(tmp_path: Path) -> None:
    """A CNP of 200 us comes when its slot has been another pair's for rounds."""
    values = load_scenario("incast").model_dump(mode="json", exclude_unset=True)
    both = [{"kind": "incast", "bytes": 20_000, "dst": dst, "off_us": 1.0} for dst in (0, 1)]
    scenario = Scenario.model_validate(
        {**values, "topology": {"kind": "single-switch", "hosts": 9}, "workloads": both}
        | {"cnp": {"delay_us": 200.0}}
    )
    backend = Ns3Backend(pcap=tmp_path / "run")
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting().replace({"kmin": 1.0, "kmax": 2.0, "pmax": 1.0}))
    backend.advance(600_000_000)
    backend.close()
    seen = 0
    for host in range(9):
        for frame in read(tmp_path / f"run-{host}-0.pcap"):
            seen += frame.opcode == CNP
            if frame.opcode >= 0:
                leaves = frame.data[9] == host  # the MAC address of its sender
                address = frame.data[26:30] if leaves else frame.data[30:34]
                assert address == bytes([11, 0, 0, host + 1])
    assert seen > 50


LOSSLESS, LOSSY = 3, 0
ROCE_DATA = {str(opcode) for opcode in (FIRST, MIDDLE, LAST, ONLY)}
MARKS = {
    # by hand, of priority and kind: DSCP, and the ECN fields that are seen
    (LOSSLESS, "data"): (24, {2, 3}),  # its class says 24; ECT(0), and CE where a switch marked it
    (LOSSLESS, "ACK"): (48, {0}),  # ahead of all, as the network's control
    (LOSSLESS, "CNP"): (48, {0}),  # DSCP 48 is priority 6
    (1, "data"): (10, {2, 3}),  # lossy, of RoCE
    (LOSSY, "data"): (8, {0}),  # TCP here knows no ECN
    (LOSSY, "ACK"): (8, {0}),  # in its class
}


def three_classes() -> Scenario:
    """Return SONiC's priorities: lossless 3 beside lossy 0 and 1; the senders are 1 to 7."""
    incast = {"kind": "incast", "bytes": 200_000, "dst": 0}
    senders = {LOSSLESS: [1, 2, 3], 1: [4, 5], LOSSY: [6, 7]}
    return Scenario.model_validate(
        {
            "topology": {"kind": "single-switch", "hosts": 8},
            "switch": {"lossless": [3, 4]},
            "classes": [
                {"priority": LOSSLESS, "weight": 2, "dscp": 24, "ecn": [10_000, 40_000, 1.0]},
                {"priority": 1, "dscp": 10, "ecn": [10_000, 40_000, 1.0]},
                {"priority": LOSSY, "transport": "tcp", "alpha": 1.0, "dscp": 8},
            ],
            "workloads": [
                {**incast, "priority": priority, "hosts": hosts}
                for priority, hosts in senders.items()
            ],
        }
    )


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_sees_the_marks_of_each_class(tmp_path: Path) -> None:
    report = captured(three_classes(), tmp_path / "run")
    assert report.marks > 0 < report.cnps
    fields = ("ip.src", "ip.dst", "infiniband.bth.opcode", "ip.dsfield.dscp", "ip.dsfield.ecn")
    found: dict[tuple[int, str], tuple[set[int], set[int]]] = {}
    rows = [row for row in dissected(tmp_path / "run-0-0.pcap", fields) if row[2]]
    for source, target, opcode, dscp, ecn in rows:  # the others are pause frames
        kind = "data" if opcode in ROCE_DATA else {"17": "ACK", "129": "CNP"}[opcode]
        host = int((source if kind == "data" else target).rpartition(".")[2]) - 1
        priority = LOSSLESS if host <= 3 else 1 if host <= 5 else LOSSY
        marks = found.setdefault((priority, kind), (set(), set()))
        marks[0].add(int(dscp))
        marks[1].add(int(ecn))
    del found[1, "ACK"], found[1, "CNP"]  # as those of priority 3
    assert found == {key: ({dscp}, ecn) for key, (dscp, ecn) in MARKS.items()}
