"""All-to-alls of PARALEON's clusters: 400 Gb/s, two tiers without oversubscription, MTU 4096.

A host stands for a network card; cards of one server are hosts of their own here, so traffic
between them crosses the network as well. NVLink, NCCL and the hosts' own time are not modelled.
"""

from __future__ import annotations

import numpy as np

from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.series import Series


def cluster(cards: int, per_tor: int, bytes_per_pair: int, *, rounds: int = 0) -> Scenario:
    """Return ``cards`` cards, so many to a ToR, in an all-to-all with one queue pair per pair.

    ToRs have as many uplinks as cards, to up to four spines.
    """
    spines = min(4, per_tor)
    return Scenario.model_validate(
        {
            "name": f"cluster-{cards}",
            "qp": "pair",
            "warmup_us": 0,
            "wire": {"payload_bytes": 4096},
            "weights": {"tp": 0.5, "rtt": 0.2, "pfc": 0.3},
            "topology": {
                "kind": "leaf-spine",
                "tors": cards // per_tor,
                "hosts_per_tor": per_tor,
                "spines": spines,
                "links_per_spine": per_tor // spines,
                "host_gbps": 400,
                "uplink_gbps": 400,
                "host_delay_us": 1,
                "uplink_delay_us": 1,
            },
            "monitor": {"kind": "none"},
            "workloads": [{"kind": "alltoall", "bytes": bytes_per_pair, "rounds": rounds}],
        }
    )


def algbw(run: Series, since: int = 0) -> float:
    """Return S / t of nccl-tests in bytes per second, t the mean time of rounds; NaN without one.

    S is the buffer of a rank. ``since``: this share in percent of the intervals is left out.
    """
    rounds = [
        one for line in run.records[len(run) * since // 100 :] for one in line.get("rounds", ())
    ]
    if not rounds:
        return float("nan")
    return float(rounds[0]["bytes"] / np.mean([one["time_ps"] * 1e-12 for one in rounds]))
