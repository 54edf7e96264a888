"""A scenario of a given fabric with the traffic that was read, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.toml_text import parse_toml, toml_text
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.traffic.fitting import Fit
from dcqcn_gym.extras.traffic.nccl import Calls, NcclLog

SIZES = "sizes.csv"

_RINGS: Mapping[str, str] = {
    "AllReduce": "all-reduce", "AllGather": "all-gather", "ReduceScatter": "reduce-scatter",
}  # fmt: skip
_BURSTY = 2.0
_LEAST_SHARE = 0.5
"""Of a log's bytes: what covers less is another job."""
_POOR = 0.05
_SKEWED = 0.5


def scenario_text(base: Scenario, workloads: Sequence[Mapping[str, Any]], description: str) -> str:
    """Return the TOML of ``base`` with these workloads in place of its own."""
    return changed_text(base, {"description": description, "workloads": list(workloads)})


def changed_text(base: Scenario, changes: Mapping[str, Any]) -> str:
    """Return the TOML of ``base`` with other values of some keys, in ``[switch]`` key by key.

    The file gives it a new name. Raises ConfigError for what is then no scenario.
    """
    written = base.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    written.pop("name", None)
    last = {"workloads": written.pop("workloads")}  # tables, which end what stands above them
    if "switch" in changes:
        changes = {**changes, "switch": {**written.get("switch", {}), **changes["switch"]}}
    whole = {"description": "", **written, **last, **changes}
    # workloads may name files that are not written yet
    validate({"name": "changed", **whole, **last}, Scenario, source=base.name)
    return toml_text(whole)


def buffer_of(base: Scenario, changes: Mapping[str, Any], pool_bytes: float) -> int:
    """Return ``buffer_bytes`` with which the ports of a switch share a pool of so many bytes.

    ``changes`` are what :func:`changed_text` takes; headroom and reserve go by them.
    """
    roomy = {**changes, "switch": {**changes.get("switch", {}), "buffer_bytes": 2**40}}
    text = changed_text(base, roomy)
    scenario = validate({**parse_toml(text, base.name), "name": base.name}, Scenario, source="")
    return round(pool_bytes) + scenario.set_aside_bytes


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


def collective_workloads(
    log: NcclLog, base: Scenario
) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Return the collective that names most bytes as workloads, a description, what is left out.

    Communicators of the same size that are at work at once are a workload each. NCCL's buffers are:
    all-reduce, what every rank has; all-gather and reduce-scatter, a rank's share, of which the
    ring's total is ranks times that; all-to-all, what goes to one peer. Sends are an all-to-all if
    a rank has one for nearly each peer, else an exchange with the next rank, as in a pipeline.
    Raises :class:`ConfigError` if no collective of the log can be simulated.
    """
    known = [c for c in log.calls if c.bytes and c.ranks > 1 and _kind(c) is not None]
    if not known:
        names = ", ".join(sorted({c.name for c in log.calls}))
        raise ConfigError(
            f"no collective that can be simulated: the log has {names}; expected "
            f"{', '.join(_RINGS)}, AllToAll or Send over two ranks or more"
        )
    most = known[0]
    left = [
        "the log has no times, so the pause between two operations (off_us) is 0: set it to the "
        "computation between them",
    ]
    workload = _workload(most, log, left)
    groups = log.groups(most.ranks)
    n = base.fabric.n_hosts
    fitting = [group for group in groups if max(group) < n]
    if len(groups) > 1 and fitting:
        workloads = [{**workload, "hosts": list(group)} for group in fitting]
        if len(fitting) < len(groups):
            left.append(f"{len(groups) - len(fitting)} of {len(groups)} communicators are beyond "
                        f"the {n} hosts of {base.name}")  # fmt: skip
    else:
        ranks = min(most.ranks, n)
        workloads = [{**workload, "hosts": ranks}]
        if len(groups) > 1:
            left.append(
                f"{len(groups)} communicators are at work at once, on {max(map(max, groups)) + 1} "
                f"ranks, one a host; {base.name} has {n} hosts, so one of them alone was taken"
            )
        if ranks < most.ranks:
            left.append(f"{most.ranks} ranks on the {ranks} hosts of {base.name}: one rank a host")
    all_bytes = count(c.bytes * c.lines for c in log.calls if c.name != "Recv")
    share = most.bytes * most.lines / all_bytes
    if share < _LEAST_SHARE:
        raise ConfigError(
            f"the largest calls, {most.name} of {most.bytes} bytes over {most.ranks} ranks, have "
            f"{share:.0%} of the log's bytes, and a scenario has one kind and size: expected "
            f"{_LEAST_SHARE:.0%} or more; `dcqcn-gym jobs` takes all calls of a Chakra "
            "trace, of PyTorch's flight recorder or of AICB"
        )
    if share < 1:
        left.append(f"other calls, with {1 - share:.0%} of the log's bytes, are left out")
    said = f"{most.name} of {most.bytes} bytes over {most.ranks} ranks, from a log of NCCL"
    if len(workloads) > 1:
        said = f"{len(workloads)} at once: {said}"
    return workloads, said, left


def _kind(call: Calls) -> str | None:
    if call.name in _RINGS:
        return _RINGS[call.name]
    return "alltoall" if call.name.lower() in ("alltoall", "send") else None


def _workload(call: Calls, log: NcclLog, left: list[str]) -> dict[str, Any]:
    """Return the workload of a call, without its hosts."""
    kind = _kind(call)
    if kind != "alltoall":
        scale = 1 if call.name == "AllReduce" else call.ranks
        return {"kind": "ring", "collective": kind, "bytes": call.bytes * scale, "off_us": 0.0}
    if call.name == "Send" and log.most_sends.get(call.ranks, 0) < (call.ranks - 1) / 2:
        left.append(
            "Sends name no peer; a rank has fewer than half of its peers at a time, so they are "
            "taken as an exchange with the next rank"
        )
        return {
            "kind": "ring", "collective": "all-gather", "bytes": call.bytes * call.ranks,
            "off_us": 0.0,
        }  # fmt: skip
    return {"kind": "alltoall", "bytes": call.bytes, "off_us": 0.0}
