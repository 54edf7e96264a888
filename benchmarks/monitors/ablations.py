"""PARALEON's monitor without its parts: the mark that lets each packet be counted once, the window.

The paper (section III-B) marks every packet that a ToR has counted in an unused bit of its header,
so that no ToR further on counts it again. A simulator knows where a packet enters the fabric and
needs no mark; :func:`unmarked` shows what ToRs would count without one: packets between racks at
both ends of their way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.monitors.traces import IntArray, Steps, Study, keys_of, simulate

__all__ = ["NO_WINDOW", "unmarked"]

NO_WINDOW = {"kind": "elastic", "delta": 1000}
"""Options of the monitor without its window: no flow is active in so many intervals, so none
becomes a potential elephant."""


def unmarked(study: Study) -> Steps:
    """Yield the steps of the packet engine, packets between racks counted at both their ToRs."""
    steps = list(simulate(study))
    key, tor = _destinations(study, [flows for *_, flows in steps])
    for now, trace, flows in steps:
        yield now, _counted_twice(trace, key, tor) if trace else trace, flows


def _destinations(study: Study, flows: list[dict[str, Any]]) -> tuple[IntArray, IntArray]:
    """Return the keys of all flows, rising, and the number of the ToR that each of them goes to."""
    net = study.scenario.fabric
    tor_of = np.array([net.tor(host) - net.n_hosts for host in range(net.n_hosts)], dtype=np.int64)
    keys = np.concatenate([keys_of(some) for some in flows])
    tors = np.concatenate([tor_of[some["dst"]] for some in flows])
    order = np.argsort(keys, kind="stable")
    return keys[order], tors[order]


def _counted_twice(trace: dict[str, Any], key: IntArray, tor: IntArray) -> dict[str, Any]:
    to = tor[np.searchsorted(key, trace["key"])].astype(np.asarray(trace["tor"]).dtype)
    away = to != trace["tor"]
    return {
        "tor": np.concatenate([trace["tor"], to[away]]),
        **{
            name: np.concatenate([trace[name], trace[name][away]])
            for name in ("key", "payload_bytes")
        },
    }
