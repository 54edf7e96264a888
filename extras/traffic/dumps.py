"""Dumps of devices and their counters, read into one value for the checks of a diagnosis.

``config_db.json`` of SONiC, ``rdma statistic``, ``ethtool -S``, ``mlnx_qos``, and folders
``ecn/roce_np`` and ``ecn/roce_rp`` or ``hw_counters`` of a NIC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from dcqcn_gym.core.balance import Tally
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.extras.traffic.device_state import LINES, MOST_BYTES, MOST_FILES

COUNTERS = (
    "rp_cnp_ignored", "rp_cnp_handled", "np_cnp_sent", "np_ecn_marked_roce_packets",
    "out_of_sequence", "packet_seq_err", "rx_discards_phy", "rx_pause_ctrl_phy",
    "tx_pause_ctrl_phy", "rx_global_pause", "tx_global_pause",
    *(f"{side}_prio{n}_pause" for n in range(8) for side in ("rx", "tx")),
)  # fmt: skip
"""Counters of ``rdma statistic`` and ``ethtool -S`` that are judged (names of mlx5)."""
_PAIR = re.compile(r"([A-Za-z_]\w{0,60})[:\s=]+(\d{1,20})(?=\s|$)")
_SWITCHED = re.compile(r"(?:^|/)roce_(np|rp)/enable/([0-7])$")
Tables: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, the lines that show it, and what to do."""

    what: str
    shown_by: tuple[str, ...]
    do: str


@dataclass
class Dumps:
    """What was read: counters by name, points that are switched on or off, tables of a switch."""

    tally: Tally = field(default_factory=Tally)
    counters: dict[str, int] = field(default_factory=dict)
    """Summed over links and files."""
    lines: dict[str, str] = field(default_factory=dict)
    """By counter the first line that is not 0, else the last."""
    points: dict[tuple[str, int], bool] = field(default_factory=dict)
    """(``np`` or ``rp``, priority) -> on."""
    pfc: list[bool] | None = None
    """By priority, of ``mlnx_qos``."""
    switches: list[tuple[str, Tables]] = field(default_factory=list)

    def count(self, name: str, value: int, line: str) -> None:
        """Add to a counter."""
        if value or name not in self.counters:
            self.lines[name] = line
        self.counters[name] = self.counters.get(name, 0) + value


def read_dumps(paths: Sequence[Path]) -> Dumps:
    """Read dumps and folders; raise :class:`ConfigError` for what cannot be read."""
    dumps = Dumps()
    for path in paths:
        if path.is_dir():
            _read_folder(path, dumps)
            continue
        data = read_file(path, MOST_BYTES)
        if data.lstrip()[:1] == b"{":
            try:
                whole = parse_json(data)
            except ValueError as error:
                raise ConfigError(f"{path}: not JSON: {error}") from None
            _read_switch(path, whole, dumps)
        else:
            _read_text(path, data.decode("utf-8", "replace"), dumps)
    dumps.tally.check()
    if not (dumps.counters or dumps.points or dumps.pfc or dumps.switches):
        raise ConfigError(
            "nothing that can be judged in these files; expected config_db.json, `rdma statistic`, "
            "`ethtool -S`, `mlnx_qos`, or a folder with roce_np and roce_rp"
        )
    return dumps


def _read_switch(path: Path, whole: Any, dumps: Dumps) -> None:
    tables = {
        name: {key: row for key, row in rows.items() if isinstance(row, dict)}
        for name, rows in whole.items()
        if isinstance(rows, dict)
    }
    known = [name for name in ("QUEUE", "WRED_PROFILE", "PORT_QOS_MAP") if name in tables]
    if not known:
        raise ConfigError(f"{path}: has no QUEUE, WRED_PROFILE or PORT_QOS_MAP; expected SONiC's "
                          "config_db.json")  # fmt: skip
    dumps.switches.append((path.name, tables))


def _read_folder(path: Path, dumps: Dumps) -> None:
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    if len(files) > MOST_FILES:
        raise ConfigError(f"{path}: {len(files)} files; expected a folder of one NIC, at most "
                          f"{MOST_FILES}")  # fmt: skip
    for one in files:
        dumps.tally.came(LINES)
        match = _SWITCHED.search(one.as_posix())
        text = read_file(one, 4096).decode("utf-8", "replace").strip() if match else ""
        if match and text in ("0", "1"):
            dumps.tally.take(LINES)
            dumps.points[match[1], int(match[2])] = text == "1"
        elif one.name in COUNTERS:  # hw_counters of sysfs, one value a file
            _take_counter(one, dumps)
        else:
            dumps.tally.leave_out(LINES, "files hold nothing that is judged", one.name)


def _take_counter(path: Path, dumps: Dumps) -> None:
    text = read_file(path, 4096).decode("utf-8", "replace").strip()
    if not text.isdigit():
        dumps.tally.leave_out(LINES, "counters are no whole numbers", f"{path.name} {text}")
        return
    dumps.tally.take(LINES)
    dumps.count(path.name, int(text), f"{path.name} {text}")


def _read_text(path: Path, text: str, dumps: Dumps) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        if not (words := line[:20_000].strip()):
            continue
        dumps.tally.came(LINES)
        pairs = [(n, int(v)) for n, v in _PAIR.findall(words) if n in COUNTERS]
        enabled = re.fullmatch(r"enabled((?:\s+[01]){8})", words)
        for name, value in pairs:
            dumps.count(name, value, f"{path.name} line {number}: {name} {value}")
        if enabled:
            dumps.pfc = [flag == "1" for flag in enabled[1].split()]
        if pairs or enabled:
            dumps.tally.take(LINES)
        else:
            dumps.tally.leave_out(LINES, "lines hold no counter that is judged", words)
