"""Dumps of devices and their counters, read into one value for the checks of a diagnosis.

``config_db.json`` of SONiC, ``rdma statistic``, ``ethtool -S``, ``mlnx_qos``, and folders
``ecn/roce_np`` and ``ecn/roce_rp`` or ``hw_counters`` of a NIC.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.dump_files import LINES, read_dumps_into
from dcqcn_gym.extras.traffic.sonic import SonicSwitch

COUNTERS = (
    "rp_cnp_ignored", "rp_cnp_handled", "np_cnp_sent", "np_ecn_marked_roce_packets",
    "out_of_sequence", "packet_seq_err", "rx_discards_phy", "rx_pause_ctrl_phy",
    "tx_pause_ctrl_phy", "rx_global_pause", "tx_global_pause",
    *(f"{side}_prio{n}_pause" for n in range(8) for side in ("rx", "tx")),
)  # fmt: skip
"""Counters of ``rdma statistic`` and ``ethtool -S`` that are judged (names of mlx5)."""
_PAIR = re.compile(r"([A-Za-z_]\w{0,60})[:\s=]+(\d{1,20})(?=\s|$)")
_SWITCHED = re.compile(r"(?:^|/)roce_(np|rp)/enable/([0-7])$")


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
    switches: list[SonicSwitch] = field(default_factory=list)

    def count(self, name: str, value: int, line: str) -> None:
        """Add to a counter."""
        if value or name not in self.counters:
            self.lines[name] = line
        self.counters[name] = self.counters.get(name, 0) + value

    def switch(self, switch: SonicSwitch) -> None:
        """Take the tables of a switch."""
        if not any(map(switch.table, ("QUEUE", "WRED_PROFILE", "PORT_QOS_MAP"))):
            raise ConfigError(f"{switch.name}: has no QUEUE, WRED_PROFILE or PORT_QOS_MAP; "
                              "expected SONiC's config_db.json whole")  # fmt: skip
        self.switches.append(switch)

    def line(self, place: str, line: str, whole: str) -> None:
        """Take the counters of a line, or what `mlnx_qos` says of PFC."""
        pairs = [(n, int(v)) for n, v in _PAIR.findall(line) if n in COUNTERS]
        for name, value in pairs:
            self.count(name, value, f"{place}: {name} {value}")
        enabled = re.fullmatch(r"enabled((?:\s+[01]){8})", line)
        if enabled:
            self.pfc = [flag == "1" for flag in enabled[1].split()]
        if pairs or enabled:
            self.tally.take(LINES)
        else:
            self.tally.leave_out(LINES, "lines hold no counter that is judged", line)

    def file(self, path: Path, text: str) -> None:
        """Take a counter of hw_counters, or whether a point is on for a priority."""
        match = _SWITCHED.search(path.as_posix())
        if match and text in ("0", "1"):
            self.points[match[1], int(match[2])] = text == "1"
        elif path.name not in COUNTERS:
            self.tally.leave_out(LINES, "files hold nothing that is judged", path.name)
            return
        elif not text.isdecimal():
            reason = "counters are no whole numbers"
            self.tally.leave_out(LINES, reason, f"{path.name} {text}")
            return
        else:
            self.count(path.name, int(text), f"{path.name} {text}")
        self.tally.take(LINES)


def read_dumps(paths: Sequence[Path]) -> Dumps:
    """Read dumps and folders; raise :class:`ConfigError` for what cannot be read."""
    dumps = Dumps()
    read_dumps_into(dumps, paths)
    dumps.tally.check()
    if not (dumps.counters or dumps.points or dumps.pfc or dumps.switches):
        raise ConfigError(
            "nothing that can be judged in these files; expected config_db.json, `rdma statistic`, "
            "`ethtool -S`, `mlnx_qos`, or a folder with roce_np and roce_rp"
            + "".join(other_use(path) for path in paths if path.is_file())
        )
    return dumps
