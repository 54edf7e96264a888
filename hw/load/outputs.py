"""What perftest and nccl-tests print, as numbers.

perftest (linux-rdma/perftest): a line of ``#bytes``, ``#iterations`` and figures after a header;
``ib_write_lat`` gives *half* round trips in microseconds. nccl-tests (NVIDIA/nccl-tests): one row
per size with time (us), algorithm and bus bandwidth (GB/s) and errors, out of place then in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from dcqcn_gym.core.errors import DeviceError

FLOW_COLUMNS = "#up_to_bytes flows failed bytes mean_ms p99_ms late_ms mean_gbps"
"""Header of the table that ``rdma_write_flows`` prints; ours, not another project's."""


@dataclass(frozen=True)
class Bandwidth:
    """One size of ``ib_write_bw --report_gbits``."""

    message_bytes: int
    iterations: int
    peak_bps: float
    mean_bps: float


@dataclass(frozen=True)
class Latency:
    """One size of ``ib_write_lat``; round trips, twice what is printed."""

    message_bytes: int
    iterations: int
    least_s: float
    median_s: float
    mean_s: float
    p99_s: float


@dataclass(frozen=True)
class MeasuredCollective:
    """One size of an nccl-test, out of place."""

    message_bytes: int
    time_s: float
    bus_bps: float
    errors: int


@dataclass(frozen=True)
class MeasuredClass:
    """Flows of ``rdma_write_flows`` up to a size, and above that of the row before."""

    up_to_bytes: int
    flows: int
    failed: int
    bytes: int
    """Of the flows that did not fail."""
    mean_s: float
    p99_s: float
    late_s: float
    """Mean time from when a flow was due to when it began."""
    mean_bps: float


def bandwidths(text: str) -> list[Bandwidth]:
    """Return the rows of ``ib_write_bw``; raise DeviceError if it did not report in Gb/s."""
    rows = _rows(text, "ib_write_bw", 5)
    if rows and "BW average[Gb/sec]" not in text:
        raise DeviceError("`ib_write_bw` reported no Gb/s; start it with --report_gbits")
    return [Bandwidth(int(r[0]), int(r[1]), r[2] * 1e9, r[3] * 1e9) for r in rows]


def latencies(text: str) -> list[Latency]:
    """Return the rows of ``ib_write_lat``."""
    return [
        Latency(int(r[0]), int(r[1]), *(2e-6 * r[i] for i in (2, 4, 5, 7)))
        for r in _rows(text, "ib_write_lat", 9)
    ]


def _rows(text: str, program: str, columns: int) -> list[list[float]]:
    """Return the rows of numbers after perftest's header; DeviceError without header or rows."""
    _, found, body = text.rpartition("#bytes")
    rows = []
    for line in body.splitlines()[1:]:
        words = line.split()
        if not words or words[0].startswith("-"):
            break
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            raise _none(program, text) from None
        if len(words) != columns or not words[0].isdecimal() or not words[1].isdecimal():
            raise _none(program, text)
    if not found or not rows:
        raise _none(program, text)
    return rows


def flow_classes(text: str) -> list[MeasuredClass]:
    """Return the rows of ``rdma_write_flows``; raise DeviceError without its table."""
    _, found, body = text.rpartition(FLOW_COLUMNS)
    rows = []
    try:
        for line in body.split("\n")[1:]:
            if line:
                w = line.split()
                if len(w) != 8:
                    raise ValueError
                most, flows, failed, size = (int(x) for x in w[:4])
                typical, p99, late = (float(x) * 1e-3 for x in w[4:7])
                rate = float(w[7]) * 1e9
                rows.append(MeasuredClass(most, flows, failed, size, typical, p99, late, rate))
    except ValueError:
        raise _none("rdma_write_flows", text) from None
    if not found or not rows:
        raise _none("rdma_write_flows", text)
    return rows


def collectives(text: str) -> list[MeasuredCollective]:
    """Return the rows of an nccl-test; raise DeviceError without one, or if a result was wrong."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 9 or words[0].startswith("#") or not words[0].isdecimal():
            continue
        try:
            time_us, bus, wrong = float(words[5]), float(words[7]), words[8]
            errors = 0 if wrong == "N/A" else int(wrong)
            rows.append(MeasuredCollective(int(words[0]), time_us * 1e-6, bus * 8e9, errors))
        except ValueError:
            raise _none("nccl-tests", text) from None
    if not rows:
        raise _none("nccl-tests", text)
    bad = [row for row in rows if row.errors]
    if bad:
        raise DeviceError(f"nccl-tests counted {bad[0].errors} errors at {bad[0].message_bytes} B")
    return rows


def _none(program: str, text: str) -> DeviceError:
    last = text.strip().splitlines()[-1:] or [""]
    return DeviceError(
        f"`{program}` printed no results; its last line: {last[0][:120]!r} (did it find its peer?)"
    )
