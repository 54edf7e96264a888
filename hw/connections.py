"""A controller's connections to all agents of a fleet, and what is asked of all of them at once."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import METHODS, PROTOCOL, SERVICE
from dcqcn_gym.hw.client import AgentClient, Call, UnreachableError, channel_credentials
from dcqcn_gym.hw.fleet import Fleet
from dcqcn_gym.hw.gather import Gathered, Gatherer
from dcqcn_gym.hw.signals import signals_held
from dcqcn_gym.hw.tls import TlsFiles

AT_ONCE = 128
"""Calls that are under way at a time; every one has threads of its own."""
OTHER_FILES = 100
"""Files of a controller beside one connection per agent."""


class Connections:
    """Talks to every agent of a fleet at once: created -> open -> closed."""

    def __init__(
        self,
        fleet: Fleet,
        folder: Path,
        connect: Callable[..., AgentClient] = AgentClient,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``connect`` makes the connection to an agent; tests put a network's faults there.

        ``clock`` tells seconds that never jump.
        """
        self._fleet, self._folder = fleet, folder
        self._connect, self._clock = connect, clock
        self._gatherer = Gatherer(self.calls)
        self.clients: dict[str, AgentClient] = {}
        self.descriptions: dict[str, Any] = {}
        self.left_out: dict[str, DcqcnGymError] = {}
        """Agents that nothing more is asked of, and why: out of reach, or not as they should be."""

    @property
    def nics(self) -> list[str]:
        """Names of the NICs, in the order of the scenario's hosts."""
        return [member.name for member in self._fleet.nics]

    @property
    def switches(self) -> list[str]:
        """Names of the switches, in the order of the scenario's."""
        return [member.name for member in self._fleet.switches]

    @property
    def tiers(self) -> dict[str, str | None]:
        """Switch -> its tier, where the fleet's file tells it."""
        return {member.name: member.tier for member in self._fleet.switches}

    @property
    def is_digital_fabric(self) -> bool:
        """True if the packet engine plays the devices."""
        return self._fleet.fabric is not None

    @property
    def certificate_ends_s(self) -> dict[str, float]:
        """Who -> when the certificate ends, in Unix time: agents that answered, and the own one."""
        own = TlsFiles(self._fleet.tls, self._folder)
        own.read()
        return {"this controller": own.ends_s, **{n: c.ends_s for n, c in self.clients.items()}}

    @property
    def addresses(self) -> dict[str, str]:
        """Device -> where its agent listens."""
        return {m.name: m.address for m in (*self._fleet.nics, *self._fleet.switches)}

    @property
    def message_bytes(self) -> dict[str, tuple[int, int]]:
        """Device -> bytes of messages sent and received so far."""
        return {name: (c.sent, c.received) for name, c in self.clients.items()}

    def connect(self) -> None:
        """Prepare the connections to all agents; nothing is asked yet.

        Raises ConfigError if this process may not open so many files.
        """
        _allow_files(len(self._fleet.nics) + len(self._fleet.switches) + OTHER_FILES)
        credentials = channel_credentials(self._fleet.tls, self._folder)
        for member in (*self._fleet.nics, *self._fleet.switches):
            self.clients[member.name] = self._connect(
                member, SERVICE, METHODS, credentials, dscp=self._fleet.dscp,
                timeout_s=self._fleet.timeout_s, attempts=self._fleet.attempts, clock=self._clock,
            )  # fmt: skip

    def open(self, *, lenient: bool = False) -> None:
        """Connect to all agents and ask who they are; raise if one is not what the file says.

        ``lenient`` goes on without those: ``descriptions`` has the others, and :attr:`left_out`
        those that did not answer or speak another protocol. One that answered with an error (its
        device is ill) is in neither, and may still do what is asked of it.
        """
        self.connect()
        asked = self.calls("Describe", dict.fromkeys(self.clients, pb.Nothing()))
        found, failed = each_of(asked)
        away: dict[str, DcqcnGymError] = {
            name: e for name, e in failed.items() if isinstance(e, UnreachableError)
        }
        nics = set(self.nics)
        for name, description in found.items():
            try:
                self._check(name, description, "nic" if name in nics else "switch")
                self.descriptions[name] = description
            except ConfigError as error:
                away[name] = failed[name] = error
        if failed and not lenient:
            raise next(iter(failed.values()))
        self.left_out = away

    def _check(self, name: str, found: Any, kind: str) -> None:
        if abs(found.protocol - PROTOCOL) > 1:
            raise ConfigError(
                f"agent {name} speaks version {found.protocol} of the protocol (package "
                f"{found.version}), this controller {PROTOCOL - 1} to {PROTOCOL + 1}; install "
                "packages of one version"
            )
        if found.dscp in self._fleet.lossless_dscp:
            raise ConfigError(
                f"agent {name} sends with dscp = {found.dscp}, one of lossless_dscp: its packets "
                "would share the queue that is tuned; give it another one in its file"
            )
        if (found.device, found.kind) != (name, kind):
            raise ConfigError(
                f"agent {name} has the {found.kind} {found.device!r}; expected the {kind} {name!r}"
            )

    def ask_all(
        self, method: str, request: Any, names: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """Make a call to all agents (or ``names``) at once; raise the first error if one fails."""
        chosen = list(self.clients) if names is None else list(names)
        return all_of(self.calls(method, dict.fromkeys(chosen, request)))

    def ask_each(
        self, method: str, requests: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, DcqcnGymError]]:
        """Ask agents at once; return the answers, and why each of the others gave none."""
        asked = {name: r for name, r in requests.items() if name not in self.left_out}
        found, failed = each_of(self.calls(method, asked))
        return found, {n: self.left_out[n] if n in self.left_out else failed[n]
                       for n in requests if n not in found}  # fmt: skip

    def states(self) -> tuple[dict[str, Any], dict[str, DcqcnGymError]]:
        """Return how every device stands, and why each of the others does not tell."""
        return self.ask_each("Status", dict.fromkeys(self.clients, pb.Nothing()))

    def start_loads(self, jobs: Mapping[str, Any]) -> None:
        """Begin load on devices, on all or on none; raise the first error."""
        started, failed = each_of(self.calls("StartLoad", jobs))
        for error in failed.values():
            each_of(self.calls("StopLoad", dict.fromkeys(started, pb.Nothing())))
            raise error

    def gather(self, interval: int = 0) -> Gathered:
        """Return the figures of now; ``interval`` is the number of the one that ends."""
        with signals_held():
            return self._gatherer.gather(self.clients, interval)

    def close(self) -> None:
        """Close every connection; allowed in every state."""
        for client in self.clients.values():
            client.close()
        self.clients, self.left_out = {}, {}

    def calls(self, method: str, requests: Mapping[str, Any]) -> Iterator[tuple[str, Call]]:
        """Yield every device and its call, in order, once all are done.

        :data:`AT_ONCE` are under way at a time; one that gets no answer keeps no other waiting.
        """
        done: SimpleQueue[Call] = SimpleQueue()
        waiting, sent = iter(requests), dict[str, Call]()
        under_way = 0
        while True:
            for name in islice(waiting, AT_ONCE - under_way):
                sent[name] = self.clients[name].call(method, requests[name], done.put)
                under_way += 1
            if not under_way:
                break
            if not done.get().repeated():
                under_way -= 1
        yield from sent.items()


def all_of(calls: Iterable[tuple[str, Call]]) -> dict[str, Any]:
    """Wait for all; raise the first error, once none is under way any more."""
    found, failed = each_of(calls)
    for error in failed.values():
        raise error
    return found


def each_of(calls: Iterable[tuple[str, Call]]) -> tuple[dict[str, Any], dict[str, DcqcnGymError]]:
    """Wait for all; return the answers and the errors."""
    found: dict[str, Any] = {}
    failed: dict[str, DcqcnGymError] = {}
    with signals_held():
        for name, call in calls:
            try:
                found[name] = call.result()
            except DcqcnGymError as error:
                failed[name] = error
    return found, failed


def _allow_files(wanted: int) -> None:
    """Raise this process's own limit of open files; ConfigError if its system's is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise ConfigError(
            f"this fleet needs {wanted} open files, one per agent and some more, and this process "
            f"may have {hard}; raise the hard limit (ulimit -Hn, LimitNOFILE)"
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
