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
