"""Datagrams and messages from a stranger: collectors read them, agents answer them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzz_harness import damage

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.flow_export.netflow import FlowRecord, TemplateReader, encode_ipfix
from dcqcn_gym.core.flow_export.packets import classify, header_of
from dcqcn_gym.core.flow_export.sflow import FlowSample, encode, parse
from dcqcn_gym.core.knobs import NIC_KNOBS, default_setting
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.server import parsed
from dcqcn_gym.hw.agent.service import METHODS, AgentService
from dcqcn_gym.hw.collectors.collector import DATAGRAMS, Collector, FlowWindow
from dcqcn_gym.hw.drivers import Surroundings, make_driver
from dcqcn_gym.hw.fabric.devices import PlayedNic
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.runner import RecordedRunner
from dcqcn_gym.hw.transaction import Guard
from hand_made import encode_v9

_KEY = (b"\n\x00\x00\x01", b"\n\x00\x00\x02", 0xC123, 77)
_ODD = (0, 1, 3, 4, 0xFF, 0xFFFF, 2**31, 2**32 - 1)


def _sampled(random: Random) -> bytes:
    one = FlowSample(1, 100, 1090, header_of(_KEY, 1000)[: random.choice((54, 54, 54, 20, 3, 0))])
    return encode(b"\n\x00\x00\x09", 1, [one] * random.randrange(6) or [one])[0]


def _worded(random: Random, data: bytes) -> bytes:
    """Return the bytes with one word replaced by a number that lengths must not believe."""
    at = 4 * random.randrange(max(len(data) // 4, 1))
    return data[:at] + random.choice(_ODD).to_bytes(4, "big") + data[at + 4 :]


def _spoilt(random: Random, data: bytes) -> bytes:
    how = random.randrange(8)
    if how == 0:
        return data
    if how == 1:
        return random.randbytes(random.randrange(1500))
    return _worded(random, data) if how < 5 else damage(random, data)


def sflow(random: Random, folder: Path) -> None:
    """sFlow datagrams with words and bytes changed; a refused one leaves no trace."""
    data = _spoilt(random, _sampled(random))
    collector = Collector("sflow", FlowWindow(1_000_000))
    collector.feed(data, "x")
    seen = collector.close()
    refused = collector.tally.of(DATAGRAMS).left_out
    assert seen.elephants + seen.potential + seen.mice <= 0 or not refused
    collector.tally.check()
    for sample in parse(data).samples:
        classify(sample.header)


def headers(random: Random, folder: Path) -> None:
    """The first bytes of packets, cut anywhere, tagged, of any protocol."""
    data = header_of(_KEY, random.randrange(4096))
    if random.random() < 0.3:
        data = data[:12] + b"\x81\x00\x00\x05" * random.randrange(1, 4) + data[12:]
    packet = classify(_spoilt(random, data))
    assert isinstance(packet, str) or 0 <= packet.payload_bytes < 2**16


def netflow(random: Random, folder: Path) -> None:
    """Datagrams of NetFlow v9 and IPFIX, several of one exporter in a row."""
    reader = TemplateReader()
    make = random.choice((encode_v9, encode_ipfix))
    record = FlowRecord(*_KEY[:2], 0xC123, 4791, 17, 10**6, 900, 1)
    for i in range(3):
        data = make([record] * random.randrange(1, 60), i)[0]
        found = reader.parse(_spoilt(random, data) if i else data, "x")
        assert len(found) <= len(data)


@cache
def _agent() -> tuple[AgentService, Guard, Any]:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-agent-"))
    PlayedNic(folder, default_setting())
    around = Surroundings(folder, RecordedRunner(folder / "commands"))
    driver = make_driver("mlx5", dict(PlayedNic.settings), around, "fuzz")
    guard = Guard(driver, Journal(folder / "journal", 1 << 16))
    guard.start()
    return AgentService("nic-0", driver, guard, lambda: 0), guard, driver


def messages(random: Random, folder: Path) -> None:
    """Messages to an agent, in any order; its device never holds what is not legal."""
    service, guard, driver = _agent()
    method = random.choice(list(METHODS))
    name = random.choice(("a", "b", "../x", ""))
    knobs = {random.choice(NIC_KNOBS): random.choice((0.0, 1.0, 50.0, -1.0, 1e300, float("nan")))}
    target = pb.Target(port=random.choice(("", "", "eth9")), knobs=knobs)
    good = {
        pb.Wanted: pb.Wanted(transaction=name, who="x", why="y", targets=[target]),
        pb.Trial: pb.Trial(transaction=name, revert_after_s=random.choice((1.0, 0.0, 1e9))),
        pb.Named: pb.Named(transaction=name, who="x"),
        pb.Switch: pb.Switch(on=False, who="x"),
        pb.Interval: pb.Interval(ms=random.choice((1.0, 0.0, float("inf")))),
        pb.Nothing: pb.Nothing(),
        pb.Ask: pb.Ask(interval=random.choice((0, 5, 2**64 - 1))),
        pb.LoadJob: random.choice(
            (
                pb.LoadJob(program="ib_write_bw", options={"bytes": "1", "peer": name}),
                pb.LoadJob(
                    program="rdma_write_flows",
                    options={"own": "0"},
                    flows=pb.Flows(
                        peers=["a", name],
                        seconds=random.choice((1.0, float("nan"))),
                        to=[random.choice((0, 1, 9))],
                        bytes=[random.choice((0, 5))],
                        at_us=[7],
                    ),
                ),
            )
        ),
    }[METHODS[method][0]].SerializeToString()
    data = damage(random, good) if random.random() < 0.6 else good
    try:
        getattr(service, method)(parsed(METHODS[method][0], data))
    finally:
        assert guard.status.state in ("idle", "staged", "applied", "stopped")
        held = driver.setting()[""]
        default_setting().replace(held).check(100e9)
        if random.random() < 0.05:
            _calm(service)


def _calm(service: AgentService) -> None:
    """Take back what is on trial, so that later cases can stage again."""
    service.Stop(pb.Switch(on=False, who="x"))
    try:
        service.Rollback(pb.Named(who="x"))
    except DcqcnGymError:
        return
