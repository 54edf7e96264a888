"""Small networks in the compiled form, and short ways to run them, for the tests of the engine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dcqcn_gym._core import Simulation  # noqa: TID251 - the tests of this folder are about it
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.core.knobs import KNOBS, Setting, default_setting, expert_setting

US, MS = 1_000_000, 1_000_000_000
ENGINES = ("event", "window")
WIRE = "wire payload=1000 data=62 ack=66 cnp=78 pfc=64 cnp_in_ack=0"
HPCC_WIRE = "wire payload=1000 data=48 ack=60 cnp=60 pfc=43 cnp_in_ack=1"
PFC = "pfc enabled=1 lossless=3 alpha=0.125 reserve=4096 resume_offset=3072"
NO_MARKS: dict[str, Any] = {"kmin": 4e9, "kmax": 4e9}

Flow = tuple[int, int, int, int]  # src, dst, bytes, start in ps


def flow_list(flows: Iterable[Flow], priority: int = 3) -> str:
    """Return a workload that is an explicit list of flows."""
    rows = (f"flow {s} {d} {b} {t}" for s, d, b, t in flows)
    return "\n".join([f"workload flows priority={priority}", *rows])


def compiled(
    hosts: int,
    links: Iterable[tuple[int, int, int, int]],
    items: Iterable[str],
    *,
    buffer: int = 12_582_912,
    wire: str = WIRE,
    pfc: str = PFC,
) -> str:
    """Return a compiled scenario; links are (a, b, ps per byte, delay in ps)."""
    links = list(links)
    switches = max(max(a, b) for a, b, _, _ in links) - hosts + 1
    lines = ["dcqcn-gym-scenario 1", f"nodes hosts={hosts} switches={switches}"]
    lines += [f"switch {hosts + s} tier=0 buffer={buffer} salt={s + 1}" for s in range(switches)]
    for a, b, ppb, delay in links:
        headroom = 3 * delay // ppb
        lines.append(f"link {a} {b} ps_per_byte={ppb} delay_ps={delay} headroom={headroom}")
    return "\n".join([*lines, wire, pfc, *items, "end", ""])


def one_switch(hosts: int, items: Iterable[str], ppb: int = 80, **kwargs: Any) -> str:
    """Return a compiled scenario: hosts on one switch, 5 us links."""
    links = [(h, hosts, ppb, 5 * US) for h in range(hosts)]
    return compiled(hosts, links, items, **kwargs)


def leaf_spine(leaves: int, per_leaf: int, spines: int, items: Iterable[str], **kw: Any) -> str:
    """Return a compiled scenario: a leaf-spine fabric of 100 Gb/s, 5 us links."""
    n = leaves * per_leaf
    links = [(h, n + h // per_leaf, 80, 5 * US) for h in range(n)]
    links += [(n + a, n + leaves + b, 80, 5 * US) for a in range(leaves) for b in range(spines)]
    return compiled(n, links, items, **kw)


def apply(sim: Simulation, setting: Setting, changes: Mapping[str, float] | None = None) -> None:
    """Put one setting in force on every device; changes on top are in SI units, as the engine's."""
    units = {name: value / KNOBS[name].si_per_unit for name, value in (changes or {}).items()}
    setting = setting.replace(units)
    sim.apply(*same_everywhere(setting, sim.n_hosts, sim.n_ports))


def add_report(digest: hashlib._Hash, report: Mapping[str, Any]) -> None:
    """Add every value of a report to a digest, in the order of their names."""
    for key in sorted(report):
        value = report[key]
        for part in value.values() if isinstance(value, dict) else (value,):
            digest.update(np.asarray(part).tobytes())


def start(
    text: str,
    seed: int = 1,
    engine: str = "window",
    setting: Setting | None = None,
    **changes: float,
) -> Simulation:
    """Return a simulation with this setting (default: NVIDIA's) in force."""
    sim = Simulation(text, seed, engine)
    apply(sim, setting or default_setting(), changes)
    return sim


def finish(sim: Simulation, step: int = MS, limit: int = 2000 * MS) -> dict[str, np.ndarray]:
    """Run until everything is delivered; return all completed flows as columns."""
    parts = []
    while True:
        sim.advance(sim.now_ps + step)
        parts.append(sim.report()["finished"])
        if sim.done:
            return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        assert sim.now_ps < limit, "the flows do not finish"


def expert() -> Setting:
    """Return the experts' setting with the marking thresholds as printed."""
    return expert_setting()
