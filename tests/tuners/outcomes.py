"""What tests tell a tuner: an outcome with a given utility."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.core.interval import FlowSizeDistribution, report_with
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.tuners import Outcome

INTS, FLOATS = np.zeros(1, np.int64), np.zeros(1)


def outcome(
    setting: Setting, utility: float, sizes: FlowSizeDistribution, triggered: bool = False
) -> Outcome:
    """Return the outcome of one interval; every term has the value of the utility."""
    counts = dict.fromkeys(
        ("delivered_bytes", "data_packets", "acks", "cnps", "marks", "drops", "pauses", "resumes"),
        1,
    )
    report = report_with(
        FLOATS, INTS, FLOATS, end_ps=10**9, rtt_src=INTS, packet_hops=1, active_flows=1, fsd=sizes,
        **counts,
    )  # fmt: skip
    terms = Terms(utility, utility, utility)
    return Outcome(setting, utility, terms, np.zeros(1, np.float32), report, triggered=triggered)
