"""Reports through the socket: the numbers of the native engine, in a recording too."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend
from dcqcn_gym.extras.ns3.bridge import codec, report_codec
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb

SCENARIO = load_scenario("mini-fb-hadoop")
NATIVE_PEER = [sys.executable, str(Path(__file__).with_name("native_peer.py"))]


def read_recording(path: Path) -> list[tuple[str, bytes]]:
    """Return the (``"<"`` from the simulation or ``">"`` to it, message) pairs of a recording."""
    data = path.read_bytes()
    messages, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 1)
        messages.append((data[at : at + 1].decode(), data[at + 5 : at + 5 + size]))
        at += 5 + size
    return messages


def run(backend: Ns3Backend | NativeBackend) -> list[IntervalReport]:
    backend.open(SCENARIO, 4)
    backend.apply(SCENARIO.initial_setting())
    reports = [backend.advance() for _ in range(3)]
    backend.close()
    return reports


def test_socket_recording_and_native_give_the_same_reports(tmp_path: Path) -> None:
    expected = run(NativeBackend())
    assert run(Ns3Backend(command=NATIVE_PEER)) == expected
    recorded = Ns3Backend(command=NATIVE_PEER, record=tmp_path / "session")
    assert run(recorded) == expected
    states = [
        codec.decode(pb.EnvStateMsg, data)
        for direction, data in read_recording(tmp_path / "session")[1:]
        if direction == "<"
    ]
    told = [report_codec.decode_report(s) for s in states if s.report_lengths]
    assert told == expected  # a recording holds everything


def test_reports_stay_when_the_next_one_comes() -> None:
    first, second, _ = run(Ns3Backend(command=NATIVE_PEER))
    assert first.start_ps == 0
    assert second.start_ps == first.end_ps
