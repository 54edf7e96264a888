"""What tests tell a tuner: an outcome with a given utility."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcqcn_gym.core.interval import FinishedFlows, FlowSizeDistribution, IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.tuners import Outcome

INTS, FLOATS = np.zeros(1, np.int64), np.zeros(1)


def outcome(
    setting: Setting, utility: float, sizes: FlowSizeDistribution, triggered: bool = False
) -> Outcome:
    """Return the outcome of one interval; every term has the value of the utility."""
    counts: dict[str, Any] = dict.fromkeys(
        ("delivered_bytes", "data_packets", "acks", "cnps", "marks", "drops", "pauses", "resumes"),
        1,
    )
    report = IntervalReport(
        0, 0, 10**9, INTS, FLOATS, INTS, INTS, INTS, INTS, INTS, INTS, FLOATS, FLOATS, INTS, INTS,
        INTS, INTS, INTS, INTS, INTS, INTS, INTS, retransmitted_packets=0, packet_hops=1,
        rate_cuts=0, rate_increases=0, active_flows=1, fsd=sizes, finished=FinishedFlows(),
        **counts,
    )  # fmt: skip
    terms = Terms(utility, utility, utility)
    return Outcome(setting, utility, terms, np.zeros(1, np.float32), report, triggered=triggered)
