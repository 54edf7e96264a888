"""What the event log holds of a setting and of a monitor interval (fields: docs/tuners.md)."""

from __future__ import annotations

from typing import Any

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import fields_shown
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.measured import Interval

WIRE_FIELDS = ("fsd_bytes", "metrics_bytes", "dispatch_bytes", "published_bytes")
"""Bytes on the wire per interval, as :class:`dcqcn_gym.core.overhead.WireCost` documents them."""


def setting_json(setting: DeviceSetting) -> dict[str, Any]:
    """Return a setting, or one per device group, for a JSON file."""
    if isinstance(setting, Setting):
        return {
            name: int(value) if setting.table.knobs[name].integer else value
            for name, value in setting.items()
        }
    return {group: setting_json(value) for group, value in setting.items()}


def interval_line(interval: Interval) -> dict[str, Any]:
    """Return the log line of one interval; docs/tuners.md lists the fields.

    ``i`` counts from 0. ``rounds`` are the rounds of collectives that finished, ``jobs`` where the
    time of iterations among them went (:data:`~dcqcn_gym.core.iterations.Part`), ``applications``
    what storage and parameter servers got done, ``unknown`` the fields of the report that the
    backend cannot know, ``scheme`` what schemes count beside cuts and increases; these keys are
    there only with one.
    """
    report, figures, terms = interval.report, interval.figures, interval.terms
    done = [r.as_dict() for r in interval.rounds]
    parts = [part for r in interval.rounds if (part := r.part)]
    served = [d.as_dict() for d in interval.applications]

    def shown(part: str = "") -> dict[str, Any]:
        return {name: field.of(report) for name, field in fields_shown("log", part).items()}

    return {
        "i": interval.number - 1,
        "start_ps": int(report.start_ps),
        "end_ps": int(report.end_ps),
        "setting": setting_json(interval.setting),
        "utility": float(interval.utility),
        "terms": [float(terms.tp), float(terms.rtt), float(terms.pfc)],
        "idle": interval.idle,
        "throughput_bps": figures.throughput_bps,
        "rtt_mean_ps": figures.rtt_mean_ps,
        "device_pause_ps": figures.device_pause_ps,
        **({} if figures.worst_pause_ps is None else {"worst_pause_ps": figures.worst_pause_ps}),
        **shown(),
        "fsd": {**shown("fsd"), "mu": float(report.fsd.mu)},
        "wire": {name: int(getattr(interval.cost, name)) for name in WIRE_FIELDS},
        **({"rounds": done} if done else {}),
        **({"jobs": parts} if parts else {}),
        **({"applications": served} if served else {}),
        **({"unknown": sorted(report.unknown)} if report.unknown else {}),
        **({"scheme": dict(report.scheme_counters)} if report.scheme_counters else {}),
        **({"unlimited_flows": int(report.unlimited_flows)} if report.unlimited_flows else {}),
        "flows": shown("finished"),
    }
