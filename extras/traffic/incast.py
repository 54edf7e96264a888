"""Incast as papers on HPCC's simulator use it: random senders to a random receiver, at a load."""

from __future__ import annotations

import math
from random import Random

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import total
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.tables import MOST_FLOW_BYTES, Flow

MOST_FLOWS = 5_000_000


def incast_flows(
    net: Fabric, *, senders: int, size: int, load: float, span_ms: float, seed: int
) -> list[Flow]:
    """Return the flows of incasts that come at random (exponential gaps) over ``span_ms``.

    In each ``senders`` hosts, drawn without repeats, send ``size`` bytes to one other host at once.
    ``load`` is the share of the rate of all host links together that their payload takes, as in
    HPCC (SIGCOMM 2019, section 5.1: 60 senders of 500 KB at 2 %). Raises :class:`ConfigError` for
    more senders than other hosts and for traffic that is empty or too long.
    """
    if not 1 <= senders < net.n_hosts:
        raise ConfigError(f"{senders} senders; expected 1 to {net.n_hosts - 1}, the other hosts")
    if not 1 <= size <= MOST_FLOW_BYTES or not 0 < load <= 1 or not 0 < span_ms < 1e7:
        raise ConfigError(
            f"{size} bytes at load {load:g} for {span_ms:g} ms; expected at least one byte, a load "
            "above 0 and at most 1, and a time"
        )
    capacity_bps = total(link.rate_bps for link in net.host_link)
    gap_ns = senders * size * 8e9 / (load * capacity_bps)
    if span_ms * 1e6 / gap_ns * senders > MOST_FLOWS:
        raise ConfigError(f"about {span_ms * 1e6 / gap_ns * senders:.3g} flows; expected at most "
                          f"{MOST_FLOWS}: a shorter time, or larger messages")  # fmt: skip
    random, flows, now = Random(seed), list[Flow](), 0.0
    while (now := now - gap_ns * math.log(1.0 - random.random())) < span_ms * 1e6:
        receiver, *others = random.sample(range(net.n_hosts), senders + 1)
        flows += [Flow(sender, receiver, size, float(int(now))) for sender in others]
    if not flows:
        raise ConfigError(f"no incast in {span_ms:g} ms; they come {gap_ns / 1e6:.3g} ms apart on "
                          "average: a longer time, or a higher load")  # fmt: skip
    return flows
