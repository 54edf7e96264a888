"""The native packet engine."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

from collections.abc import Sequence
from typing import Any

def engine_digest() -> str:
    """
    SHA-256 of the engine's sources: of what sha256sum prints for them, sorted by name.
    """

def knob_tables() -> dict[str, Any]:
    """
    Rows by scheme of its NIC (the first scheme is the default), those of a switch port, and those that a switch port has besides if a scenario turns them.
    """

def scheme_sizes(scheme: str) -> dict[str, int]:
    """Bytes of a scheme's states and fields, as the engine holds them."""

class Simulation:
    """One network: built from a compiled scenario and a seed."""

    def __init__(
        self, compiled: str, seed: int, engine: str = "default", threads: int = 1
    ) -> None: ...
    def apply(
        self,
        nic: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        ecn: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
    ) -> None:
        """
        Put settings in force, in the units and the order of the knob table: a row per host, a row per port.
        """

    def advance(self, until_ps: int) -> None:
        """Run everything that happens before until_ps."""

    def report(self) -> dict[str, Any]:
        """Close the interval since the last report and return its figures."""

    def closed_report(self) -> dict[str, Any]:
        """The figures of the interval that was closed last."""

    @property
    def closed_ps(self) -> int: ...
    def snapshot(self) -> bytes:
        """The state as bytes, for restore() of another one."""

    def restore(self, snapshot: bytes) -> None:
        """
        Take the state that a simulation of the same scenario, seed and engine was in; only before anything else is called.
        """

    def fresh(self, seed: int) -> Simulation:
        """Another one of the same scenario at time 0; both share the network."""

    def clone(self) -> Simulation:
        """
        Another one in this state: both go on with the same bytes, and share the network.
        """

    def port_table(self) -> dict[str, Any]:
        """Node, peer node, index and rate of every egress port."""

    def totals(self) -> dict[str, Any]:
        """Sums over all closed intervals."""

    def labels(self) -> dict[str, Any]:
        """
        With monitor option labels=1: every active flow, as it was and as the monitor saw it.
        """

    def take_trace(self) -> dict[str, Any]:
        """
        With monitor option trace=1: data packets that ToRs recorded since the last call.
        """

    def flow_log(self) -> dict[str, Any]:
        """
        With monitor kind flow-log: what each ToR saw of each flow in the last interval.
        """

    def live_flows(self) -> dict[str, Any]:
        """
        Flows that have not finished but will: sizes, starts, ideal completion times, generators.
        """

    @property
    def now_ps(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def n_hosts(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def n_ports(self) -> int: ...
    def trace_schemes(self, wanted: bool) -> None:
        """Keep the events of the NICs' schemes from now on, or stop."""

    def take_scheme_trace(self) -> list[dict[str, Any]]:
        """
        By scheme: names, and columns of the events since the last call, by time and source.
        """

    def sample(
        self,
        ports: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> dict[str, Any]:
        """
        Queued bytes and pause state of these ports now; data bytes sent and time paused since the last report.
        """

    def flow_rates(self) -> dict[str, Any]:
        """
        Every queue pair with unfinished work: its oldest flow, the rate that paces it, and the bytes that it has put on the wire.
        """

class Monitor:
    """The flow-size monitor of a compiled scenario, alone."""

    def __init__(self, compiled: str, seed: int) -> None: ...
    def record(
        self,
        tor: Annotated[
            NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        key: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        payload_bytes: Annotated[
            NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Count data packets, as Simulation.take_trace returns them."""

    def end_interval(self, now_ps: int) -> dict[str, Any]:
        """End the interval at now_ps; return its distribution and cost."""

    def labels(self) -> dict[str, Any]:
        """With option labels=1: every flow active in the last interval."""

    def flow_log(self) -> dict[str, Any]:
        """
        With kind flow-log: what each ToR saw of each flow in the last interval.
        """

class KlTrigger:
    """The trigger at the controller: compares successive distributions."""

    def __init__(self, theta: float) -> None: ...
    def update(self, elephants: float, mice: float, known: bool) -> tuple[float, bool]:
        """
        Take the weighted counts of an interval; return its divergence, and whether it triggers.
        """

MONITOR_KINDS: dict[str, tuple[str, ...]]

def flow_keys(src: NDArray[numpy.int64], ordinal: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """What monitors know flows by, from their source and its running number."""

def run_batch(
    simulations: Sequence[Simulation], stops_ps: Sequence[Sequence[int]], threads: int
) -> list[dict[str, Any]]:
    """
    Advance every simulation to its stops, or to the end of its traffic, in threads; return the figures of each: a row per interval, and columns of round trips and finished flows.
    """

def advance_all(simulations: Sequence[Simulation], until_ps: Sequence[int], threads: int) -> None:
    """
    Advance each simulation to its instant and close its interval, in threads.
    """

def report_fields() -> list[dict[str, Any]]:
    """
    The figures of an interval report: names, units, kinds, meanings and where they are shown.
    """

def same_scenario(a: str, b: str) -> bool:
    """
    Whether two compiled scenarios mean the same network, devices and traffic.
    """
