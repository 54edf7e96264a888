"""Captures of RoCE and of flow exports become records: bytes, starts, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import START_S, ipfix, netflow5, netflow9, pcap, pcapng, roce, sflow, udp

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.extras.traffic.captures import form_of_capture
from dcqcn_gym.extras.traffic.importing import Source, import_flows
from dcqcn_gym.extras.traffic.reading import read_records
from dcqcn_gym.extras.traffic.records import Record, Tally
from dcqcn_gym.extras.traffic.selection import OTHER_WITNESS

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
WRITE = [  # first, middle, last; then a write of one packet, a READ's response and an ACK
    (0, roce(A, B, 0x06, 100, 1024)),
    (1, roce(A, B, 0x07, 101, 1024)),
    (5, roce(B, A, 0x11, 101, 0)),
    (9, roce(A, B, 0x08, 102, 501)),
    (20, roce(A, B, 0x0A, 103, 64)),
    (30, roce(B, C, 0x10, 9, 4000)),
]
MESSAGES = [
    Record(A, B, 2549, 0, 9_000), Record(A, B, 64, 20_000, 20_000),
    Record(B, C, 4000, 30_000, 30_000),
]  # fmt: skip


def records(path: Path, data: bytes, form: str) -> tuple[list[Record], Tally]:
    path.write_bytes(data)
    assert form_of_capture(path) == form
    tally = Tally()
    return list(read_records(path, form, None, tally)), tally


def left_out(tally: Tally) -> dict[str, int]:
    """Return everything that was not taken, by reason."""
    found: dict[str, int] = {}
    for balance in tally.balances.values():
        found |= balance.left_out
    return found


def since_start(found: list[Record]) -> list[Record]:
    zero = START_S * 10**9
    return [
        r._replace(start_ns=r.start_ns - zero, end_ns=None if r.end_ns is None else r.end_ns - zero)
        for r in found
    ]


def transfers(found: list[Record]) -> list[tuple[str, str, int, int]]:
    """Return from, to, bytes and start."""
    return [record[:4] for record in since_start(found)]


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_messages_of_roce_begin_with_their_first_packet(tmp_path: Path, write: object) -> None:
    assert callable(write)
    found, tally = records(tmp_path / "a.pcap", write(WRITE), "roce")
    assert since_start(found) == MESSAGES
    assert left_out(tally) == {"ACKs": 1}


def test_nanoseconds_are_exact(tmp_path: Path) -> None:
    frames = [(123_456_789, WRITE[4][1])]
    found, _ = records(tmp_path / "a.pcap", pcap(frames, magic=0xA1B23C4D), "roce")
    assert since_start(found) == [Record(A, B, 64, 123_456_789, 123_456_789)]


def test_what_was_sent_again_counts_once_and_what_is_missing_is_said(tmp_path: Path) -> None:
    frames = [WRITE[0], WRITE[1], (2, WRITE[1][1]), (3, roce(A, B, 0x08, 104, 8))]
    found, tally = records(tmp_path / "a.pcap", pcap(frames), "roce")
    assert transfers(found) == [(A, B, 2056, 0)]
    assert left_out(tally) == {"packets were sent or captured again": 1}
    assert tally.notes == {"packets are not in the capture, by their numbers": 2}


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    frames = [(0, roce(A, B, 0x06, 2**24 - 1, 1000)), (1, roce(A, B, 0x08, 0, 1000))]
    found, tally = records(tmp_path / "a.pcap", pcap(frames), "roce")
    assert transfers(found) == [(A, B, 2000, 0)]
    assert tally.lines() == []


def test_a_message_that_goes_on_at_the_end_is_there_and_said(tmp_path: Path) -> None:
    found, tally = records(tmp_path / "a.pcap", pcap(WRITE[:2]), "roce")
    assert transfers(found) == [(A, B, 2048, 0)]
    assert tally.notes == {"messages go on when the capture ends": 1}


EXPORTED = [(A, B, 10_440, 10, 250), (B, C, 1_044_000, 1000, 9_000)]
"""RoCE's IPv4 headers are 44 bytes a packet, so payloads are 10,000 and 1,000,000."""


@pytest.mark.parametrize("export", [netflow5, netflow9, ipfix])
def test_exports_have_payload_and_their_own_start(tmp_path: Path, export: object) -> None:
    assert callable(export)
    frame = udp("192.0.2.1", "192.0.2.9", 2055, 2055, export(EXPORTED))
    found, tally = records(tmp_path / "a.pcap", pcap([(10**7, frame)]), "netflow")
    assert transfers(found) == [
        (A, B, 10_000, 250_000_000), (B, C, 1_000_000, 9_000_000_000),
    ]  # fmt: skip
    assert left_out(tally) == {}


def test_a_flow_that_two_switches_export_counts_once(tmp_path: Path) -> None:
    frames = [
        (i, udp(f"192.0.2.{i}", "192.0.2.9", 2055, 2055, netflow5(EXPORTED[:1]))) for i in (1, 2)
    ]
    (tmp_path / "a.pcap").write_bytes(pcap(frames))
    source = Source(tmp_path / "a.pcap", "netflow")
    span, written = import_flows(source, tmp_path / "out", lambda *_: None)
    assert written.flows == 1
    assert left_out(span.tally) == {OTHER_WITNESS: 1}


def test_other_protocols_are_counted(tmp_path: Path) -> None:
    frame = udp("192.0.2.1", "192.0.2.9", 2055, 2055, netflow5(EXPORTED, protocol=6))
    found, tally = records(tmp_path / "a.pcap", pcap([(0, frame)]), "netflow")
    assert not found
    assert left_out(tally) == {"records are of other protocols than RoCE": 2}


def test_samples_stand_for_their_rate_until_a_flow_is_silent(tmp_path: Path) -> None:
    sample = roce(A, B, 0x07, 1, 1000)
    frames = [
        (at, udp("192.0.2.1", "192.0.2.9", 6343, 6343, sflow("192.0.2.1", [sample] * n, 512)))
        for at, n in ((0, 2), (500_000, 1), (5_000_000, 1))
    ]
    found, _ = records(tmp_path / "a.pcap", pcap(frames), "sflow")
    assert transfers(found) == [(A, B, 3 * 512_000, 0), (A, B, 512_000, 5_000_000_000)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pcap([(0, udp(A, B, 53, 53, b"name"))]), "hold no RoCE"),
        (pcap(WRITE, link=147), "link type 147; expected Ethernet"),
        (pcap(WRITE)[:10], "no capture that can be read"),
        (b"\x0a\x0d\x0d\x0a" + bytes(8), "hold no RoCE"),
    ],
)
def test_what_is_no_such_capture_is_a_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.pcap").write_bytes(data)
    with pytest.raises(ConfigError, match=words):
        form_of_capture(tmp_path / "a.pcap")


def test_a_capture_that_breaks_off_keeps_what_was_whole(tmp_path: Path) -> None:
    found, tally = records(tmp_path / "a.pcap", pcap(WRITE)[:-3], "roce")
    assert since_start(found) == MESSAGES[:2]
    assert list(tally.notes) == ["places where the capture breaks off"]
