"""Which devices try a setting first, and whether they do worse than the others.

A *canary* is a group of devices that has a candidate in force while all others, the *control*
group, keep the confirmed setting. In every interval each safety flag compares the two: canary minus
control. What counts is how that difference changed since all devices had the same setting, because
groups differ by themselves (other hosts, other flows). Intervals follow from each other, so the
change is judged by a block bootstrap: Künsch, "The Jackknife and the Bootstrap for General
Stationary Observations" (Annals of Statistics 1989), in circles (Politis and Romano 1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import Devices, by_group, cluster_setting, members
from dcqcn_gym.core.interval import FloatArray, IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import Proposal

FLAGS: Mapping[str, str] = {
    "pause": "share of the interval that a port of the group is paused",
    "drops": "share of packets that the group's switches drop",
    "rtt": "mean round trip of the group's hosts over the base round trip",
    "goodput": "how much less the group's hosts send, as a share of the mean of both groups",
}
"""What is compared; more is worse."""

RESAMPLES = 999
BoolArray = npt.NDArray[np.bool_]


def spread(share: float, count: int) -> tuple[int, ...]:
    """Return about ``share`` of ``range(count)``, evenly spread; at least one, never all."""
    if count < 2:
        return ()
    wanted = min(max(round(share * count), 1), count - 1)
    return tuple(i * count // wanted for i in range(wanted))


@dataclass(frozen=True)
class Canary:
    """One group of devices that tries a setting: its hosts, and its switch ports."""

    devices: Devices
    hosts: frozenset[int]
    ports: frozenset[int]

    def mixed(self, confirmed: Proposal, candidate: Proposal) -> Proposal:
        """Return the proposal by which the canary has the candidate and the rest what it has."""
        groups = dict(by_group(confirmed))
        ours = dict(by_group(candidate))
        for host in sorted(self.hosts):
            groups[f"nic:{host}"] = _first(ours, (f"nic:{host}", "hosts"), candidate)
        for port in sorted(self.ports):
            names = self.devices.port_groups[port]
            groups[names[0]] = _first(ours, names, candidate)
        return groups

    def differences(self, report: IntervalReport) -> dict[str, float]:
        """Return canary minus control of every flag; NaN where either is unknown or empty."""
        owners = [self.devices.port_node[p] for p in self.ports]
        ours = sorted({*self.hosts, *owners})  # a switch that has a port of the canary is one
        n_hosts = report.host_rate_bps.size
        own, of_switch = np.isin(report.port_node, ours), report.port_node >= n_hosts
        own_hosts = np.isin(np.arange(n_hosts), ours)
        sides = [(own_hosts, own, own & of_switch), (~own_hosts, ~own, ~own & of_switch)]
        found = {}
        for flag in FLAGS:
            mine, theirs = (_figure(flag, report, *side) for side in sides)
            found[flag] = mine - theirs
            if flag == "goodput":  # as a share: a quarter less is bad at every load
                both = (mine + theirs) / 2.0
                found[flag] = (theirs - mine) / both if both > 0 else float("nan")
        return found


def canary_of(names: Sequence[str], devices: Devices) -> Canary:
    """Return the canary of groups of devices by name; ConfigError if nobody is left to compare."""
    hosts: set[int] = set()
    ports: set[int] = set()
    for name in names:
        more_hosts, more_ports = members(name, devices)
        hosts.update(more_hosts)
        ports.update(more_ports)
    switch_ports = len(devices.port_node) - devices.n_hosts
    if len(hosts) == devices.n_hosts or (switch_ports and len(ports) == switch_ports):
        raise ConfigError(
            f"canary {', '.join(names)}: it has every device of a kind, so that none is left to "
            "compare with; name fewer"
        )
    return Canary(devices, frozenset(hosts), frozenset(ports))


def lowest_change(
    during: Sequence[float],
    before: Sequence[float],
    *,
    block: int,
    confidence: float,
    random: np.random.Generator,
) -> float:
    """Return the one-sided lower bound of mean(during) - mean(before); NaN without both.

    Both series are resampled in circular blocks of ``block`` intervals, apart from each other.
    """
    means = [_block_means(np.asarray(s, dtype=np.float64), block, random) for s in (during, before)]
    if not all(m.size for m in means):
        return float("nan")
    return float(np.quantile(means[0] - means[1], 1.0 - confidence))


def _block_means(values: FloatArray, block: int, random: np.random.Generator) -> FloatArray:
    known = values[np.isfinite(values)]
    if not known.size:
        return known
    length = min(block, known.size)
    blocks = -(-known.size // length)
    starts = random.integers(known.size, size=(RESAMPLES, blocks, 1))
    places = (starts + np.arange(length)) % known.size
    drawn = known[places.reshape(RESAMPLES, blocks * length)[:, : known.size]]
    means: FloatArray = drawn.mean(axis=1)
    return means


def _figure(
    flag: str, report: IntervalReport, hosts: BoolArray, ports: BoolArray, of_switch: BoolArray
) -> float:
    """Return a flag's figure of one side; NaN if it is unknown or the side has nothing."""
    if flag == "pause":
        if "port_pause_ps" in report.unknown or not ports.any():
            return float("nan")
        return float(report.port_pause_ps[ports].mean() / report.duration_ps)
    if flag == "drops":
        sent = int(report.port_tx_packets[of_switch].sum())
        dropped = int(report.port_dropped_packets[of_switch].sum())
        return dropped / (sent + dropped) if sent + dropped else float("nan")
    if flag == "rtt":
        own = hosts[report.rtt_src]
        base = float((report.rtt_count[own] * report.rtt_base_ps[own]).sum())
        return float(report.rtt_sum_ps[own].sum()) / base if base > 0 else float("nan")
    if not hosts.any():
        return float("nan")
    could = report.host_rate_bps[hosts] * report.duration_s / 8.0
    return float((report.host_tx_bytes[hosts] / could).mean())


def _first(groups: Mapping[str, Setting], names: Sequence[str], whole: Proposal) -> Setting:
    return next((groups[n] for n in names if n in groups), cluster_setting(whole))
