"""What files say of a network: who is joined to whom, how fast, and who is a host."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.hosts import number_hosts

Pair = tuple[str, str]


@dataclass
class Found:
    """Devices and links by name; each file that mentions a pair says how many links it has.

    Both ends of a link may report it, under names of ports that do not agree, so the report of
    the file that knows most links of a pair counts.
    """

    tally: Tally = field(default_factory=Tally)
    is_host: dict[str, bool] = field(default_factory=dict)
    _links: dict[Pair, dict[str, list[float | None]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def link(self, a: str, b: str, gbps: float | None, source: str) -> None:
        """Take a link that ``source`` mentions; None where it does not say how fast it is."""
        self.tally.came(LINKS)
        if a == b:
            self.tally.leave_out(LINKS, "links join a device with itself", a)
            return
        self._links[min(a, b), max(a, b)][source].append(gbps)

    def leave_out(self, reason: str, example: object = "") -> None:
        """Count a link that the file has and the network has not."""
        self.tally.came(LINKS)
        self.tally.leave_out(LINKS, reason, example)

    def settle(self, hosts: str | None, gbps: float) -> Joined:
        """Return the network; ``hosts`` is a pattern of names, ``gbps`` of links that say none."""
        links = self._rated(gbps)
        if not links:
            raise ConfigError("no links between two devices; expected neighbours, links or edges")
        degree: dict[str, int] = defaultdict(int)
        for a, b, _ in links:
            degree[a] += 1
            degree[b] += 1
        is_host = self._host_test(hosts, degree)
        kept = []
        for a, b, rate in links:
            if is_host(a) and is_host(b):
                self.tally.leave_out(LINKS, "links join two hosts", f"{a} {b}")
            else:
                kept.append((a, b, rate))
        part = _largest_part(kept, self.tally)
        self.tally.take(LINKS, len(part))
        self.tally.check()
        return _joined(part, is_host, self.tally)

    def _rated(self, gbps: float) -> list[tuple[str, str, float]]:
        found = []
        for (a, b), reports in sorted(self._links.items()):
            rates = max(reports.values(), key=len)
            again = -len(rates)
            for report in reports.values():
                again += len(report)
            if again:
                self.tally.leave_out(LINKS, "reports are of the other end of a link", count=again)
            others = [rate for report in reports.values() for rate in report if rate is not None]
            for rate in rates:
                if rate is None and not others:
                    self.tally.note(f"links say no speed: taken as {gbps:g} Gb/s", f"{a} {b}")
                found.append((a, b, rate or (others[0] if others else gbps)))
        return found

    def _host_test(self, pattern: str | None, degree: dict[str, int]) -> Callable[[str], bool]:
        if pattern is not None:
            if not any(fnmatchcase(name, pattern) for name in degree):
                near = ", ".join(sorted(degree)[:3])
                raise ConfigError(f"--hosts {pattern}: no device has such a name; there are {near}")
            return lambda name: fnmatchcase(name, pattern)
        known = self.is_host
        return lambda name: known.get(name, degree[name] == 1)


@dataclass(frozen=True)
class Joined:
    """A network that can be a graph: ``hosts`` by number, ``switches`` likewise, and links."""

    hosts: dict[str, int]
    switches: dict[str, int]
    links: tuple[tuple[str, str, float], ...]
    tiers: tuple[int, ...]

    def topology(self) -> dict[str, object]:
        """Return the table ``[topology]`` of a scenario."""
        ends = {name: f"h{i}" for name, i in self.hosts.items()}
        ends |= {name: f"s{i}" for name, i in self.switches.items()}
        many: dict[tuple[str, str, float], int] = defaultdict(int)
        for a, b, gbps in self.links:
            many[ends[a], ends[b], gbps] += 1
        links = [
            {"ends": [a, b], **_rate(gbps), **({"parallel": n} if n > 1 else {})}
            for (a, b, gbps), n in many.items()
        ]
        sizes = {"hosts": len(self.hosts), "switches": len(self.switches)}
        return {"kind": "graph", **sizes, "tiers": list(self.tiers), "links": links}


def _rate(gbps: float) -> dict[str, float | int]:
    step = 8000 / gbps
    return {"gbps": gbps} if step == int(step) else {"ps_per_byte": max(10, round(step))}


def _largest_part(
    links: list[tuple[str, str, float]], tally: Tally
) -> list[tuple[str, str, float]]:
    """Return the links of the largest connected part."""
    top: dict[str, str] = {}

    def root(name: str) -> str:
        while top.setdefault(name, name) != name:
            top[name] = name = top[top[name]]
        return name

    for a, b, _ in links:
        top[root(a)] = root(b)
    parts: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for link in links:
        parts[root(link[0])].append(link)
    if not parts:
        raise ConfigError("every device is a host; expected switches (--hosts names the hosts)")
    best = max(parts.values(), key=len)
    for part in parts.values():
        if part is not best:
            tally.leave_out(
                LINKS, "links are not joined to the largest part", part[0][0], len(part)
            )
    return best


def _joined(
    links: list[tuple[str, str, float]], is_host: Callable[[str], bool], tally: Tally
) -> Joined:
    """Give every link of a host a host of its own, and number everything."""
    ports: dict[str, list[str]] = defaultdict(list)
    settled = []
    for a, b, rate in links:
        host, switch = (a, b) if is_host(a) else (b, a)
        if is_host(host):
            ports[host].append(f"{host}:{len(ports[host])}")
            settled.append((ports[host][-1], switch, rate))
        else:
            settled.append((a, b, rate))
    single = {names[0]: host for host, names in ports.items() if len(names) == 1}
    for host, names in ports.items():
        if len(names) > 1:
            tally.note("hosts have several links: each is a host of its own", f"{host}:0")
    named = [(single.get(a, a), b, rate) for a, b, rate in settled]
    hosts = number_hosts(single.get(n, n) for names in ports.values() for n in names)
    if len(hosts) < 2:
        raise ConfigError(
            "fewer than two hosts; say which devices are hosts, such as --hosts 'gpu-*'"
        )
    tiers = _tiers(named, hosts)
    order = number_hosts(tiers)
    ranked = sorted(tiers, key=lambda name: (tiers[name], order[name]))
    switches = {name: i for i, name in enumerate(ranked)}
    named.sort(key=lambda link: [(n not in hosts, (hosts | switches)[n]) for n in link[:2]])
    return Joined(hosts, switches, tuple(named), tuple(tiers[name] for name in ranked))


def _tiers(links: Iterable[tuple[str, str, float]], hosts: dict[str, int]) -> dict[str, int]:
    """Return the tier of every switch: how many switches are below it, at most 2."""
    peers: dict[str, list[str]] = defaultdict(list)
    for a, b, _ in links:
        peers[a].append(b)
        peers[b].append(a)
    found: dict[str, int] = {}
    now = {peer for host in hosts for peer in peers[host]}
    for tier in range(len(peers)):
        found |= dict.fromkeys(now, min(tier, 2))
        now = {p for n in now for p in peers[n] if p not in found and p not in hosts}
        if not now:
            break
    return found


LINKS = "links"
"""The unit in which networks are accounted for."""
_UNIT = {"": 0.0, "k": 1e-6, "m": 1e-3, "g": 1.0, "t": 1e3}


def gbps_of(text: str) -> float | None:
    """Return a speed in Gb/s: ``100G``, ``40000`` (Mb/s), ``1e11`` (bit/s), ``100GBASE-CR4``."""
    match = re.search(r"(\d+(?:\.\d+)?(?:e\d+)?)\s*([kmgt]?)", text.lower())
    if match is None:
        return None
    value = float(match[1])
    if match[2]:
        value *= _UNIT[match[2]]
    elif value >= 1e6:
        value *= 1e-9
    elif value >= 1000:
        value *= 1e-3
    return value if 1 <= value <= 800 else None
