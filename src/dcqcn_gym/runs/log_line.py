"""What the event log holds of a setting and of a monitor interval (fields: docs/tuners.md)."""

from __future__ import annotations

from typing import Any

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.measured import Interval

__all__ = ["WIRE_FIELDS", "interval_line", "setting_json"]

WIRE_FIELDS = ("fsd_bytes", "metrics_bytes", "dispatch_bytes", "published_bytes")
"""Bytes on the wire per interval, as :class:`dcqcn_gym.core.overhead.WireCost` documents them."""


def setting_json(setting: DeviceSetting) -> dict[str, Any]:
    """Return a setting, or one per device group, in NVIDIA's units for a JSON file."""
    if isinstance(setting, Setting):
        return {
            name: int(value) if setting.table.knobs[name].integer else value
            for name, value in setting.to_nvidia().items()
        }
    return {group: setting_json(value) for group, value in setting.items()}


def interval_line(interval: Interval) -> dict[str, Any]:
    """Return the log line of one interval; docs/tuners.md lists the fields.

    ``i`` counts from 0. ``rounds`` are the rounds of collectives that finished, ``applications``
    what storage and parameter servers got done, ``unknown`` the fields of the report that the
    backend cannot know, ``scheme`` what schemes count beside cuts and increases; these keys are
    there only with one.
    """
    report, figures, fsd = interval.report, interval.figures, interval.report.fsd
    terms = interval.terms
    done = [r.as_dict() for r in interval.rounds]
    served = [d.as_dict() for d in interval.applications]
    return {
        "i": interval.number - 1,
        "start_ps": figures.start_ps,
        "end_ps": figures.end_ps,
        "setting": setting_json(interval.setting),
        "utility": float(interval.utility),
        "terms": [float(terms.tp), float(terms.rtt), float(terms.pfc)],
        "idle": interval.idle,
        "throughput_bps": figures.throughput_bps,
        "delivered_bytes": figures.delivered_bytes,
        "rtt_norm": float(terms.rtt),
        "rtt_mean_ps": figures.rtt_mean_ps,
        "pause_ps_mean": figures.pause_ps,
        **{name: getattr(figures, name) for name in _COUNTS},
        "fsd": {
            **{name: float(getattr(fsd, name)) for name in _FSD},
            "bins": [float(n) for n in fsd.bins],
            "mu": float(fsd.mu),
            "triggered": bool(fsd.triggered),
            "known": bool(fsd.known),
            **{name: int(getattr(fsd, name)) for name in _MONITOR},
        },
        "wire": {name: int(getattr(interval.cost, name)) for name in WIRE_FIELDS},
        **({"rounds": done} if done else {}),
        **({"applications": served} if served else {}),
        **({"unknown": sorted(report.unknown)} if report.unknown else {}),
        **({"scheme": dict(report.scheme_counters)} if report.scheme_counters else {}),
        **({"unlimited_flows": int(report.unlimited_flows)} if report.unlimited_flows else {}),
        "flows": {name: getattr(report.finished, name).tolist() for name in _FLOWS},
    }


_COUNTS = ("pauses", "marks", "cnps", "drops", "data_packets", "packet_hops", "active_flows")
_FSD = ("elephants", "potential", "mice", "weighted_elephants", "weighted_mice", "kl")
_MONITOR = ("data_plane_bytes", "control_plane_bytes", "tracked_flows", "untracked_flows")
_FLOWS = ("src", "dst", "bytes", "start_ps", "fct_ps", "ideal_fct_ps")
