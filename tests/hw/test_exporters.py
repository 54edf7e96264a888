"""sFlow, IPFIX and queue pairs as monitors in simulation: the kit, and what they see."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from dcqcn_gym.envs.backends.flow_log import make_monitor
from dcqcn_gym.envs.monitors import FlowLog, MonitorContext
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.collectors.collector import FlowWindow
from dcqcn_gym.hw.collectors.exporters import message_bytes
from dcqcn_gym.testing.monitor_case import MS, MonitorCase


class TestSflow(MonitorCase):
    kind = "sflow"
    options: ClassVar[dict[str, Any]] = {"sample_one_in": 10}


class TestIpfix(MonitorCase):
    kind = "ipfix"
    options: ClassVar[dict[str, Any]] = {"active_us": 2000.0}


class TestQueuePairs(MonitorCase):
    kind = "queue-pairs"


def log(sizes: list[int], start: int = 0, tor: int = 0) -> FlowLog:
    size = np.array(sizes, dtype=np.int64)
    return FlowLog(start * MS, (start + 1) * MS, np.full(len(size), tor), np.arange(len(size)) + 1,
                   size, np.maximum(size // 1000, 1))  # fmt: skip


def monitor(kind: str, **options: Any) -> Any:
    return make_monitor(kind, options, MonitorContext(1, 2, 1_000_000, MS))


def test_samples_are_right_on_average() -> None:
    own = monitor("sflow", sample_one_in=50, delta=1000)
    rounds = 60
    for i in range(rounds):
        own.observe(log([200_000] * 10, i))
    so_far = [flow[0] for flow in own._window._flows.values()]
    assert np.mean(so_far) == pytest.approx(200_000 * rounds, rel=0.03)
    # 200 packets a flow and interval, one in 50: the spread is binomial
    spread = 50_000 * np.sqrt(200 * rounds / 50 * (1 - 1 / 50))
    assert 0.5 < np.std(so_far) / spread < 1.6


def test_every_sample_travels() -> None:
    own = monitor("sflow", sample_one_in=1)
    fsd = own.observe(log([3000, 1000]))
    sample = 8 + 32 + 8 + 16 + 56  # 54 bytes of packet, padded
    assert fsd.monitor_bytes == 28 + 4 * sample + 46  # one datagram and what is around it


def test_a_record_leaves_when_its_timer_ends() -> None:
    own = monitor("ipfix", active_us=3000.0, idle_us=2000.0)
    seen = [own.observe(log([400_000], i)) for i in range(3)]
    assert [f.bins.sum() for f in seen] == [0, 0, 1]
    assert seen[2].elephants == 1  # 1.2 MB in one record
    quiet = [own.observe(log([], 3 + i)) for i in range(2)]
    assert [f.bins.sum() for f in quiet] == [0, 0]
    own.observe(log([5000], 5))
    idle = [own.observe(log([], 6 + i)) for i in range(2)]
    assert [f.mice for f in idle] == [0, 1]


def test_pairs_are_exact_until_a_nic_has_too_many() -> None:
    own = monitor("queue-pairs", most_pairs=2)
    for i in range(3):
        fsd = own.observe(log([600_000, 1000, 9_000_000], i))
    assert (fsd.elephants, fsd.potential, fsd.mice) == (1, 1, 0)
    shares = own.elephant_shares(log([600_000, 1000, 9_000_000], 2))
    assert np.isnan(shares[2])
    assert fsd.untracked_flows == 3  # the third pair, in three intervals


def test_the_window_tells_its_cost_and_health() -> None:
    window = FlowWindow(tau_bytes=1_000_000, delta=2, most_flows=2)
    seen = [window.close(dict.fromkeys(names, 10.0), 0) for names in ("abc", "a", "", "")]
    assert [f.bins.sum() for f in seen] == [2, 1, 0, 0]  # "c" found no room
    assert [f.tracked_flows for f in seen] == [2, 2, 1, 0]
    assert [f.untracked_flows for f in seen] == [1, 1, 1, 1]
    assert [f.control_plane_bytes for f in seen] == [64, 64, 64, 64]  # the most so far


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**20, 2**62])
def test_bytes_of_a_figure_are_those_of_the_message(value: int) -> None:
    name = "qp/1234/tx_bytes"
    assert message_bytes(name, value) == len(pb.Figures(values={name: value}).SerializeToString())
