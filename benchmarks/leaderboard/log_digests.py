"""The digest of a log's run: from its second line on, in a fixed layout.

Committed runs are compared with runs that are made again, and a field of the log may get another
name meanwhile. The layout is that of log schema 3, with which the committed runs were digested; its
``rtt_norm`` is the second term of the utility.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_LINE = (
    "i", "start_ps", "end_ps", "setting", "utility", "terms", "idle", "throughput_bps",
    "delivered_bytes", "rtt_norm", "rtt_mean_ps", "pause_ps_mean", "pauses", "marks", "cnps",
    "drops", "data_packets", "packet_hops", "active_flows", "fsd", "wire", "rounds",
    "applications", "unknown", "scheme", "unlimited_flows", "flows",
)  # fmt: skip
_FSD = (
    "elephants", "potential", "mice", "weighted_elephants", "weighted_mice", "kl", "bins", "mu",
    "triggered", "known", "data_plane_bytes", "control_plane_bytes", "tracked_flows",
    "untracked_flows",
)  # fmt: skip
_FLOWS = ("src", "dst", "bytes", "start_ps", "fct_ps", "ideal_fct_ps")


def run_digest(log: bytes) -> str:
    """Return the SHA-256 of a log from its second line on, in this layout.

    The first line names versions of programs and of the log's layout; the rest is the run.
    """
    digest = hashlib.sha256()
    for line in log.splitlines(keepends=True)[1:]:
        digest.update(line if line.startswith(b'{"end"') else _in_layout(line))
    return digest.hexdigest()


def _in_layout(line: bytes) -> bytes:
    """Return an interval's line in this layout; what is no such line, like a cut one, as it is."""
    try:
        now: dict[str, Any] = json.loads(line)
        values = {
            **now,
            "pause_ps_mean": now["device_pause_ps"],
            "rtt_norm": now["terms"][1],
            "fsd": {name: now["fsd"][name] for name in _FSD},
            "flows": {name: now["flows"][name] for name in _FLOWS},
        }
        kept = {name: values[name] for name in _LINE if name in values}
        return json.dumps(kept, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return line
