"""Reports through shared memory: same bytes as through the socket, and nothing that stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.backends.ns3 import Ns3Backend
from dcqcn_gym.envs.backends.ns3_bridge import codec, report_codec
from dcqcn_gym.envs.backends.ns3_bridge import ns3gym_pb2 as pb
from dcqcn_gym.envs.backends.ns3_bridge.errors import ProtocolError
from dcqcn_gym.envs.backends.ns3_bridge.link import read_recording
from dcqcn_gym.envs.backends.ns3_bridge.report_memory import ReportMemory
from dcqcn_gym.envs.scenario.scenario import load_scenario

SCENARIO = load_scenario("mini-fb-hadoop")
NATIVE_PEER = [sys.executable, str(Path(__file__).with_name("native_peer.py"))]


def run(backend: Ns3Backend | NativeBackend) -> list[IntervalReport]:
    backend.open(SCENARIO, 4)
    backend.apply(SCENARIO.initial_setting())
    reports = [backend.advance() for _ in range(3)]
    backend.close()
    return reports


def test_memory_socket_and_native_give_the_same_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.delattr(os, "memfd_create")
    assert run(Ns3Backend(command=NATIVE_PEER)) == expected


def test_reports_stay_when_the_next_one_comes() -> None:
    first, second, _ = run(Ns3Backend(command=NATIVE_PEER))
    assert first.start_ps == 0
    assert second.start_ps == first.end_ps


def test_it_grows_and_no_descriptor_stays() -> None:
    before = len(os.listdir("/proc/self/fd"))
    writer = ReportMemory.create()
    assert writer is not None
    reader = ReportMemory(os.dup(writer.descriptor))
    for size in (8, 1_000, 3_000_000, 16):
        writer.room(size)[:] = bytes([size % 251]) * size
        assert reader.read(size) == bytes([size % 251]) * size
    with pytest.raises(ProtocolError, match="is said to be in"):
        reader.read(100_000_000)
    for memory in (writer, reader):
        memory.close()
        memory.close()
    run(Ns3Backend(command=NATIVE_PEER))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_buffer_is_used_again_only_when_its_report_is_gone() -> None:
    memory = ReportMemory.create()
    assert memory is not None
    held = []
    for value in range(1, 7):  # more than are kept
        memory.room(1_000)[:] = bytes([value]) * 1_000
        held.append(memory.read(1_000))
    assert [bytes(view) for view in held] == [bytes([v]) * 1_000 for v in range(1, 7)]
    last = held.pop()
    owner = last.obj
    last.release()
    del last
    memory.room(900)[:] = b"x" * 900
    again = memory.read(900)
    assert again.obj is owner
    assert bytes(again) == b"x" * 900
    assert bytes(held[0]) == b"\x01" * 1_000
    memory.close()


def test_a_state_that_lies_about_the_memory_is_refused() -> None:
    memory = ReportMemory.create()
    assert memory is not None
    state = pb.EnvStateMsg(report_lengths=[1, 2], report_shared=True)
    with pytest.raises(ProtocolError, match="is said to be in 0 bytes"):
        report_codec.decode_report(state, memory)
    memory.room(24)
    with pytest.raises(ProtocolError, match="2 arrays"):
        report_codec.decode_report(state, memory)
    with pytest.raises(ProtocolError, match="0 bytes"):
        report_codec.decode_report(state)
    memory.close()
