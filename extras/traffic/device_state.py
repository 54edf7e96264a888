"""What devices say of their setting, as ``[initial]`` and ``[switch]`` of a scenario.

Read are pasted or redirected dumps: ``mlxconfig query`` and ``mstconfig query``, SONiC's
``show ecn`` and ``config_db.json``, thresholds in configurations of EOS, NX-OS and NVUE (``nv
config show -o commands``), and folders such as ``/sys/class/net/DEV/ecn`` or ``cc_params``
of debugfs, or a copy of them, one value a file. Names are those of their sources
(``RPG_AI_RATE_P1``, ``rpg_ai_rate``, ``dce_tcp_g``, ``green_min_threshold`` in bytes); lines of
something else are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.core.balance import Tally
from dcqcn_gym.core.device_units import from_device
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.knobs import KNOBS, Knob
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS

LINES = "lines"
"""The unit in which dumps are accounted for; of a folder, its files."""
MOST_BYTES = 16 * 2**20
MOST_FILES = 10_000
_LINE = re.compile(r"[\s*]*([A-Za-z_][\w.]{0,80})\s*(?:\s|[:=|])\s*(.{1,120}?)\s*$")
_NUMBER = re.compile(r"(?:[A-Za-z]+\((\d{1,18})\)|(0x[0-9a-fA-F]{1,16}|-?\d{1,18}))$")
"""``5``, ``0x5``, and mlxconfig's ``True(1)``."""
_UNITS_KB = {"bytes": 1e-3, "kbytes": 1.0, "mbytes": 1e3}
"""KB (1000 B) of a unit of thresholds; EOS's and NX-OS's kbytes are taken for 1000 B."""
_RANDOM_DETECT = re.compile(
    r"random-detect (?:ecn )?minimum-threshold (\d{1,12}) ([km]?bytes) "
    r"maximum-threshold (\d{1,12}) ([km]?bytes)"
    r"(?: (?:max-mark-probability|drop-probability) (\d{1,3}))?(?: weight \d{1,3})?( ecn)?$"
)
"""EOS (a queue's ``random-detect ecn``) and NX-OS (a queuing policy's, with ``ecn`` at its end)."""
_NVUE = re.compile(
    r"nv set qos congestion-control \S{1,64} traffic-class \S{1,32} "
    r"(min-threshold|max-threshold|probability) (\d{1,12})$"
)
_NVUE_KNOBS = {"min-threshold": "kmin", "max-threshold": "kmax", "probability": "pmax"}
_SHARE = re.compile(r"fill-level \d")
"""Junos: a share of the buffer, which the line does not say."""
_SHORT = {
    "rp_time_reset": ("rpg_time_reset",),
    "rp_clamp_tgt_rate_ati": ("clamp_tgt_rate_after_time_inc",),
}
"""Names of knobs in the kernel's folders that follow from no column of the knob table."""
_MARKS_GREEN = ("ecn_all", "ecn_green", "ecn_green_red", "ecn_green_yellow")
_LOSSLESS = re.compile(r"(?:^|\D)[34](?:\D|$)|3-4")


@dataclass
class DeviceState:
    """The knobs that dumps name, each with the values that were found and how often."""

    tally: Tally = field(default_factory=Tally)
    found: dict[str, Counter[float]] = field(default_factory=dict)
    places: dict[tuple[str, float], str] = field(default_factory=dict)

    def see(self, name: str, value: float, place: str) -> None:
        """Count a knob's value at a place."""
        self.found.setdefault(name, Counter())[value] += 1
        self.places.setdefault((name, value), place)

    def initial(self) -> dict[str, float]:
        """Return one value a knob: that of most places, the first of equals; others are noted."""
        chosen: dict[str, float] = {}
        for name in (*KNOBS, *OPTIONAL_KNOBS):
            values = self.found.get(name)
            if not values:
                continue
            (value, many), *others = values.most_common()
            chosen[name] = value
            for other, times in others:
                self.tally.note(
                    f"values of {name} differ: {value:g} was taken ({many}), not",
                    f"{other:g} at {self.places[name, other]} ({times})",
                )
        if not chosen:
            raise ConfigError(
                "no knob of DCQCN in these files; expected `mlxconfig query`, `show ecn`, "
                "config_db.json, or a folder with files such as rpg_ai_rate"
                + "".join(f"; {line}" for line in self.tally.lines()[:3])
            )
        self.tally.check()
        return chosen

    def tables(self) -> dict[str, dict[str, float]]:
        """Return the tables of a scenario: ``[initial]``, and ``[switch]`` with what is no knob."""
        initial = self.initial()
        alpha = initial.pop("pfc_alpha", None)
        return {
            **({"initial": initial} if initial else {}),
            **({} if alpha is None else {"switch": {"alpha": alpha}}),
        }


def read_device_state(paths: Sequence[Path]) -> DeviceState:
    """Read dumps and folders; raise :class:`ConfigError` for what cannot be read."""
    state = DeviceState()
    for path in paths:
        if path.is_dir():
            _read_folder(path, state)
            continue
        data = read_file(path, MOST_BYTES)
        if data.lstrip()[:1] == b"{":
            _read_config_db(path, data, state)
        else:
            _read_lines(path, data.decode("utf-8", "replace"), state)
    return state


def _names() -> dict[str, Knob]:
    """Return every name of a device -> its knob, in lower case."""
    found: dict[str, Knob] = {}
    for knob in KNOBS.values():
        names = (knob.name, knob.mlxconfig, knob.debugfs, knob.sonic, *_SHORT.get(knob.name, ()))
        for name in filter(None, names):
            found[name.lower()] = knob
    return found


def _value(knob: Knob, name: str, text: str) -> float | None:
    """Return a knob's value in its unit; None for what is no number in its legal range."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    whole = _whole(match[1] or match[2])
    value = from_device(knob, whole) if name == knob.sonic else float(whole)
    low, high = knob.legal
    return value if low <= value <= high else None


def _whole(text: str) -> int:
    return int(text, 16) if text.startswith("0x") else int(text)


def _take(state: DeviceState, names: Mapping[str, Knob], name: str, text: str, place: str) -> None:
    """Take one named value, or leave it out with the reason."""
    plain = re.sub(r"_P[12]$", "", name.strip()).lower()
    knob = names.get(plain)
    if knob is None:
        state.tally.leave_out(LINES, "lines name no knob of DCQCN", name)
        return
    value = _value(knob, plain, text.strip())
    if value is None:
        low, high = knob.legal
        reason = f"values of {knob.name} are no numbers in {low:g} to {high:g} {knob.unit}"
        state.tally.leave_out(LINES, reason, f"{name} {text}")
        return
    state.tally.take(LINES)
    state.see(knob.name, value, place)


def _read_lines(path: Path, text: str, state: DeviceState) -> None:
    names = _names()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        state.tally.came(LINES)
        if _take_command(" ".join(line[:300].split()), f"{path.name} line {number}", state):
            continue
        match = _LINE.match(line[:300])
        if match is None:
            state.tally.leave_out(LINES, "lines have no name and value", line.strip())
        else:
            _take(state, names, match[1], match[2], f"{path.name} line {number}")


def _take_command(line: str, place: str, state: DeviceState) -> bool:
    """Take a line of a switch's configuration: EOS, NX-OS, NVUE; False if it is none."""
    if match := _RANDOM_DETECT.search(line):
        low, low_unit, high, high_unit, percent, ecn = match.groups()
        if not ecn and " ecn " not in match[0]:
            state.tally.leave_out(LINES, "thresholds drop and do not mark (no ecn)", line)
            return True
        found: dict[str, float] = {
            "kmin": int(low) * _UNITS_KB[low_unit],
            "kmax": int(high) * _UNITS_KB[high_unit],
        }
        if percent:
            found["pmax"] = int(percent) / 100
    elif match := _NVUE.search(line):
        knob, number = _NVUE_KNOBS[match[1]], int(match[2])
        found = {knob: number / 100 if knob == "pmax" else number / 1000}
    elif _SHARE.search(line):
        state.tally.leave_out(LINES, "thresholds are shares of a buffer that no line says", line)
        return True
    else:
        return False
    wrong = [n for n, v in found.items() if not KNOBS[n].legal[0] <= v <= KNOBS[n].legal[1]]
    if wrong:
        state.tally.leave_out(LINES, f"values of {wrong[0]} are out of its range", line)
        return True
    state.tally.take(LINES)
    for name, value in found.items():
        state.see(name, value, place)
    return True


def _read_folder(path: Path, state: DeviceState) -> None:
    names = _names()
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    if len(files) > MOST_FILES:
        raise ConfigError(f"{path}: {len(files)} files; expected a folder of one NIC, at most "
                          f"{MOST_FILES}")  # fmt: skip
    for one in files:
        state.tally.came(LINES)
        try:
            text = read_file(one, 4096).decode("utf-8", "replace").strip()
        except ConfigError:
            state.tally.leave_out(LINES, "files cannot be read", one.relative_to(path))
            continue
        name = next(
            (part for part in (one.name, one.parent.name) if part.lower() in names), one.name
        )
        _take(state, names, name, text.split()[0] if text else "", str(one.relative_to(path)))


def _read_config_db(path: Path, data: bytes, state: DeviceState) -> None:
    """Take the WRED profiles that queues of lossless traffic use, and the pools' share."""
    try:
        whole = parse_json(data)
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    profiles = _table(whole, "WRED_PROFILE")
    if not profiles:
        raise ConfigError(f"{path}: has no WRED_PROFILE; expected SONiC's config_db.json")
    names = _names()
    used = _profiles_in_use(whole, state)
    for name, many in (used or Counter(dict.fromkeys(profiles, 1))).items():
        profile = profiles.get(name)
        if profile is None:
            state.tally.note("queues name a WRED profile that is not there", name)
            continue
        mode = str(profile.get("ecn", ""))
        if mode not in _MARKS_GREEN:
            state.tally.note("profiles mark nothing that RoCE sends (ecn)", f"{name} {quote(mode)}")
        if str(profile.get("wred_green_enable", "true")).lower() != "true":
            state.tally.note("profiles have wred_green_enable off: nothing is marked", name)
        for key, text in profile.items():
            state.tally.came(LINES)
            knob = names.get(key.lower())
            value = None if knob is None else _value(knob, key, str(text).strip())
            if knob is None:
                state.tally.leave_out(LINES, "lines name no knob of DCQCN", key)
            elif value is None:
                reason = f"values of {knob.name} are no numbers in its range"
                state.tally.leave_out(LINES, reason, text)
            else:
                state.tally.take(LINES)
                for _ in range(many):
                    state.see(knob.name, value, f"{path.name} {name}")
    _read_buffers(whole, path, state)


def _profiles_in_use(whole: Any, state: DeviceState) -> Counter[str]:
    """Return profile -> ports whose lossless queues use it."""
    used: Counter[str] = Counter()
    for place, row in _table(whole, "QUEUE").items():
        name = re.sub(r"^\[WRED_PROFILE\|(.*)\]$", r"\1", str(row.get("wred_profile", "")))
        if not name:
            continue
        if _LOSSLESS.search(place.partition("|")[2]):
            used[name] += 1
        else:
            state.tally.note("profiles are of other queues than 3 and 4", f"{place} {name}")
    return used


def _read_buffers(whole: Any, path: Path, state: DeviceState) -> None:
    """Take the dynamic threshold of lossless priorities; it is a power of two."""
    knob = OPTIONAL_KNOBS["pfc_alpha"]
    for name, row in _table(whole, "BUFFER_PROFILE").items():
        if "lossless" not in name or "dynamic_th" not in row:
            continue
        state.tally.came(LINES)
        match = _NUMBER.match(str(row["dynamic_th"]).strip())
        if match is None or match[2] is None or not -8 <= _whole(match[2]) <= 8:
            state.tally.leave_out(LINES, "buffer profiles have a dynamic_th that is none", name)
            continue
        state.tally.take(LINES)
        state.see(knob.name, from_device(knob, _whole(match[2])), f"{path.name} {name}")


def _table(whole: Any, name: str) -> dict[str, dict[str, Any]]:
    given = whole.get(name) if isinstance(whole, dict) else None
    return dict(_rows(given)) if isinstance(given, dict) else {}


def _rows(given: dict[Any, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, row in given.items():
        if isinstance(row, dict):
            yield str(key), row
