"""Captures of the ns-3 backend are real RoCEv2 traffic: byte by byte, and to Wireshark."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import BackendError, ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend

SENDER, SWITCH = 1, 17


def incast() -> Scenario:
    """Return an incast that marks and pauses within 300 us."""
    scenario = load_scenario("incast")
    switch = scenario.switch.model_copy(update={"buffer_bytes": 4_600_000})
    return scenario.model_copy(update={"switch": switch})


def captured(scenario: Scenario, pcap: Path, length_ps: int = 300_000_000) -> IntervalReport:
    """Capture a scenario's first interval under its initial setting; return what it reports."""
    backend = Ns3Backend(pcap=pcap)
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    report = backend.advance(length_ps)
    backend.close()
    return report


def dissected(path: Path, fields: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what tshark says of the fields of every frame."""
    options = [item for name in fields for item in ("-e", name)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *options]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split("\t")) for line in out.splitlines()]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, IntervalReport]:
    folder = tmp_path_factory.mktemp("pcap")
    return folder, captured(incast(), folder / "incast")


@dataclass
class Frame:
    time_ns: int
    data: bytes

    @property
    def ether_type(self) -> int:
        return int.from_bytes(self.data[12:14], "big")

    @property
    def opcode(self) -> int:
        return self.data[42] if self.ether_type == 0x0800 else -1

    @property
    def ecn(self) -> int:
        return self.data[15] & 3


def read(path: Path) -> Iterator[Frame]:
    data = path.read_bytes()
    magic, *_, link_type = struct.unpack_from("<IHHiIII", data)
    assert (magic, link_type) == (0xA1B23C4D, 1)  # nanoseconds, Ethernet
    at = 24
    while at < len(data):
        seconds, nanos, kept, size = struct.unpack_from("<IIII", data, at)
        assert kept == size
        yield Frame(seconds * 10**9 + nanos, data[at + 16 : at + 16 + size])
        at += 16 + size


def invariant_crc(frame: bytes) -> bytes:
    """Return the ICRC: fields that a switch may change count as ones."""
    masked = bytearray(frame[14:-4])
    for i in (1, 8, 10, 11, 26, 27, 32):
        masked[i] = 0xFF
    return zlib.crc32(b"\xff" * 8 + masked).to_bytes(4, "little")


def checksum(header: bytes) -> int:
    total = sum(struct.unpack("!10H", header))
    return int((total & 0xFFFF) + (total >> 16))


def test_every_frame_is_rocev2_or_pfc(capture: tuple[Path, IntervalReport]) -> None:
    folder, _ = capture
    frames = list(read(folder / f"incast-{SENDER}-0.pcap"))
    assert frames
    for frame in frames:
        if frame.ether_type == 0x8808:
            assert len(frame.data) == 60
            assert frame.data[:6].hex() == "0180c2000001"
            assert frame.data[14:18].hex() == "01010008"  # class-based pause, priority 3
            continue
        assert frame.ether_type == 0x0800
        total, udp = struct.unpack_from("!H", frame.data, 16)[0], frame.data[34:42]
        assert len(frame.data) == 14 + total
        assert checksum(frame.data[14:34]) == 0xFFFF
        assert struct.unpack("!4H", udp)[1:3] == (4791, total - 20)
        assert frame.opcode in {0x00, 0x01, 0x02, 0x11, 0x81}
        assert frame.data[-4:] == invariant_crc(frame.data)
        sizes = {0x11: 62, 0x81: 74}
        assert len(frame.data) == sizes.get(frame.opcode, 1058)


def test_the_capture_agrees_with_the_report(capture: tuple[Path, IntervalReport]) -> None:
    folder, report = capture
    host_ports = [folder / f"incast-{h}-0.pcap" for h in range(17)]
    frames = [f for path in host_ports for f in read(path)]
    times = [f.time_ns for f in read(host_ports[SENDER])]
    assert times == sorted(times)
    assert times[-1] < 300_000
    opcodes = [f.opcode for f in frames]
    # a host's port sees each CNP that it sends or that reaches it
    assert opcodes.count(0x81) > report.cnps > 0
    pauses = [f for f in frames if f.ether_type == 0x8808 and f.data[24:26] == b"\xff\xff"]
    assert 0 < len(pauses) <= report.pauses
    receiver = list(read(host_ports[0]))
    marked = [f for f in receiver if f.ecn == 3]
    assert 0 < len(marked) <= report.marks
    assert all(f.ecn == 0 for f in receiver if f.opcode in (0x11, 0x81))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_dissects_everything(capture: tuple[Path, IntervalReport]) -> None:
    folder, _ = capture
    fields = ["frame.protocols", "infiniband.bth.opcode", "ip.dsfield.ecn", "macc.cbfc.enbv"]
    seen: set[tuple[str, ...]] = set()
    for path in (folder / f"incast-{SENDER}-0.pcap", folder / "incast-0-0.pcap"):
        seen |= set(dissected(path, fields))
        bad = subprocess.run(
            [
                "tshark",
                "-n",
                "-r",
                str(path),
                "-Y",
                "_ws.malformed || _ws.expert.severity == error",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert bad == ""
    roce = {row[1:3] for row in seen if "infiniband" in row[0]}
    assert {("0", "2"), ("1", "2"), ("1", "3"), ("17", "0"), ("129", "0")} <= roce
    assert any(row[3] in ("0x0008", "8") for row in seen if len(row) > 3)


def test_a_full_disk_is_an_error_that_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / f"full-{SENDER}-0.pcap").symlink_to("/dev/full")
    backend = Ns3Backend(pcap=tmp_path / "full")
    scenario = incast()
    backend.open(scenario, 1)  # the header of the file still fits into a buffer
    backend.apply(scenario.initial_setting())
    with pytest.raises(BackendError, match="capture file"):
        backend.advance(300_000_000)
    assert backend.process_id == 0


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"^scenario 'incast': captures need a prefix in a folder .* the capture file",
    ):
        Ns3Backend(pcap=tmp_path / "none" / "x").open(incast(), 1)


def test_captures_need_the_frame_sizes_of_rocev2(tmp_path: Path) -> None:
    scenario = incast()
    hpcc = scenario.model_copy(
        update={"wire": scenario.wire.model_copy(update={"profile": "hpcc"})}
    )
    with pytest.raises(ConfigError, match=r"^scenario 'incast': captures need the frame sizes"):
        Ns3Backend(pcap=tmp_path / "x").open(hpcc, 1)
