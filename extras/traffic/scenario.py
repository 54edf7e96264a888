"""A scenario of a given fabric with the traffic that was read, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.traffic.fitting import Fit
from dcqcn_gym.extras.traffic.nccl import Calls

SIZES = "sizes.csv"

_RINGS: Mapping[str, str] = {
    "AllReduce": "all-reduce", "AllGather": "all-gather", "ReduceScatter": "reduce-scatter",
}  # fmt: skip
_BURSTY = 2.0
_POOR = 0.05
_SKEWED = 0.5


def scenario_text(base: Scenario, workload: Mapping[str, Any], description: str) -> str:
    """Return the TOML of ``base`` with this one workload in place of its own."""
    written = base.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    for key in ("name", "workloads", "description"):
        written.pop(key, None)
    return toml_text({"description": description, **written, "workloads": [workload]})


def poisson_workload(fit: Fit, base: Scenario) -> dict[str, Any]:
    """Return a Poisson process of the fitted sizes; ConfigError for hosts that are not there."""
    last = max(*fit.senders, *fit.receivers)
    n = base.fabric.n_hosts
    if last >= n:
        raise ConfigError(
            f"the traffic has host h{last}, and {base.name} has {n}; expected h0 to h{n - 1} "
            "(--hosts says which name is which)"
        )
    every = list(range(n))
    workload: dict[str, Any] = {
        "kind": "poisson", "cdf": SIZES, "mean_gap_us": float(f"{fit.gap_us:.6g}"),
    }  # fmt: skip
    if list(fit.senders) != every:
        workload["hosts"] = list(fit.senders)
    if fit.receivers != fit.senders:
        workload["dsts"] = list(fit.receivers)
    return workload


def warnings(fit: Fit) -> list[str]:
    """Return what a Poisson process with these sizes does not have, a sentence each."""
    found = []
    if fit.size_distance > _POOR:
        found.append(f"the table of sizes is off by up to {fit.size_distance:.1%} of the flows")
    width, dispersion = max(fit.dispersion, key=lambda d: d[1], default=(0.0, 1.0))
    if dispersion > _BURSTY:
        found.append(
            f"arrivals are bursty: in windows of {width:g} us their variance is {dispersion:.3g} "
            "times a Poisson process's; where queues count, use the flows (`traffic import`)"
        )
    if fit.pair_share > _SKEWED:
        found.append(
            f"the busiest tenth of all pairs of hosts has {fit.pair_share:.0%} of the bytes; in "
            "the scenario all pairs are alike"
        )
    return found


def collective_workload(
    calls: Sequence[Calls], base: Scenario
) -> tuple[dict[str, Any], str, list[str]]:
    """Return the collective that names most bytes as a workload, a description, what is left out.

    NCCL's buffers are: all-reduce, what every rank has; all-gather and reduce-scatter, a rank's
    share, of which the ring's total is ranks times that; all-to-all, what goes to one peer. Raises
    :class:`ConfigError` if no collective of the log can be simulated.
    """
    known = [c for c in calls if c.name in _RINGS or c.name.lower() == "alltoall"]
    known = [c for c in known if c.bytes and c.ranks > 1]
    if not known:
        names = ", ".join(sorted({c.name for c in calls}))
        raise ConfigError(
            f"no collective that can be simulated: the log has {names}; expected "
            f"{', '.join(_RINGS)} or AllToAll over two ranks or more"
        )
    most = known[0]
    ranks = min(most.ranks, base.fabric.n_hosts)
    workload: dict[str, Any]
    if most.name in _RINGS:
        scale = 1 if most.name == "AllReduce" else most.ranks
        workload = {"kind": "ring", "collective": _RINGS[most.name], "bytes": most.bytes * scale}
    else:
        workload = {"kind": "alltoall", "bytes": most.bytes}
    workload |= {"hosts": ranks, "off_us": 0.0}
    all_bytes = count(c.bytes * c.lines for c in calls)
    share = most.bytes * most.lines / all_bytes
    left = [
        "the log has no times, so the pause between two operations (off_us) is 0: set it to the "
        "computation between them",
    ]
    if share < 1:
        left.append(f"other calls, with {1 - share:.0%} of the log's bytes, are left out")
    if ranks < most.ranks:
        left.append(f"{most.ranks} ranks on the {ranks} hosts of {base.name}: one rank a host")
    said = f"{most.name} of {most.bytes} bytes over {most.ranks} ranks, from a log of NCCL"
    return workload, said, left
