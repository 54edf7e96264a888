"""Compile a scenario into the flat text that the engine reads.

One item a line, ``key=value``, lists with commas; times in integer picoseconds, sizes in bytes.
The text is a pure function of the scenario. It says that it is complete: every key is written, and
a reader refuses a text that lost a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.scenario import Network
from dcqcn_gym.envs.scenario.tables import Cdf
from dcqcn_gym.envs.scenario.workload import items, listed

FORMAT_VERSION = 1


def compile_scenario(scenario: Network) -> str:
    """Return the flat text of a scenario (format ``dcqcn-gym-scenario 1 complete``)."""
    lines = [f"dcqcn-gym-scenario {FORMAT_VERSION} complete"]
    lines += _network(scenario)
    lines += _next_hops(scenario)
    lines += _devices(scenario)
    lines += _workloads(scenario)
    return "\n".join([*lines, "end", ""])


def _salt(node: int, more: int) -> int:
    """Return the ECMP salt of a switch: well-mixed bits of its number, never the seed.

    ``more`` is ``ecmp_salt``, another such number; 0 changes nothing.
    """
    return _mixed((node + 0x9E3779B9) & 0xFFFFFFFF) ^ _mixed(more)


def _mixed(x: int) -> int:
    """Return 32 well-mixed bits of a number of 32 bits; 0 stays 0."""
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return x ^ (x >> 16)


def _network(scenario: Network) -> Iterator[str]:
    net = scenario.fabric
    yield f"nodes hosts={net.n_hosts} switches={len(net.tiers)}"
    buffer = scenario.buffer_bytes
    for node in range(net.n_hosts, net.n_nodes):
        salt = _salt(node, scenario.switch.ecmp_salt)
        yield f"switch {node} tier={net.tier(node)} buffer={buffer} salt={salt}"
    headroom_bytes = cache(scenario.headroom_bytes)  # many links, few kinds of them
    for link in net.links:
        headroom = headroom_bytes(link.ps_per_byte, link.delay_ps)
        yield (
            f"link {link.a} {link.b} ps_per_byte={link.ps_per_byte} "
            f"delay_ps={link.delay_ps} headroom={headroom}"
        )
    if scenario.servers is not None:
        yield scenario.servers.line()


def _next_hops(scenario: Network) -> Iterator[str]:
    for row in scenario.switch.ecmp_table:
        packets = "" if row.packets == "data" else f" packets={row.packets}"
        yield "next_hop " + " ".join(map(str, row[:5])) + packets


def _devices(scenario: Network) -> Iterator[str]:
    wire, switch, transport = scenario.wire, scenario.switch, scenario.transport
    yield "wire " + items(payload=wire.payload_bytes, **wire.sizes())
    yield "pfc " + items(
        enabled=int(switch.pfc),
        lossless=listed(switch.lossless) or "none",
        alpha=repr(scenario.alpha),
        reserve=switch.reserve_bytes,
        resume_offset=switch.resume_offset_bytes,
        ack_class=switch.ack_class,
    )
    for one in scenario.classes:
        yield f"class {one.priority} " + items(**one.words())
    yield "transport " + items(
        qp=scenario.qp,
        ack_every=transport.ack_every,
        window=transport.window_bytes,
        window_scaling=int(transport.window_scaling),
        rto_ps=us_to_ps(transport.rto_us),
        dispatch_delay_ps=us_to_ps(transport.dispatch_delay_us),
        **({"rtt_probe_ps": us_to_ps(transport.rtt_probe_us)} if transport.rtt_probe_us else {}),
        **({"message_ps": us_to_ps(transport.message_us)} if transport.message_us else {}),
        **({"loss": transport.loss} if transport.loss != "ignored" else {}),
    )
    for scheme, hosts in scenario.scheme.groups_in(scenario.fabric):
        where = {"hosts": listed(hosts)} if hosts else {}
        yield "scheme " + items(name=scheme.name, **scheme.options(), **where)
    yield "cnp " + items(
        scope=scenario.cnp.scope,
        port_gap_ps=us_to_ps(scenario.cnp.port_gap_us),
        delay_ps=scenario.cnp.delay_ps,
    )
    yield _monitor(scenario)


def _monitor(scenario: Network) -> str:
    words = scenario.monitor.words()
    if scenario.monitor.distribution is not None:
        words["sizes_cdf"] = _cdfs(scenario).index(scenario.monitor.distribution)
    return "monitor " + items(**words)


def _cdfs(scenario: Network) -> list[Cdf]:
    """Return every flow-size distribution of the scenario once, in the order of its number."""
    cdfs: list[Cdf] = []
    wanted = [w.distribution for w in scenario.workloads]
    for cdf in (*wanted, scenario.monitor.distribution):
        if cdf is not None and cdf not in cdfs:
            cdfs.append(cdf)
    return cdfs


def _workloads(scenario: Network) -> Iterator[str]:
    cdfs = _cdfs(scenario)
    for i, cdf in enumerate(cdfs):
        points = dict.fromkeys(cdf.points)  # each once: a repeated row of a table says nothing
        rows = " ".join(f"{size}:{share!r}" for size, share in points)
        yield f"cdf {i} {rows} points={len(points)}"
    for workload in scenario.workloads:
        yield from workload.lines(scenario.fabric, cdfs)
