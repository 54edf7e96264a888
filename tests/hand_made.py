"""Made by hand for tests: interval reports, datagrams, installed packages with plug-ins."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.flow_export.netflow import (
    IPFIX_TEMPLATE,
    FlowRecord,
    encode_ipfix,
    shortest_record,
)
from dcqcn_gym.core.interval import IntervalReport, report_with


def blank_report(n_hosts: int = 4, rate_bps: float = 100e9, **changes: Any) -> IntervalReport:
    """Return a 1 ms interval of a silent single switch, with these fields changed.

    Ports 0..n-1 are the hosts' uplinks, n..2n-1 the switch's ports. Lists become arrays.
    """
    ports = 2 * n_hosts
    hosts = list(range(n_hosts))

    report = report_with(
        np.full(n_hosts, rate_bps),
        np.array([*hosts, *([n_hosts] * n_hosts)]),
        np.full(ports, rate_bps),
        end_ps=1_000_000_000,
    )
    arrays = {
        name: np.asarray(value, dtype=getattr(report, name).dtype)
        for name, value in changes.items()
        if isinstance(getattr(report, name), np.ndarray)
    }
    return replace(report, **{**changes, **arrays})


def install_plugin(site: Path, package: str, group: str, points: Mapping[str, str]) -> None:
    """Write the metadata of ``package`` with these entry points into ``site``, a path of imports.

    ``points`` maps a name to ``"module:Class"``; the module has to lie in ``site``.
    """
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))


def encode_v9(records: Sequence[FlowRecord], sequence: int) -> list[bytes]:
    """Return NetFlow v9 datagrams of these records: IPFIX has another header and set number."""
    found: list[bytes] = []
    for message in encode_ipfix(records, sequence):
        (length,) = struct.unpack_from(">H", message, 18)
        template, data = message[18 : 16 + length], message[16 + length :]
        rows = (len(data) - 4) // shortest_record(IPFIX_TEMPLATE)
        head = struct.pack(">HHIIIIH", 9, 1 + rows, 0, 0, sequence + len(found), 0, 0)
        found.append(head + template + data)
    return found
