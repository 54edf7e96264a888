"""What is known of a fabric before any traffic: the inputs of the rule for settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FabricFacts:
    """What an operator knows of a fabric without measuring anything.

    ``meeting_hosts`` can send to one host at once. ``base_rtt_us`` is that of the longest path
    between hosts, in an idle network and without the time on the wire. ``shared_bytes`` is what a
    switch's buffer holds beside headroom and reserve. ``oversubscription`` is that of the worst
    rack, 1 where no host is behind an uplink. ``reaction_point`` is DCQCN's (``"nic"``).
    ``line_rate_gbps`` is that of the fastest hosts, ``slowest_gbps`` that of the slowest where
    they differ (None: all have one rate).
    """

    line_rate_gbps: float
    hosts: int
    meeting_hosts: int
    base_rtt_us: float
    shared_bytes: int
    oversubscription: float
    scheme: str
    reaction_point: str
    pfc: bool
    slowest_gbps: float | None = None

    @property
    def receiver_gbps(self) -> float:
        """Rate of the slowest receiver in Gb/s: the port that fills first where all hosts meet."""
        return self.line_rate_gbps if self.slowest_gbps is None else self.slowest_gbps


def late_marking(kmin: float, kmax: float, ports: int, alpha: float, pool: float) -> str | None:
    """Return why pauses come before marks; None if marks come first. All but alpha in bytes.

    With n ports that fill one queue alike, the first pause comes when the queue holds
    n alpha / (1 + n alpha) of the pool, where each port's part meets its dynamic threshold (Y. Zhu
    et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 4).
    """
    two, all_of = (pool * n * alpha / (1 + n * alpha) for n in (2, max(ports - 1, 2)))
    if kmin >= two:
        return (
            f"pauses begin before marking: two senders are paused at a queue of {two:.0f} B, and "
            f"marking begins at {kmin:.0f} B"
        )
    if kmax >= all_of:
        return (
            f"no queue reaches Kmax: with all {ports} ports the first pause comes at "
            f"{all_of:.0f} B, Kmax is {kmax:.0f} B"
        )
    return None
