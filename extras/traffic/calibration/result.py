"""What a calibration comes to: the calibrated scenario, the error that is left, tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.envs.scenario.calibration import Calibration
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.traffic.calibration.counters import INTERVALS
from dcqcn_gym.extras.traffic.calibration.fitting import CNP_DELAY, UNKNOWNS, Fit, fit, simulated
from dcqcn_gym.extras.traffic.calibration.measured import (
    BANDWIDTH,
    LATENCY,
    ROWS,
    Measured,
    Measurement,
)
from dcqcn_gym.extras.traffic.calibration.replay import Replay, with_values
from dcqcn_gym.runs.table import Table

KEYS: Mapping[str, tuple[str, str]] = {
    "message_us": ("transport", "message_us"),
    "data_overhead_bytes": ("wire", "data_overhead_bytes"),
    "cnp_delay_us": ("cnp", "delay_us"),
}
"""Where an unknown stands in a scenario; ``launch_us`` stands in ``[calibration]`` alone."""
MOST_HEADERS = 200
"""Bytes of a full packet beside its payload, at most."""
FULL = 0.8
"""Payload over the rate of a port that is taken for full."""
PACKETS = 1000
"""Of the message that a busy interval stands for."""
SIZES: tuple[tuple[str, int, float], ...] = (
    ("below 64 KB", 0, 2**16), ("from 64 KB to 1 MB", 2**16, 2**20),
    ("at 1 MB and above", 2**20, float("inf")),
)  # fmt: skip


def calibrate(scenario: Scenario, measured: Measured) -> tuple[Fit, Fit]:
    """Return what a scenario gives as it is, and fitted to measurements.

    Rows that it cannot run are left out in their tally; :class:`ConfigError` if none is left.
    """
    replay, rows = Replay(scenario), []
    for row in [*measured.rows, *_of_ports(scenario, measured)]:
        if problem := replay.problem(row):
            measured.tally.of(ROWS).taken -= 1
            measured.tally.leave_out(ROWS, problem, row.place)
            continue
        if row.mtu is not None and row.mtu != scenario.wire.payload_bytes:
            measured.tally.note(
                f"rows were measured with an MTU other than wire.payload_bytes = "
                f"{scenario.wire.payload_bytes}",
                row.mtu,
            )
        rows.append(row)
    measured.tally.check()
    if not rows and not measured.cnp_delays:
        raise ConfigError(
            "the scenario can run none of these measurements: " + "; ".join(measured.tally.lines())
        )
    before = simulated(scenario, rows, replay)
    return before, fit(scenario, rows, replay, measured.cnp_delays)


def _of_ports(scenario: Scenario, measured: Measured) -> Iterator[Measurement]:
    """Yield the busy intervals of ports as bandwidths of long messages, or leave them out."""
    payload, tally = scenario.wire.payload_bytes, measured.tally
    for size, us, place in measured.packets:
        share = payload * 8e6 / us / scenario.line_rate_bps
        if not payload < size <= payload + MOST_HEADERS:
            reason = f"intervals of packets are not full ones of wire.payload_bytes = {payload}"
            tally.leave_out(INTERVALS, reason, f"{size:.0f} B, {place}")
        elif share < FULL:
            tally.leave_out(
                INTERVALS,
                f"intervals of a port below {FULL:.0%} of its rate: what held it back no counter "
                "says, and so nothing of packets",
                f"{share:.0%}, {place}",
            )
        else:
            tally.take(INTERVALS)
            tally.came(ROWS)
            tally.take(ROWS)
            yield Measurement(BANDWIDTH, payload * PACKETS, us * PACKETS, place=place)


def calibration_of(found: Fit, sources: Sequence[str]) -> Calibration:
    """Return what the scenario carries from now on."""
    launch = found.fitted.get("launch_us")
    return Calibration(
        measurements=len(found.rows) + found.cnp_marks,
        error=error_text(found.errors()),
        sources=tuple(sources),
        launch_us=0.0 if launch is None else _rounded(launch.value),
        fitted={
            name: (_rounded(f.value), _rounded(f.low), _rounded(f.high))
            for name, f in found.fitted.items()
        },
        not_fitted=dict(found.not_fitted),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def calibrated(scenario: Scenario, found: Fit, sources: Sequence[str]) -> Scenario:
    """Return the scenario with the fitted values and the error that is left."""
    values = {
        name: float(round(f.value)) if name.endswith("_bytes") else _rounded(f.value)
        for name, f in found.fitted.items()
        if name in KEYS
    }
    return with_values(scenario, values).model_copy(
        update={"calibration": calibration_of(found, sources)}
    )


def calibrated_text(scenario: Scenario, found: Fit, sources: Sequence[str]) -> str:
    """Return the TOML of the calibrated scenario, with its tables of sizes inside."""
    done = calibrated(scenario, found, sources)
    written: dict[str, Any] = done.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    written.pop("name", None)
    return toml_text(written)


def error_text(errors: Sequence[tuple[Measurement, float]]) -> str:
    """Return the errors of bandwidth by size, and of latency, in one clause."""
    parts = []
    for words, low, high in SIZES:
        some = [e for row, e in errors if row.kind != LATENCY and low <= row.bytes < high]
        if some:
            parts.append(f"{_span(some)} {words}")
    some = [e for row, e in errors if row.kind == LATENCY]
    text = f"bandwidth {', '.join(parts)}" if parts else "" if errors else "no time was compared"
    if some:
        late = f"latency {_span([1 / (1 + e) - 1 for e in some])}"
        text = f"{text}; {late}" if text else late
    return text


def _span(errors: Sequence[float]) -> str:
    """Return ``within 6 %``, or how far it is off to both sides where that is more than 10 %."""
    low, high = min(errors), max(errors)
    worst = max(-low, high)
    if worst <= 0.1:
        return f"within {max(100 * worst, 0.1):.2g} %"
    ends = [] if low >= -0.005 else [f"up to {-100 * low:.2g} % low"]
    if high > 0.005:
        ends.append(f"up to {high + 1:.2g} times" if high > 1 else f"up to {100 * high:.2g} % high")
    return " and ".join(ends)


def fitted_table(found: Fit) -> Table:
    """Return every unknown with its value, interval and what it is."""
    rows = []
    for unknown in (*UNKNOWNS, CNP_DELAY):
        interval = found.fitted.get(unknown.name)
        if interval is None:
            told = f"not fitted: {found.not_fitted.get(unknown.name, 'not measured')}"
            rows.append((unknown.name, f"{found.values[unknown.name]:g}", told, unknown.what))
            continue
        ends = f"{interval.low:.4g} to {interval.high:.4g}"
        for name in interval.given:
            ends += f", if {name} is {found.values[name]:g}"
        rows.append((unknown.name, f"{interval.value:.4g}", ends, unknown.what))
    return Table(("unknown", "value", "95 % interval", "what it is"), rows)


def error_table(before: Fit, after: Fit) -> Table:
    """Return each operation: measured, simulated with the scenario as it was, and calibrated."""
    rows = []
    for (row, first), (_, last) in zip(before.errors(), after.errors(), strict=True):
        what = row.kind if row.qps == 1 else f"{row.kind}, {row.qps} queue pairs"
        ranks = "" if row.ranks == 2 else f", {row.ranks} ranks"
        rows.append((
            f"{what}{ranks}", f"{row.bytes:,}", f"{row.us:.4g}", f"{row.gigabytes:.3g}",
            _error(first), _error(last),
        ))  # fmt: skip
    heads = ("operation", "bytes", "us", "GB/s", "as it was", "calibrated")
    return Table(heads, rows)


def _error(error: float) -> str:
    return f"{1 + error:.3g} x" if error > 1 else f"{error:+.1%}"
