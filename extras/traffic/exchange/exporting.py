"""A scenario as the files of another simulator, and what those cannot say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FinishedFlows, LiveFlows
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.network import Cnp, Switch
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.scheme import Dcqcn
from dcqcn_gym.envs.scenario.tables import UNLIMITED, Flow
from dcqcn_gym.envs.scenario.workloads import Flows
from dcqcn_gym.extras.traffic.exchange.hpcc_config import FIXED, KNOBS, MAPS, knob_text
from dcqcn_gym.extras.traffic.exchange.hpcc_folder import ONE_LINK
from dcqcn_gym.extras.traffic.exchange.hpcc_topology import bps_at, decimal_text, topology_text
from dcqcn_gym.extras.traffic.exchange.htsim import htsim_topology
from dcqcn_gym.extras.traffic.exchange.window import window_bytes

START_S = 2
"""When time 0 is there: that program's queues are watched from 2 s on."""


AS_HERE = (
    "the rules of the workloads: the list has the flows that started in a run here (native, seed "
    "1), and those of rounds do not wait for each other there"
)


def export_hpcc(scenario: Scenario) -> tuple[dict[str, str], list[str]]:
    """Return config.txt, topology.txt, flow.txt and an empty trace.txt, and what they do not say.

    Raises :class:`ConfigError` for another scheme than DCQCN and for flows without an end.
    """
    if not isinstance(scenario.scheme, Dcqcn) or scenario.rp != "nic":
        raise ConfigError("config.txt has DCQCN as NICs have it; expected scheme = \"dcqcn\" with "
                          "rp = \"nic\"")  # fmt: skip
    flows = flows_of(scenario)
    lines = [
        f"{f.src} {f.dst} {priority} 100 {f.bytes} " + decimal_text(_ns(f).scaleb(-9) + START_S)
        for f, priority in flows
    ]
    files = {
        "config.txt": "".join(f"{key} {value}\n" for key, value in _config(scenario)),
        "topology.txt": topology_text(scenario.fabric),
        "flow.txt": "\n".join([str(len(flows)), *lines]) + "\n",
        "trace.txt": "0\n",
    }
    rounds = [] if scenario.only(Flows) else [AS_HERE]
    return files, [*rounds, *_unsaid(scenario), *_unsaid_knobs(scenario)]


def export_htsim(scenario: Scenario) -> tuple[dict[str, str], list[str]]:
    """Return fabric.topo and flows.cm, and what they do not say."""
    flows = flows_of(scenario)
    lines = [f"Nodes {scenario.n_hosts}", f"Connections {len(flows)}"]
    for number, (flow, _) in enumerate(flows, 1):
        start = decimal_text(_ns(flow).scaleb(3))
        lines.append(f"{flow.src}->{flow.dst} id {number} start {start} size {flow.bytes}")
    unsaid = ["switches, marking, DCQCN and its knobs: they are options of its programs"]
    if not scenario.only(Flows):
        unsaid.append(AS_HERE)
    if len(scenario.workloads) > 1:
        unsaid.append("priorities of flows")
    files = {"fabric.topo": htsim_topology(scenario.topology), "flows.cm": "\n".join(lines) + "\n"}
    return files, unsaid


EXPORTS: Mapping[str, Callable[[Scenario], tuple[dict[str, str], list[str]]]] = {
    "hpcc": export_hpcc, "htsim": export_htsim,
}  # fmt: skip
"""Simulator -> its files."""


def flows_of(scenario: Scenario) -> list[tuple[Flow, int]]:
    """Return all flows with their priorities, by start; those of one start in their order here.

    Of workloads that are no lists: the flows that start in a run, as :func:`_flows_of_run` has it.
    Raises :class:`ConfigError` for flows without an end.
    """
    if any(workload.unlimited for workload in scenario.workloads):
        raise ConfigError("a workload of flows without an end; those simulators have none")
    found = [(flow, one.priority) for one in scenario.only(Flows) for flow in one.flows]
    if not found:
        found = _flows_of_run(scenario)
    if any(flow.bytes == UNLIMITED for flow, _ in found):
        raise ConfigError("a flow without an end; those simulators have flows of so many bytes")
    return sorted(found, key=lambda one: _ns(one[0]))


def _flows_of_run(scenario: Scenario) -> list[tuple[Flow, int]]:
    """Return the flows that start in a run of the native engine, seed 1, as the scenario starts."""
    world = NativeBackend()
    columns: list[FinishedFlows | LiveFlows] = []
    found: list[tuple[Flow, int]] = []
    try:
        world.open(scenario, 1)
        world.apply(scenario.initial_setting())
        if scenario.warmup_ps:
            columns.append(world.advance(scenario.warmup_ps).finished)
        columns += [world.advance().finished for _ in range(scenario.intervals)]
        columns.append(world.live_flows() or LiveFlows())
    finally:
        world.close()
    for many in columns:
        for src, dst, size, start, workload in zip(
            many.src.tolist(), many.dst.tolist(), many.bytes.tolist(), many.start_ps.tolist(),
            many.workload.tolist(), strict=True,
        ):  # fmt: skip
            priority = scenario.workloads[workload].priority
            found.append((Flow(src, dst, size, start / 1000), priority))
    if not found:
        raise ConfigError("no flow starts in the run; expected traffic within its intervals")
    return found


def _ns(flow: Flow) -> Decimal:
    """Return a flow's start as the engine has it: whole picoseconds, in nanoseconds."""
    return Decimal(round(flow.start_ns * 1000)).scaleb(-3)


def _config(scenario: Scenario) -> Iterator[tuple[str, str]]:
    setting, window = scenario.initial_setting(), scenario.transport.window_bytes
    run_ms = Decimal(str(scenario.warmup_us / 1000)) + scenario.intervals * Decimal(
        str(scenario.monitor_interval_us / 1000)
    )
    rates = sorted({bps_at(link.ps_per_byte) for link in scenario.fabric.links})
    yield from {
        "ENABLE_QCN": "1", "USE_DYNAMIC_PFC_THRESHOLD": "1",
        "PACKET_PAYLOAD_SIZE": str(scenario.wire.payload_bytes),
        "TOPOLOGY_FILE": "topology.txt", "FLOW_FILE": "flow.txt", "TRACE_FILE": "trace.txt",
        "TRACE_OUTPUT_FILE": "trace.tr", "FCT_OUTPUT_FILE": "fct.txt", "PFC_OUTPUT_FILE": "pfc.txt",
        "SIMULATOR_STOP_TIME": decimal_text(START_S + run_ms.scaleb(-3)), "CC_MODE": "1",
    }.items()  # fmt: skip
    yield from ((key, knob_text(key, setting[knob.name])) for key, knob in KNOBS.items())
    for key, name in MAPS.items():
        value = repr(setting[name]).removesuffix(".0")
        yield key, " ".join([str(len(rates)), *(f"{rate} {value}" for rate in rates)])
    yield from {
        "ERROR_RATE_PER_LINK": "0", "L2_CHUNK_SIZE": "4000", "L2_ACK_INTERVAL": "1",
        "L2_BACK_TO_ZERO": "0", "HAS_WIN": str(int(window > 0)), "GLOBAL_T": "1",
        "VAR_WIN": str(int(scenario.transport.window_scaling)), "RATE_BOUND": "1",
        "ACK_HIGH_PRIO": "1", "LINK_DOWN": "0 0 0", "ENABLE_TRACE": "0",
        "BUFFER_SIZE": decimal_text(Decimal(scenario.buffer_bytes) / 2**20),
        "QLEN_MON_FILE": "qlen.txt", "QLEN_MON_START": str(START_S * 10**9),
        "QLEN_MON_END": str(START_S * 10**9),
    }.items()  # fmt: skip


def _unsaid(scenario: Scenario) -> Iterator[str]:
    """Yield what of a network that simulator does otherwise, a sentence each."""
    switch, usual, wire = scenario.switch, Switch(), scenario.wire
    if wire.profile != "hpcc" or wire.sizes()["data"] != 48:
        yield "frames: there 48 bytes around the payload, ACKs of 60, and CNPs in ACKs"
    if switch.ack_class != "data":
        yield f"switch.ack_class = {switch.ack_class!r}: at switches ACKs are in the data's class"
    if not switch.pfc:
        yield "switch.pfc = false: PFC is always on"
    for name in ("reserve_bytes", "resume_offset_bytes", "headroom_factor", "ecmp_table"):
        if getattr(switch, name) != getattr(usual, name):
            yield f"switch.{name}"
    if scenario.alpha != 0.125:
        yield f"switch.alpha = {scenario.alpha:g}: there 1/8"
    if scenario.buffer_bytes % 2**20:
        yield f"switch.buffer_bytes = {scenario.buffer_bytes}: BUFFER_SIZE is read as whole MiB"
    if scenario.classes or scenario.cnp != Cnp() or scenario.servers or scenario.qp != "flow":
        yield "classes, cnp, servers and qp: there one queue pair a flow, and none of the others"
    window = scenario.transport.window_bytes
    if window and window != (there := window_bytes(scenario.fabric, wire.payload_bytes)):
        yield f"transport.window_bytes = {window}: HAS_WIN computes {there}"
    if scenario.transport.ack_every != 1 or scenario.transport.loss == "cut":
        yield "transport: there every packet is acknowledged, and no loss slows a sender"
    if len({frozenset((x.a, x.b)) for x in scenario.fabric.links}) < len(scenario.fabric.links):
        yield f"parallel links: {ONE_LINK}"
    if any(link.delay_ps % 1000 for link in scenario.fabric.links):
        yield "delays of links below a nanosecond: there times are whole nanoseconds"


def _unsaid_knobs(scenario: Scenario) -> Iterator[str]:
    """Yield the knobs that are constants there and have another value here."""
    setting = scenario.initial_setting()
    for name, value in FIXED.items():
        if setting[name] != value:
            yield f"{name} = {setting[name]:g}: there it is as if it were {value:g}"
    for name in ("kmin", "kmax"):
        if setting[name] != int(setting[name]):
            yield f"{name} = {setting[name]:g} KB: there whole KB"
