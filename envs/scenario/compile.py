"""Compiling a scenario into the flat text that the engine reads.

One item a line, ``key=value``, lists with commas; times in integer picoseconds, sizes in bytes.
The text is a pure function of the scenario. It says that it is complete: every key is written, and
a reader refuses a text that lost a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dcqcn_gym.envs.scenario.network import Network
from dcqcn_gym.envs.scenario.tables import Cdf
from dcqcn_gym.envs.scenario.topology import Fabric, us_to_ps
from dcqcn_gym.envs.scenario.workloads import (
    AllToAll,
    Flows,
    Incast,
    Pairs,
    ParameterServer,
    Permutation,
    Poisson,
    Ring,
    Storage,
    Streams,
    mean_gap_ps,
)

__all__ = ["FORMAT_VERSION", "compile_scenario"]

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
    for node in range(net.n_hosts, net.n_nodes):
        salt = _salt(node, scenario.switch.ecmp_salt)
        yield f"switch {node} tier={net.tier(node)} buffer={scenario.buffer_bytes} salt={salt}"
    for link in net.links:
        room = scenario.headroom_bytes(link.ps_per_byte, link.delay_ps)
        yield (
            f"link {link.a} {link.b} ps_per_byte={link.ps_per_byte} "
            f"delay_ps={link.delay_ps} headroom={room}"
        )


def _next_hops(scenario: Network) -> Iterator[str]:
    for row in scenario.switch.ecmp_table:
        yield "next_hop " + " ".join(map(str, row))


def _items(**values: object) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())


def _list(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _devices(scenario: Network) -> Iterator[str]:
    wire, switch, transport = scenario.wire, scenario.switch, scenario.transport
    yield "wire " + _items(payload=wire.payload_bytes, **wire.sizes())
    yield "pfc " + _items(
        enabled=int(switch.pfc),
        lossless=_list(switch.lossless) or "none",
        alpha=repr(scenario.alpha),
        reserve=switch.reserve_bytes,
        resume_offset=switch.resume_offset_bytes,
        ack_class=switch.ack_class,
    )
    yield "transport " + _items(
        qp=scenario.qp,
        ack_every=transport.ack_every,
        window=transport.window_bytes,
        window_scaling=int(transport.window_scaling),
        rto_ps=us_to_ps(transport.rto_us),
        dispatch_delay_ps=us_to_ps(transport.dispatch_delay_us),
        **({"rtt_probe_ps": us_to_ps(transport.rtt_probe_us)} if transport.rtt_probe_us else {}),
    )
    for scheme, hosts in scenario.scheme.groups_in(scenario.fabric):
        where = {"hosts": _list(hosts)} if hosts else {}
        yield "scheme " + _items(name=scheme.name, **scheme.options(), **where)
    yield "cnp " + _items(
        scope=scenario.cnp.scope,
        port_gap_ps=us_to_ps(scenario.cnp.port_gap_us),
        delay_ps=us_to_ps(scenario.cnp.delay_us),
    )
    yield _monitor(scenario)


def _monitor(scenario: Network) -> str:
    words = scenario.monitor.words()
    if scenario.monitor.distribution is not None:
        words["sizes_cdf"] = _cdfs(scenario).index(scenario.monitor.distribution)
    return "monitor " + _items(**words)


def _cdfs(scenario: Network) -> list[Cdf]:
    """Return every flow-size distribution of the scenario once, in the order of its number."""
    cdfs: list[Cdf] = []
    wanted = [w.cdf for w in scenario.workloads if isinstance(w, Poisson)]
    if scenario.monitor.distribution is not None:
        wanted.append(scenario.monitor.distribution)
    for cdf in wanted:
        if cdf not in cdfs:
            cdfs.append(cdf)
    return cdfs


def _workloads(scenario: Network) -> Iterator[str]:
    net = scenario.fabric
    cdfs = _cdfs(scenario)
    for i, cdf in enumerate(cdfs):
        points = dict.fromkeys(cdf.points)  # each once: a repeated row of a table says nothing
        rows = " ".join(f"{size}:{share!r}" for size, share in points)
        yield f"cdf {i} {rows} points={len(points)}"
    for workload in scenario.workloads:
        if isinstance(workload, Poisson):
            yield _poisson(workload, net, cdfs.index(workload.cdf))
        elif isinstance(workload, Flows):
            yield f"workload flows priority={workload.priority}"
            for flow in workload.flows:
                yield f"flow {flow.src} {flow.dst} {flow.bytes} {round(flow.start_ns * 1000)}"
        elif isinstance(workload, Storage):
            yield _storage(workload, net)
        elif isinstance(workload, ParameterServer):
            yield _parameter_server(workload, net)
        elif isinstance(workload, Streams):
            yield _streams(workload, net)
        else:
            yield _rounds(workload, net)


def _stop(stop_us: float | None) -> int:
    return -1 if stop_us is None else us_to_ps(stop_us)


def _poisson(workload: Poisson, net: Fabric, cdf: int) -> str:
    hosts, dsts = workload.resolve(net)
    return "workload poisson " + _items(
        cdf=cdf,
        hosts=_list(hosts),
        dsts=_list(dsts),
        mean_gap_ps=repr(mean_gap_ps(workload, net)),
        start_ps=us_to_ps(workload.start_us),
        stop_ps=_stop(workload.stop_us),
        repeat_ps=us_to_ps(workload.repeat_us),
        priority=workload.priority,
        **_connections(workload),
    )


def _connections(workload: object) -> dict[str, int]:
    """Return the key where there is more than one: texts of before it say the same."""
    several = getattr(workload, "connections", 1)
    return {"connections": several} if several > 1 else {}


def _streams(workload: Streams, net: Fabric) -> str:
    hosts, dsts = workload.resolve(net)
    return "workload streams " + _items(
        hosts=_list(hosts),
        dsts=_list(dsts),
        bytes=workload.bytes,
        flows=workload.flows,
        start_ps=us_to_ps(workload.start_us),
        within_ps=us_to_ps(workload.within_us),
        priority=workload.priority,
    )


def _rounds(workload: AllToAll | Ring | Permutation | Incast | Pairs, net: Fabric) -> str:
    extra: dict[str, object] = {}
    if isinstance(workload, Pairs):
        what = _items(pairs=_list(f"{a}>{b}:{size}" for a, b, size in workload.resolve(net)))
    elif isinstance(workload, Incast):
        what = _items(hosts=_list(workload.resolve(net)), dst=workload.dst, bytes=workload.bytes)
    elif isinstance(workload, Ring):
        hosts = workload.resolve(net)
        what = _items(hosts=_list(hosts), bytes=workload.chunk_bytes(len(hosts)))
        extra["steps"] = workload.steps(len(hosts))
    else:
        what = _items(hosts=_list(workload.resolve(net)), bytes=workload.bytes)
    extra["messages"] = 1 if isinstance(workload, Ring) else workload.messages
    extra |= _connections(workload)
    when = _items(
        **extra,
        off_ps=us_to_ps(workload.off_us),
        start_ps=us_to_ps(workload.start_us),
        stop_ps=_stop(workload.stop_us),
        rounds=workload.rounds,
        priority=workload.priority,
    )
    return f"workload {workload.kind} {what} {when}"


def _storage(workload: Storage, net: Fabric) -> str:
    compute, storage = workload.resolve(net)
    low, high = workload.blocks
    return "workload storage " + _items(
        hosts=_list(compute),
        dsts=_list(storage),
        depth=workload.depth,
        copies=workload.copies,
        read_share=repr(workload.reads),
        block_min=low,
        block_max=high,
        bytes=workload.message_bytes,
        start_ps=us_to_ps(workload.start_us),
        stop_ps=_stop(workload.stop_us),
        rounds=workload.ios,
        priority=workload.priority,
    )


def _parameter_server(workload: ParameterServer, net: Fabric) -> str:
    return "workload parameter-server " + _items(
        hosts=_list(workload.resolve(net)),
        dst=workload.server,
        bytes=workload.gradient_bytes,
        off_ps=us_to_ps(workload.compute_us),
        start_ps=us_to_ps(workload.start_us),
        stop_ps=_stop(workload.stop_us),
        rounds=workload.iterations,
        priority=workload.priority,
    )
