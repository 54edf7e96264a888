"""The ``info`` of ``reset`` and ``step``: plain values in SI units, and Python objects.

:func:`info_schema` gives the JSON Schema of the plain values; ``report``, ``reports``,
``setting`` and ``terms`` are Python objects beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, cast

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from dcqcn_gym.core.collectives import CollectiveRound
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import (
    REPORT_FIELDS,
    FlowSizeDistribution,
    IntervalReport,
    fields_shown,
)
from dcqcn_gym.core.measured import Interval, mean_terms
from dcqcn_gym.core.overhead import WireCost
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.core.utility import IDLE_UTILITY, Terms

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


def _about(text: str) -> Any:
    return Field(description=text)


def _meaning(field: str) -> Any:
    return _about(REPORT_FIELDS[field].meaning)


class PlainInfo(TypedDict):
    """The plain values of ``info``; of the last interval of the step unless it says otherwise."""

    __pydantic_config__ = ConfigDict(extra="forbid", title="info")  # type: ignore[misc]

    seed: Annotated[Count, _about("traffic seed of this episode")]
    interval: Annotated[Count, _about("monitor intervals since reset, this one included")]
    intervals: Annotated[Count, _about("monitor intervals of this step (the cadence)")]
    start_ps: Annotated[Count, _about("simulated time at which the interval began")]
    end_ps: Annotated[Count, _about("simulated time at which it ended")]
    idle: Annotated[bool, _about("no interval of this step had traffic")]
    utility: Annotated[float, _about("mean utility of the intervals with traffic; 1 if idle")]
    o_tp: Annotated[Share, _about("throughput term, mean like utility")]
    o_rtt: Annotated[Share, _about("round-trip term, mean like utility")]
    o_pfc: Annotated[Share, _about("pause term, mean like utility")]
    throughput_bps: Annotated[float, _about("payload delivered per second, all hosts")]
    sent_bps: Annotated[float, _about("data on the wire per second, all host uplinks")]
    delivered_bytes: Annotated[Count, _meaning("delivered_bytes")]
    rtt_mean_s: Annotated[float, _about("mean over RTT samples; 0 without samples")]
    rtt_base_s: Annotated[float, _about("mean base RTT of the same samples; 0 without")]
    device_pause_s: Annotated[float, _about("paused time, mean over devices")]
    pauses: Annotated[Count, _meaning("pauses")]
    marks: Annotated[Count, _meaning("marks")]
    cnps: Annotated[Count, _meaning("cnps")]
    drops: Annotated[Count, _meaning("drops")]
    retransmitted_packets: Annotated[Count, _meaning("retransmitted_packets")]
    max_queue_bytes: Annotated[Count, _about("longest queue of any port")]
    packet_hops: Annotated[Count, _meaning("packet_hops")]
    active_flows: Annotated[Count, _meaning("active_flows")]
    finished_flows: Annotated[Count, _about("flows that finished")]
    finished_rounds: Annotated[Count, _about("rounds of collectives that finished in this step")]
    algbw_bytes_per_s: Annotated[float, _about("mean algbw of these rounds; 0 without")]
    busbw_bytes_per_s: Annotated[float, _about("mean busbw of these rounds; 0 without")]
    iterations_per_s: Annotated[
        float, _about("such rounds with their pauses per second; 0 without")
    ]
    fsd_elephants: Annotated[float, _meaning("fsd.elephants")]
    fsd_potential: Annotated[float, _meaning("fsd.potential")]
    fsd_mice: Annotated[float, _meaning("fsd.mice")]
    fsd_bins: Annotated[list[float], _meaning("fsd.bins")]
    fsd_known: Annotated[bool, _meaning("fsd.known")]
    elephant_share: Annotated[Share, _about("weighted share of elephants; 0.5 if unknown")]
    mu: Annotated[float, Field(ge=0.5, le=1), _about("share of the dominant flow type")]
    fsd_kl: Annotated[float, _meaning("fsd.kl")]
    fsd_triggered: Annotated[bool, _meaning("fsd.triggered")]
    fsd_bytes: Annotated[Count, _about("sent by the monitors in this step")]
    metrics_bytes: Annotated[Count, _about("round trips and pauses sent in this step")]
    dispatch_bytes: Annotated[Count, _about("settings sent in this step")]
    published_bytes: Annotated[Count, _about("all three at the sizes of PARALEON's Table IV")]
    fsd_data_plane_bytes: Annotated[Count, _meaning("fsd.data_plane_bytes")]
    fsd_control_plane_bytes: Annotated[Count, _meaning("fsd.control_plane_bytes")]
    fsd_tracked_flows: Annotated[Count, _meaning("fsd.tracked_flows")]
    fsd_untracked_flows: Annotated[Count, _meaning("fsd.untracked_flows")]


class Info(PlainInfo):
    """``info`` of :class:`~dcqcn_gym.envs.dcqcn.DcqcnEnv`: the plain values and the objects."""

    setting: DeviceSetting
    """The setting that was in force."""
    terms: Terms
    """O_TP, O_RTT, O_PFC as one object."""
    report: IntervalReport | None
    """The last interval; None after a reset without warm-up."""
    reports: tuple[IntervalReport, ...]
    """Every interval of this step."""
    rounds: tuple[CollectiveRound, ...]
    """The rounds of all-to-alls and rings that finished in this step."""
    scheme_counters: dict[str, int]
    """What the schemes of the NICs count beside cuts and increases, in the last interval."""


def info_schema() -> dict[str, Any]:
    """Return the JSON Schema of the plain values of ``info``."""
    schema = TypeAdapter(PlainInfo).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def plain_info(info: Info) -> PlainInfo:
    """Return only the plain values, which :func:`info_schema` describes."""
    plain = {name: info[name] for name in PlainInfo.__annotations__}  # type: ignore[literal-required]
    return cast(PlainInfo, plain)


def make_info(
    *, seed: int, interval: int, setting: DeviceSetting, intervals: Sequence[Interval]
) -> Info:
    """Build ``info`` for a step of so many intervals (none: a reset without warm-up).

    ``terms`` and ``utility`` are means over the intervals with traffic; all of them if none had.
    """
    last = intervals[-1] if intervals else None
    busy = [i for i in intervals if not i.idle]
    counted = busy or intervals
    terms = mean_terms([i.terms for i in counted])
    rounds = tuple(done for i in intervals for done in i.rounds)
    return {
        "seed": seed,
        "interval": interval,
        "intervals": len(intervals),
        "idle": not busy,
        "utility": mean([i.utility for i in counted]) if counted else IDLE_UTILITY,
        "o_tp": terms.tp,
        "o_rtt": terms.rtt,
        "o_pfc": terms.pfc,
        **_measured(last),  # type: ignore[typeddict-item]
        **{name: count(getattr(i.cost, name) for i in intervals) for name in _COSTS},
        **_bandwidths(rounds),
        "setting": setting,
        "terms": terms,
        "report": last.report if last else None,
        "reports": tuple(i.report for i in intervals),
        "rounds": rounds,
        "scheme_counters": dict(last.report.scheme_counters) if last else {},
    }


def _bandwidths(rounds: tuple[CollectiveRound, ...]) -> dict[str, Any]:
    n = len(rounds)
    cycles_s = count(r.time_ps + r.collective.pause_ps for r in rounds) * 1e-12
    return {
        "finished_rounds": n,
        "algbw_bytes_per_s": mean([r.algbw for r in rounds]) if n else 0.0,
        "busbw_bytes_per_s": mean([r.busbw for r in rounds]) if n else 0.0,
        "iterations_per_s": n / cycles_s if n else 0.0,
    }


_COSTS = tuple(f.name for f in fields(WireCost))
_COUNTS, _SIZES = fields_shown("info"), fields_shown("info", "fsd")
_FIGURES = ("throughput_bps", "sent_bps", "max_queue_bytes", "finished_flows")
"""Figures that stand in ``info`` under their own names."""

_UNMEASURED: dict[str, Any] = {
    **dict.fromkeys(("start_ps", "end_ps", "max_queue_bytes", "finished_flows"), 0),
    **{name: field.zeros(0) for name, field in _COUNTS.items()},
    **dict.fromkeys(("throughput_bps", "sent_bps"), 0.0),
    **dict.fromkeys(("rtt_mean_s", "rtt_base_s", "device_pause_s"), 0.0),
}


def _measured(interval: Interval | None) -> dict[str, Any]:
    if interval is None:
        return {**_UNMEASURED, **_seen(FlowSizeDistribution())}
    report, figures = interval.report, interval.figures
    return {
        "start_ps": int(report.start_ps),
        "end_ps": int(report.end_ps),
        **{name: field.of(report) for name, field in _COUNTS.items()},
        **{name: getattr(figures, name) for name in _FIGURES},
        "rtt_mean_s": (figures.rtt_mean_ps or 0.0) * 1e-12,
        "rtt_base_s": (figures.rtt_base_ps or 0.0) * 1e-12,
        "device_pause_s": figures.device_pause_ps * 1e-12,
        **_seen(report.fsd),
    }


def _seen(fsd: FlowSizeDistribution) -> dict[str, Any]:
    return {
        **{field.flat: field.plain(getattr(fsd, name)) for name, field in _SIZES.items()},
        "elephant_share": fsd.elephant_share,
        "mu": fsd.mu,
    }
