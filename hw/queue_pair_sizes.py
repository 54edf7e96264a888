"""Flow sizes from the counters that NICs have per queue pair."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.envs.backends.flow_log import Trigger
from dcqcn_gym.hw.collectors.collector import FlowWindow
from dcqcn_gym.hw.collectors.exporters import message_bytes
from dcqcn_gym.hw.drivers.mlx5_counters import PAIRS

Counters = Mapping[str, Mapping[str, int]]


class QueuePairSizes:
    """Device -> counters, interval by interval, into a distribution."""

    def __init__(self, tau_bytes: int, theta: float, begin: Counters) -> None:
        self._window = FlowWindow(tau_bytes)
        self._trigger = Trigger(theta)
        self._before = _pairs(begin)

    def close(self, counters: Counters) -> FlowSizeDistribution:
        """Return the distribution of the bytes that were sent since the last call.

        A pair whose counter went back is another one under the same number: it has sent what its
        counter says.
        """
        now = _pairs(counters)
        grown: dict[Hashable, float] = {}
        wire = 0
        for name, value in now.items():
            before = self._before.get(name, 0)
            sent = value - before if value >= before else value
            if sent:
                grown[name] = float(sent)
                wire += message_bytes(name[1], value)
        self._before = now
        return self._trigger.complete(self._window.close(grown, wire))


def _pairs(counters: Counters) -> dict[tuple[str, str], int]:
    return {
        (device, name): value
        for device, values in counters.items()
        for name, value in values.items()
        if name.startswith(PAIRS)
    }
