"""Long flows against the fixed point of DCQCN's fluid model (Zhu et al., SIGCOMM 2015).

At the fixed point, with p the share of marked packets, R = C/N in packets/s, and
    a = 1 - (1-p)^(tau R)               a CNP comes within a CNP gap tau
    alpha = 1 - (1-p)^(tau' R)          tau' the period of the alpha update
    b = p / ((1-p)^-B - 1),  c = (1-p)^(F B) b              byte counter
    d = p / ((1-p)^(-T R) - 1),  e = (1-p)^(F T R) d        timer
the target and the current rate stand still if  alpha a^2 = tau^2 R_AI R (b + d) (c + e).
The queue is where RED marks with p: q = Kmin + p/Pmax (Kmax - Kmin).
"""

from __future__ import annotations

import numpy as np
import pytest
from engine_worlds import US, compiled, flow_list, start

from dcqcn_gym.core.knobs import KNOBS, dcqcn_paper_setting

LINK = 40e9  # the links of that paper: 200 ps per byte
WIRE_BITS = 1062 * 8


def fixed_point_queue(flows: int) -> float:
    """Return the queue in bytes at which N flows of DCQCN's published setting balance."""
    s = {name: KNOBS[name].to_si(value) for name, value in dcqcn_paper_setting(LINK).items()}
    rate = LINK / flows / WIRE_BITS
    ai = s["rp_ai_rate"] / WIRE_BITS
    tau, timer, period = s["np_min_time_between_cnps"], s["rp_time_reset"], s["rp_dce_tcp_rtt"]
    stages, every = s["rp_threshold"], s["rp_byte_reset"] / 1000

    def excess(p: float) -> float:
        keep = 1 - p
        a, alpha = 1 - keep ** (tau * rate), 1 - keep ** (period * rate)
        # p / ((1-p)^-x - 1) without the overflow
        b, d = (p * keep**x / (1 - keep**x) for x in (every, timer * rate))
        c, e = keep ** (stages * every) * b, keep ** (stages * timer * rate) * d
        return float(alpha * a * a - tau * tau * ai * rate * (b + d) * (c + e))

    low, high = 1e-6, 0.1
    assert excess(low) < 0 < excess(high)
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return s["kmin"] + low / s["pmax"] * (s["kmax"] - s["kmin"])


def test_the_fixed_point_itself() -> None:
    # more flows need more marks; both queues lie on the marking ramp
    two, ten = fixed_point_queue(2), fixed_point_queue(10)
    assert 5000 < two < ten < 200_000


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 10])
def test_fair_share_and_mean_queue(n: int) -> None:
    # 1 us links, because the model's fixed point knows no delay; 0.74 s after 20 ms of settling
    rows = [(h, n, 2 * 10**10, h * 1000) for h in range(n)]
    links = [(h, n + 1, 200, US) for h in range(n + 1)]
    text = compiled(
        n + 1, links, [flow_list(rows), "scheme name=dcqcn mode=paper", "transport qp=flow"]
    )
    sim = start(text, 2, setting=dcqcn_paper_setting(LINK))
    sim.advance(20_000 * US)
    sim.report()
    sent, queues, steps = np.zeros(n), [], 20_000
    for _ in range(steps):
        sim.advance(sim.now_ps + 37 * US)  # not a multiple of any timer
        report = sim.report()
        sent += report["host_tx_bytes"][:n]
        queues.append(int(report["port_queue_bytes"][-1]))
    assert np.abs(sent / sent.mean() - 1).max() < 0.05
    assert sent.sum() * 8 / (steps * 37e-6) > 0.98 * LINK
    assert np.mean(queues) == pytest.approx(fixed_point_queue(n), rel=0.25)
