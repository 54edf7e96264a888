"""What collectors read: bytes worked out by hand, a dissector that is not ours, bad datagrams."""

from __future__ import annotations

import json
import re
import shutil
import socket
import struct
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.flow_export.fields import DatagramError
from dcqcn_gym.core.flow_export.netflow import (
    FlowRecord,
    TemplateReader,
    encode_ipfix,
)
from dcqcn_gym.core.flow_export.packets import OVERHEAD, RocePacket, classify, header_of
from dcqcn_gym.core.flow_export.sflow import FlowSample, encode, parse
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.backends.report_dict import fsd_from_dict
from dcqcn_gym.extras.traffic.reading import read_records
from dcqcn_gym.extras.traffic.records import Tally
from dcqcn_gym.hw.collectors.capture import Capture
from dcqcn_gym.hw.collectors.collector import Collector, FlowWindow
from hand_made import encode_v9

KEY = (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]), 0xC123, 77)
RECORD = FlowRecord(*KEY[:2], 0xC123, 4791, 17, 10_440, 10, 1)
SFLOW = bytes.fromhex(
    "00000005 00000001 0a000009 00000000 00000007 00001388 00000002"  # v5, IPv4, sequence 7
    "00000002 00000008 00000001 00000002"  # a counter sample: stepped over
    "00000001 0000007c 00000001 03000004 00000064 000003e8 00000000 00000001 00000002 00000002"
    "000003e9 00000004 deadbeef"  # a switch's extended record: stepped over
    "00000001 00000048 00000001 00000442 00000004 00000036"  # Ethernet, 1090 bytes, 54 of them
    "000000000000 000000000000 0800"
    "456a 0418 0000 4000 40 11 0000 0a000001 0a000002"  # IPv4, 1048 bytes, UDP
    "c123 12b7 0404 0000"
    "07 00 ffff 0000004d 00000000 0000"
)  # BTH: RDMA WRITE middle, queue pair 77, then two bytes of padding


def test_a_datagram_by_hand() -> None:
    found = parse(SFLOW)
    assert (found.agent, found.sequence) == (bytes([10, 0, 0, 9]), 7)
    (sample,) = found.samples
    assert (sample.source, sample.rate, sample.frame_bytes) == (4, 100, 1090)
    packet = classify(sample.header)
    assert isinstance(packet, RocePacket)
    assert (packet.key, packet.payload_bytes) == (KEY, 1048 - 20 - 8 - 12 - 4)


def test_what_is_made_is_read_back_in_small_datagrams() -> None:
    samples = [FlowSample(3, 512, 1000 + i + OVERHEAD, header_of(KEY, 1000 + i)) for i in range(40)]
    made = encode(KEY[0], 5, samples)
    assert len(made) > 2
    assert all(len(one) <= 1400 for one in made)
    read = [parse(one) for one in made]
    assert [d.sequence for d in read] == list(range(5, 5 + len(made)))
    assert [s for d in read for s in d.samples] == samples


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d[:-1], "were announced"),
        (lambda d: d + b"\0", "left over"),
        (lambda d: b"\0\0\0\4" + d[4:], "version 4; expected 5"),
        (lambda d: d[:4] + b"\0\0\0\3" + d[8:], "type 3"),
        (lambda d: d[:24] + b"\xff\xff\xff\xff" + d[28:], "were announced"),
        (lambda d: d.replace(bytes.fromhex("00000064000003e8"), bytes(8)), "rate of 0"),
        (lambda d: d.replace(b"\0\0\4\0\0\0\x36", b"\0\0\4\0\0\0\x3f"), "were announced"),
        (lambda d: b"", "were announced"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_no_datagram(change: object, words: str) -> None:
    assert callable(change)
    with pytest.raises(DatagramError, match=words):
        parse(change(SFLOW))
    collector = Collector("sflow", FlowWindow(10))
    collector.feed(SFLOW, "x")
    collector.feed(change(SFLOW), "x")
    assert (collector.datagrams, collector.tally.of("datagrams").taken) == (2, 1)
    collector.tally.check()
    assert collector.close().elephants == 1  # the good one counts, the other not at all


@pytest.mark.parametrize(
    ("opcode", "extra"), [(0x0C, "READ"), (0x11, "ACK"), (0x81, "CNP"), (0x06, 16), (0x07, 0)]
)
def test_only_data_counts_and_its_payload_alone(opcode: int, extra: int | str) -> None:
    header = bytearray(header_of(KEY, 500))
    header[42] = opcode
    packet = classify(bytes(header))
    if isinstance(extra, str):
        assert isinstance(packet, str)
        assert extra in packet
    else:
        assert isinstance(packet, RocePacket)
        assert packet.payload_bytes == 500 - extra


def test_tags_and_the_newer_protocol() -> None:
    plain = header_of(KEY, 100)
    tagged = plain[:12] + bytes.fromhex("88a80003 81000004") + plain[12:]
    assert classify(tagged) == classify(plain)
    udp = plain[34:]
    newer = plain[:12] + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, 124, 17, 64)
    packet = classify(newer + bytes(15) + b"\1" + bytes(15) + b"\2" + udp)
    assert isinstance(packet, RocePacket)
    assert (packet.key[0][-1], packet.payload_bytes) == (1, 100)


def test_templates_come_first_and_belong_to_their_exporter() -> None:
    reader = TemplateReader()
    message = encode_ipfix([RECORD, RECORD], 1)[0]
    data_only = message[:2] + struct.pack(">H", len(message) - 36) + message[4:16] + message[52:]
    assert reader.parse(data_only, "a") == []
    assert reader.parse(message, "a") == [RECORD] * 4  # those that waited, too
    assert reader.parse(data_only, "a") == [RECORD, RECORD]
    assert reader.parse(data_only, "b") == []  # another exporter's templates are its own
    assert TemplateReader().parse(encode_v9([RECORD], 1)[0], "a") == [RECORD]


def test_fields_of_enterprises_and_of_variable_length_are_stepped_over() -> None:
    template = bytes.fromhex(
        "0100 0005 0008 0004 000c 0004 0052 ffff 0001 0004 8064 0002 00001f4c".replace(" ", "")
    )
    row = bytes([10, 0, 0, 1, 10, 0, 0, 2, 3]) + b"eth" + struct.pack(">IH", 99, 7)
    sets = struct.pack(">HH", 2, 4 + len(template)) + template
    sets += struct.pack(">HH", 256, 4 + len(row)) + row
    message = struct.pack(">HHIII", 10, 16 + len(sets), 0, 1, 0) + sets
    (record,) = TemplateReader(sampling=50).parse(message, "x")
    assert (record.source, record.octets, record.rate) == (KEY[0], 99, 50)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (struct.pack(">HH", 2, 3), "a length of 3"),
        (struct.pack(">HHHHHH", 2, 12, 256, 1, 8, 0), "records without a byte"),
        (struct.pack(">HHHH", 2, 8, 256, 9), "were announced"),
        (struct.pack(">HHHH", 2, 8, 12, 1), "expected a number from 256 on"),
        (struct.pack(">HHHH", 2, 8, 256, 999), "999 fields"),
        (struct.pack(">HH", 256, 400), "were announced"),
    ],
)
def test_a_set_that_contradicts_itself_is_no_message(sets: bytes, words: str) -> None:
    reader = TemplateReader()
    good = encode_ipfix([RECORD], 1)[0]
    reader.parse(good, "x")
    bad = struct.pack(">HHIII", 10, 16 + len(sets), 0, 1, 0) + sets
    with pytest.raises(DatagramError, match=words):
        reader.parse(bad, "x")
    assert reader.parse(good, "x") == [RECORD]
    with pytest.raises(DatagramError, match="it says"):
        reader.parse(good + b"\0", "x")


def test_templates_are_bounded() -> None:
    reader = TemplateReader()
    for domain in range(3000):
        reader.parse(_only_template(domain), "x")
    assert len(reader._templates) == 1024


def _only_template(domain: int) -> bytes:
    message = encode_ipfix([RECORD], 1, domain)[0][:52]
    return message[:2] + struct.pack(">H", len(message)) + message[4:]


def test_payload_is_scaled_by_the_rate_and_classed_by_what_was_sent_so_far() -> None:
    collector = Collector("sflow", FlowWindow(tau_bytes=300_000, delta=2))
    one = encode(KEY[0], 1, [FlowSample(1, 100, 1070, header_of(KEY, 1000))])[0]
    states = []
    for _ in range(4):
        collector.feed(one, "x")
        fsd = collector.close()
        states.append((fsd.elephants, fsd.potential, fsd.mice, fsd.weighted_elephants))
    third = pytest.approx(2 / 3)
    assert states == [(0, 0, 1, 0), (0, 1, 0, third), (1, 0, 0, 1), (1, 0, 0, 1)]
    for _ in range(2):
        collector.close()
    collector.feed(one, "x")
    assert collector.close().mice == 1  # forgotten meanwhile


def test_records_count_payload_of_roce_alone() -> None:
    other = FlowRecord(*KEY[:2], 443, 443, 6, 10**9, 1, 1)
    collector = Collector("ipfix", FlowWindow(tau_bytes=10_000))
    for made in (encode_ipfix([RECORD, other], 1), encode_v9([other], 1)):
        collector.feed(made[0], "x")
    fsd = collector.close()
    assert (fsd.elephants, fsd.mice) == (1, 0)  # 10,440 - 10 x 44 = 10,000 bytes, exactly tau


def test_what_nobody_announced_is_scaled_by_the_option_and_said() -> None:
    collector = Collector("ipfix", FlowWindow(tau_bytes=1_000_000), sampling=100)
    v9 = encode_v9([replace(RECORD, rate=1)], 1)[0]
    collector.feed(v9, "x")
    fsd = collector.close()
    assert (fsd.elephants, collector.unannounced) == (1, 1)  # 10,000 bytes of payload, times 100


def test_totals_count_what_was_added_since_the_last_record() -> None:
    collector = Collector("ipfix", FlowWindow(tau_bytes=25_000))
    states = []
    for octets in (10_440, 20_880, 31_320):  # 10, 20 and 30 packets of 1,000 bytes so far
        collector.feed(totals(octets, octets // 1044), "x")
        states.append(collector.close().elephants)
    assert states == [0, 0, 1]  # the sum of totals would be one at the second


def totals(octets: int, packets: int) -> bytes:
    """An IPFIX message of octetTotalCount and packetTotalCount (85, 86) with their template."""
    fields = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (85, 8), (86, 8)]
    template = struct.pack(">HH", 256, len(fields))
    template += b"".join(struct.pack(">HH", *field) for field in fields)
    record = KEY[0] + KEY[1] + struct.pack(">HHBQQ", 7, 4791, 17, octets, packets)
    sets = struct.pack(">HH", 2, 4 + len(template)) + template
    sets += struct.pack(">HH", 256, 4 + len(record)) + record
    return struct.pack(">HHIII", 10, 16 + len(sets), 0, 0, 0) + sets


def test_records_and_samples_left_out_have_a_reason() -> None:
    other = FlowRecord(*KEY[:2], 443, 443, 6, 10**9, 1, 1)
    collector = Collector("ipfix", FlowWindow(tau_bytes=10_000))
    collector.feed(encode_ipfix([RECORD, other], 1)[0], "x")
    collector.tally.check()
    assert collector.tally.of("records").left_out == {
        "records are of other protocols than RoCE": 1,
    }
    headerless = Collector("sflow", FlowWindow(tau_bytes=10_000))
    broken = encode(KEY[0], 1, [FlowSample(1, 100, 1070, header_of(KEY, 1000)[:20])])[0]
    headerless.feed(broken, "x")
    headerless.tally.check()
    assert headerless.tally.of("samples").left_out.total() == 1


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize(
    ("port", "datagram", "fields", "expected"),
    [
        (6343, encode(KEY[0], 7, [FlowSample(4, 100, 1066, header_of(KEY, 1000))])[0],
         ("sflow_245.version", "sflow_245.sequence_number", "sflow.flow_sample.sampling_rate",
          "infiniband.bth.destqp"), ("5", "7", "100", "0x00004d")),
        (4739, encode_ipfix([RECORD], 7)[0],
         ("cflow.version", "cflow.srcaddr", "cflow.octets", "cflow.packets"),
         ("10", "10.0.0.1", "10440", "10")),
        (2055, encode_v9([RECORD], 7)[0],
         ("cflow.version", "cflow.srcaddr", "cflow.octets", "cflow.packets"),
         ("9", "10.0.0.1", "10440", "10")),
    ],
)  # fmt: skip
def test_another_dissector_reads_the_same(
    port: int, datagram: bytes, fields: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "one.pcap"
    ip = struct.pack(">BBHIBBH4s4s", 0x45, 0, 28 + len(datagram), 0, 64, 17, 0, *KEY[:2])
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 9, port, 8 + len(datagram), 0)
    frame += datagram
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    file.write_bytes(head + struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
    words = ["tshark", "-r", str(file), "-T", "fields", "-d", f"udp.port=={port},"
             + ("sflow" if port == 6343 else "cflow")]  # fmt: skip
    for name in fields:
        words += ["-e", name]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = done.stdout.rstrip("\n").split("\t")
    assert tuple(found) == expected


@pytest.mark.parametrize("given", ["x", "192.0.2", "192.0.2.1:6343", ""])
def test_an_exporter_is_an_address(tmp_path: Path, given: str) -> None:
    words = ["hw", "collect", "sflow", "--out", str(tmp_path / "fsd.json"), "--exporter", given]
    with pytest.raises(ConfigError, match="expected one such as 192"):
        CliRunner().invoke(app, [*words, "--intervals", "1"], catch_exceptions=False)


def test_the_command_keeps_what_datagrams_say(tmp_path: Path) -> None:
    out = tmp_path / "fsd.json"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    datagram = encode(KEY[0], 1, [FlowSample(1, 2000, 1070, header_of(KEY, 1000))])[0]
    done = threading.Event()

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            while not done.wait(0.02):
                for data in (datagram, datagram[:-3]):
                    link.sendto(data, ("127.0.0.1", port))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        words = ["hw", "collect", "sflow", "--listen", f"127.0.0.1:{port}", "--out", str(out),
                 "--interval-ms", "300", "--intervals", "2",
                 "--capture", str(tmp_path / "kept.pcap")]  # fmt: skip
        result = CliRunner().invoke(app, words)
    finally:
        done.set()
        sender.join()
    assert result.exit_code == 0, result.output
    assert "left out, most: datagrams are none of that form 'sFlow" in result.output
    assert re.search(r"of \d+ datagrams \d+ were taken and \d+ left out", result.output)
    found = json.loads(out.read_text())
    assert found["sequence"] == 2
    fsd = fsd_from_dict(found["fsd"])
    assert fsd.elephants == 1  # 2,000 samples' worth of 1,000 bytes
    assert fsd.monitor_bytes > 0
    with pytest.raises(ConfigError, match="cannot listen"):
        CliRunner().invoke(app, [*words[:4], "nowhere", *words[5:]], catch_exceptions=False)
    tally = Tally()
    records = list(read_records(tmp_path / "kept.pcap", "sflow", None, tally))
    assert {(record.source, record.target) for record in records} == {("10.0.0.1", "10.0.0.2")}
    assert count(record.bytes for record in records) >= 2_000_000
    assert tally.of("frames").left_out  # those that were cut off
    (tmp_path / "other").write_text("x" * 24)
    with pytest.raises(ConfigError, match="not a capture of this command"):
        Capture(tmp_path / "other")
