"""The base class of monitors in Python: from the flow log of an interval to a distribution.

.. code-block:: python

    class Sizes(FlowMonitor):
        name = "sizes"
        summary = "every flow by what it sent in the interval"

        def observe(self, log: FlowLog) -> FlowSizeDistribution:
            shares = (log.payload_bytes >= self.context.tau_bytes).astype(float)
            return summarise(log.payload_bytes, shares, monitor_bytes=8 * len(log.key))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.interval import FSD_BINS, FlowSizeDistribution

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_FIRST_BIN_ENDS = 11
"""The first bin holds flows below 2^11 bytes; the others double."""


@dataclass(frozen=True)
class FlowLog:
    """What the ToRs saw in ``[start_ps, end_ps)``: one row per ToR and flow, arrays of one length.

    Rows come by ToR, within one in the order of the flows' first packets. Retransmissions are left
    out, and a packet counts at the switch where it enters the fabric.
    """

    start_ps: int
    end_ps: int
    tor: IntArray
    """Number of the ToR, from 0 on: switches in the order of their nodes."""
    key: IntArray
    """What the flow is known by, in 1..2^32 - 1; it keeps its key."""
    payload_bytes: IntArray
    packets: IntArray


@dataclass(frozen=True)
class MonitorContext:
    """What a monitor knows before the first interval."""

    seed: int
    """The seed of the run: all randomness of a monitor comes from it."""
    switches: int
    """Bounds the ToR numbers."""
    tau_bytes: int
    """Bytes that make an elephant."""
    interval_ps: int
    """Length of an interval; one may differ, its log says."""


class MonitorSettings(StrictModel):
    """Options of a monitor in ``[monitor.options]``; every field of a subclass is described."""


class FlowMonitor(ABC):
    """A flow-size monitor, made anew for every run; what it keeps between intervals is its own.

    Two monitors of one context and the same logs have to say the same to the bit: no clock, no
    unseeded randomness. Divergence and trigger are worked out from what ``observe`` returns, and a
    resumed run is played again from its start, so a monitor has nothing to save.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    Settings: ClassVar[type[MonitorSettings]] = MonitorSettings

    def __init__(self, context: MonitorContext, settings: MonitorSettings) -> None:
        self.context = context
        self.settings = settings

    @abstractmethod
    def observe(self, log: FlowLog) -> FlowSizeDistribution:
        """Return the distribution of an interval; its ``monitor_bytes`` are the bytes on the wire.

        :func:`summarise` makes one from flows. ``kl`` and ``triggered`` are filled in afterwards.
        """

    def elephant_shares(self, log: FlowLog) -> FloatArray | None:
        """Return how much of an elephant each row of the log just observed counts as.

        In 0..1, NaN for a flow that the monitor does not see. ``bench monitor`` judges accuracy by
        it; None says that this monitor knows no single flows.
        """
        return None


def summarise(
    bytes_so_far: IntArray,
    elephant_shares: FloatArray,
    *,
    potential: npt.NDArray[np.bool_] | None = None,
    monitor_bytes: int = 0,
    data_plane_bytes: int = 0,
    control_plane_bytes: int = 0,
) -> FlowSizeDistribution:
    """Return the distribution of flows by bytes so far and how much of an elephant each one is.

    ``potential`` marks potential elephants; the others are elephants from a share of 1 on, else
    mice. The three sizes are those of :class:`~dcqcn_gym.core.interval.FlowSizeDistribution`.
    Raises ValueError for a share outside of 0..1.
    """
    shares = np.asarray(elephant_shares, dtype=np.float64)
    legal = (shares >= 0.0) & (shares <= 1.0)
    if not legal.all():
        raise ValueError(f"elephant_shares holds {shares[~legal][0]}; expected numbers in 0..1")
    waiting = np.zeros(len(shares), dtype=bool) if potential is None else potential
    elephants = int(np.count_nonzero((shares >= 1.0) & ~waiting))
    # in units of 2^-32 flows, as the engine sums them: the order of the flows does not matter
    heavy = int(np.sum((shares * 2.0**32).astype(np.int64))) / 2.0**32
    _, exponents = np.frexp(np.asarray(bytes_so_far, dtype=np.float64))
    places = np.clip(exponents - _FIRST_BIN_ENDS, 0, FSD_BINS - 1)
    return FlowSizeDistribution(
        elephants=float(elephants),
        potential=float(np.count_nonzero(waiting)),
        mice=float(len(shares) - elephants - np.count_nonzero(waiting)),
        weighted_elephants=heavy,
        weighted_mice=len(shares) - heavy,
        bins=np.bincount(places, minlength=FSD_BINS).astype(np.float64),
        monitor_bytes=monitor_bytes,
        data_plane_bytes=data_plane_bytes,
        control_plane_bytes=control_plane_bytes,
    )
