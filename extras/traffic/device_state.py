"""What devices say of their setting: ``[initial]``, ``[switch]``, ``[[classes]]`` of a scenario.

Read are pasted or redirected dumps: ``mlxconfig query`` and ``mstconfig query``, SONiC's
``show ecn`` and ``config_db.json``, thresholds in configurations of EOS, NX-OS, NVUE and Junos,
WinOF's and Broadcom's names, and folders such as ``/sys/class/net/DEV/ecn`` or ``cc_params`` of
debugfs, or a copy of them, one value a file. Names are those of their sources
(``RPG_AI_RATE_P1``, ``rpg_ai_rate``, ``dce_tcp_g``, ``green_min_threshold`` in bytes); lines of
something else are counted.

A switch's thresholds are of a queue of a port. The curve that most queues of the lossless
priority have becomes ``[initial]``, that of another priority a class; none is averaged, and
ports that differ within a priority are told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from dcqcn_gym.core.device_limits import held_range
from dcqcn_gym.core.device_units import SONIC_FIELDS, device_unit, from_device
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.knob_names import nic_knob
from dcqcn_gym.core.knobs import ECN_KNOBS, KNOBS, Knob
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.dump_files import LINES, read_dumps_into
from dcqcn_gym.extras.traffic.junos import JunosProfiles
from dcqcn_gym.extras.traffic.sonic import (
    USUALLY_LOSSLESS,
    Queue,
    SonicSwitch,
    curve_fields,
    marking_problem,
)

_LINE = re.compile(r"[\s*]*([A-Za-z_][\w.]{0,80})\s*(?:\s|[:=|])\s*(.{1,120}?)\s*$")
_NUMBER = re.compile(r"(?:[A-Za-z]+\((\d{1,18})\)|(0x[0-9a-fA-F]{1,16}|-?\d{1,18}))(?=\s|$)")
"""``5``, ``0x5``, and mlxconfig's ``True(1)``."""
_UNITS_KB = {"bytes": 1e-3, "kbytes": 1.0, "mbytes": 1e3}
"""KB (1000 B) of a unit of thresholds; EOS's and NX-OS's kbytes are taken for 1000 B."""
_RANDOM_DETECT = re.compile(
    r"random-detect (?:ecn )?minimum-threshold (\d{1,12}) ([km]?bytes) "
    r"maximum-threshold (\d{1,12}) ([km]?bytes)"
    r"(?: (?:max-mark-probability|drop-probability) (\d{1,3}))?(?: weight \d{1,3})?( ecn)?$"
)
"""EOS (a queue's ``random-detect ecn``) and NX-OS (a queuing policy's, with ``ecn`` at its end)."""
_OF_INTERFACE = re.compile(r"interface (\S{1,64}) ")
_OF_QUEUE = re.compile(r"(?:tx-queue (\d{1,2})|class type queuing \S{0,40}q(\d)) ")
_NVUE = re.compile(
    r"qos congestion-control (\S{1,64}) traffic-class (\S{1,32}) "
    r"(min-threshold|max-threshold|probability) (\d{1,12})$"
)
_NVUE_KNOBS = {"min-threshold": "kmin", "max-threshold": "kmax", "probability": "pmax"}
_BNXT_WORDS = re.compile(r"minimum time between cnps?(?: \(min_time_bet_cnp\))?\s*: (\w+)")
"""Older versions of bnxt_re's ``apply``; the newest print ``min_time_bet_cnp=0x4``."""
_NO_KNOB, _NO_PAIR = "lines name no knob of DCQCN", "lines have no name and value"
_OTHERS_OWN = (
    (re.compile(r"dcqcn_"), "parameters of Intel's irdma steer a window, so none is a knob here"),
    (re.compile(r"(?:cr_width|ai_rate_incr|init_cp|init_cr|init_tr|tr_update_\w+|nph_per_state|"
                r"inact\w*_cp|fr_num_rtts|red_rel_rtts_th)$"),
     "parameters of Broadcom's own algorithm have no counterpart here"),
    (re.compile(r"(?:rate_inc_\w+|rate_dec_period|alpha_dec_period|min_rate|min_cnp_period|"
                r"rate_first_set|factor_gita|f|ai|max_speed|cnp_time|tkp|tmp|alp|ashift|al|g)$"),
     "parameters of Huawei (hiroce3, hns) have steps that no public text says: put the knob into "
     "[initial] by the maker's manual"),
)  # fmt: skip
"""What is known not to be a knob, and why."""


@dataclass(frozen=True)
class Where:
    """Whose curve it is: a queue of a port, by the priority that it serves, as far as is said."""

    file: str
    port: str = ""
    priority: int | None = None
    lossless: bool = False
    profile: str = ""


@dataclass
class Curve:
    """A marking curve, and what comes with it; the knobs in KB and shares."""

    where: Where
    knobs: dict[str, float] = field(default_factory=dict)
    weight: int | None = None
    dscp: int | None = None

    @property
    def key(self) -> tuple[tuple[str, float], ...]:
        """What two equal curves have in common."""
        return tuple(sorted(self.knobs.items()))

    def __str__(self) -> str:
        said = ", ".join(f"{name} {self.knobs[name]:g}" for name in ECN_KNOBS if name in self.knobs)
        at = " ".join(filter(None, (self.where.file, self.where.port, self.where.profile)))
        return f"{said} at {at}"


@dataclass
class DeviceState:
    """The knobs that dumps name, each with the values that were found and how often."""

    queue_bytes: float | None = None
    """What thresholds that are shares of a queue's buffer are shares of."""
    tally: Tally = field(default_factory=Tally)
    found: dict[str, Counter[float]] = field(default_factory=dict)
    places: dict[tuple[str, float], str] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    alphas: dict[int | None, Counter[float]] = field(default_factory=dict)
    """Priority -> shares of the free buffer."""
    lossless: Counter[frozenset[int]] = field(default_factory=Counter)
    pools: Counter[float] = field(default_factory=Counter)
    pool_bytes: float | None = None
    """Of the lossless pool: what the ports share, beside headroom and reserves."""
    files: list[Path] = field(default_factory=list)
    _junos: JunosProfiles = field(default_factory=JunosProfiles)
    _open: dict[Where, Curve] = field(default_factory=dict)
    _profile: str = ""

    def see(self, name: str, value: float, place: str) -> None:
        """Count a NIC's knob at a place."""
        self.found.setdefault(name, Counter())[value] += 1
        self.places.setdefault((name, value), place)

    def mark(self, where: Where, name: str, value: float) -> None:
        """Take one number of a curve; a second one of its kind there begins another curve."""
        curve = self._open.get(where)
        if curve is None or curve.knobs.get(name, value) != value:
            curve = self._open[where] = Curve(where)
            self.curves.append(curve)
        curve.knobs[name] = value

    def switch(self, switch: SonicSwitch) -> None:
        """Take the WRED profiles of queues, the shares of buffers and what PFC protects."""
        profiles = switch.table("WRED_PROFILE")
        if not profiles:
            raise ConfigError(
                f"{switch.name}: has no WRED_PROFILE; expected SONiC's config_db.json whole"
            )
        knobs = {name: self._of_profile(name, row) for name, row in profiles.items()}
        for name, row in profiles.items():
            if problem := marking_problem(row):
                self.tally.note(
                    f"WRED profiles: {problem[0]} ({problem[1]})",
                    f"{name} {quote(str(row.get(problem[1], '')))}",
                )
        for queue in switch.queues:
            if queue.profile not in profiles:
                self.tally.note("queues name a WRED profile that is not there", queue.profile)
            else:
                self._of_queue(switch, queue, knobs[queue.profile])
        used = {queue.profile for queue in switch.queues}
        for name in (name for name in profiles if name not in used):
            if used:
                self.tally.note("WRED profiles are of no queue", name)
            else:  # a part of the file: nothing says which queue it is
                self.curves.append(Curve(Where(switch.name, profile=name), knobs[name]))
        self.lossless.update(own & frozenset(range(1, 8)) for own in switch.pfc.values() if own)
        self._of_buffers(switch)

    def _of_profile(self, name: str, row: Mapping[str, Any]) -> dict[str, float]:
        fields = curve_fields(row)
        found = {}
        for key, text in row.items():
            self.tally.came(LINES)
            knob = fields.get(str(key).lower())
            if knob is None:
                self.tally.leave_out(LINES, _NO_KNOB, key)
            elif (value := self._value(KNOBS[knob], "sonic", str(text).strip())) is not None:
                found[knob] = value
        return found

    def _of_queue(self, switch: SonicSwitch, queue: Queue, knobs: dict[str, float]) -> None:
        priority = switch.priority(queue)
        where = Where(switch.name, queue.port, priority, switch.is_lossless(queue), queue.profile)
        self.curves.append(Curve(where, knobs, switch.weight(queue), switch.dscp(priority)))

    def _of_buffers(self, switch: SonicSwitch) -> None:
        """Take the dynamic thresholds and pools of lossless priority groups."""
        alpha = OPTIONAL_KNOBS["pfc_alpha"]
        known: dict[str, float | None] = {}
        for group, name, row in switch.lossless_buffers():
            if "dynamic_th" in row and name not in known:
                self.tally.came(LINES)
                known[name] = self._value(alpha, "sonic", str(row["dynamic_th"]).strip())
            if (value := known.get(name)) is not None:
                self.alphas.setdefault(group, Counter())[value] += 1
            if pool := switch.pool(row):
                self.pools[pool[1]] += 1

    def line(self, place: str, line: str, whole: str) -> None:
        """Take a line of a configuration or of a query, or leave it out with the reason."""
        if match := re.match(r"Profile:\s*(\S{1,64})$", line):  # of `show ecn`
            self._profile = match[1]
            self.tally.leave_out(LINES, _NO_KNOB, line)
        elif self._junos.line(place, whole):
            pass  # decided when all lines of the profile are known
        elif words := _BNXT_WORDS.search(line):
            self._take("min_time_bet_cnp", words[1], place)
        elif not self._command(place, whole):
            pair = _LINE.match(line[:300])
            if pair is None:
                self.tally.leave_out(LINES, _NO_PAIR, line)
            else:
                self._take(pair[1], pair[2], place)

    def file(self, path: Path, text: str) -> None:
        """Take one file of a folder, which holds one value."""
        name = next((part for part in (path.name, path.parent.name) if _knob(part)),
                    path.name)  # fmt: skip
        self._take(name, text.split()[0] if text else "", str(path))

    def _value(self, knob: Knob, form: str, text: str) -> float | None:
        """Return a number as a device of this kind holds it; else leave it out and return None."""
        match = _NUMBER.match(text)
        low, high = held_range(form, knob)
        whole = None if match is None else _whole(match[1] or match[2])
        value = None if whole is None else from_device(knob, whole)
        if whole is None or value is None or not low <= whole <= high:
            unit = device_unit(knob)
            reason = f"values of {knob.name} are no numbers in {low} to {high} {unit}"
            self.tally.leave_out(LINES, reason, text)
            return None
        self.tally.take(LINES)
        return value

    def _take(self, name: str, text: str, place: str) -> None:
        """Take one named value, or leave it out with the reason."""
        plain, knob = name.strip().lower(), _knob(name)
        if knob is None:
            own = (reason for pattern, reason in _OTHERS_OWN if pattern.match(plain))
            self.tally.leave_out(LINES, next(own, _NO_KNOB), name)
            return
        form = "sonic" if plain in _SWITCH_NAMES else "mlxconfig" if name.isupper() else "sysfs"
        form = "bnxt" if plain == "min_time_bet_cnp" else form
        value = self._value(knob, form, text.strip())
        if value is not None and knob.is_ecn:
            self.mark(Where(place.partition(" line ")[0], profile=self._profile), knob.name, value)
        elif value is not None:
            self.see(knob.name, value, place)

    def _command(self, place: str, whole: str) -> bool:
        """Take a line of a switch's configuration: EOS, NX-OS, NVUE; False if it is none."""
        file = place.partition(" line ")[0]
        if match := _RANDOM_DETECT.search(whole):
            low, low_unit, high, high_unit, percent, ecn = match.groups()
            if not ecn and " ecn " not in match[0]:
                self.tally.leave_out(LINES, "thresholds drop and do not mark (no ecn)", match[0])
                return True
            found = {
                "kmin": int(low) * _UNITS_KB[low_unit],
                "kmax": int(high) * _UNITS_KB[high_unit],
            }
            if percent:
                found["pmax"] = int(percent) / 100
            port, queue = _OF_INTERFACE.search(whole), _OF_QUEUE.search(whole)
            number = None if queue is None else int(queue[1] or queue[2])
            self._curve(_where(file, port[1] if port else "", number), found, "eos", match[0])
        elif match := _NVUE.search(whole):
            knob, value = _NVUE_KNOBS[match[3]], int(match[4])
            found = {knob: from_device(KNOBS[knob], value)}
            number = int(match[2]) if match[2].isdecimal() else None
            self._curve(_where(file, match[1], number), found, "nvue", match[0])
        else:
            return False
        return True

    def _curve(self, where: Where, found: Mapping[str, float], form: str, line: str) -> None:
        """Take numbers of one line; the line is left out if a switch cannot hold one of them."""
        for name, value in found.items():
            low, high = (from_device(KNOBS[name], n) for n in held_range(form, KNOBS[name]))
            if not low <= value <= high:
                self.tally.leave_out(LINES, f"values of {name} are out of its range", line)
                return
        self.tally.take(LINES)
        for name, value in found.items():
            self.mark(where, name, value)

    def _settle_junos(self) -> None:
        for found in self._junos.settle(self.queue_bytes, self.tally):
            where = _where(found.file, "", found.queue, found.lossless, found.profile)
            for name, value in found.knobs.items():
                self.mark(where, name, value)

    def tables(self) -> dict[str, Any]:
        """Return the tables of a scenario: ``[initial]``, ``[switch]`` and ``[[classes]]``.

        Raises :class:`ConfigError` if no knob was found.
        """
        self._settle_junos()
        chosen = {name: self._most(name) for name in KNOBS if name in self.found}
        groups = self._groups()
        for own in [curve.knobs for curve in groups.values()][:1]:
            chosen |= {name: own[name] for name in ECN_KNOBS if name in own}
        if not chosen:
            # what is nearly a setting first
            said = sorted(self.tally.lines()[1:], key=lambda x: _NO_KNOB in x or _NO_PAIR in x)
            raise ConfigError(
                "no knob of DCQCN in these files; expected `mlxconfig query`, `show ecn`, "
                "config_db.json, or a folder with files such as rpg_ai_rate"
                + "".join(f"; {line}" for line in said[:3])
                + "".join(map(other_use, self.files))
            )
        switch = self._switch(next(iter(groups), None))
        classes = self._classes(groups)
        self.tally.check()
        return {
            "initial": chosen,
            **({"switch": switch} if switch else {}),
            **({"classes": classes} if classes else {}),
        }

    def _most(self, name: str) -> float:
        """Return a NIC's knob in most places, the first of equals; others are noted."""
        (value, many), *others = self.found[name].most_common()
        for other, times in others:
            self.tally.note(
                f"values of {name} differ: {value:g} was taken ({many}), not",
                f"{other:g} at {self.places[name, other]} ({times})",
            )
        return value

    def _groups(self) -> dict[int | None, Curve]:
        """Return priority -> the curve of most of its queues, the lossless one of most first.

        What no dump gives a priority is taken for the first one's.
        """
        by_priority: dict[int | None, list[Curve]] = {}
        for curve in (curve for curve in self.curves if curve.knobs):
            by_priority.setdefault(curve.where.priority, []).append(curve)
        unsaid = by_priority.pop(None, [])

        def rank(priority: int | None) -> tuple[bool, int, int]:
            rows = by_priority[priority]
            return not any(c.where.lossless for c in rows), -len(rows), priority or 0

        order = sorted(by_priority, key=rank) or [None]
        by_priority.setdefault(order[0], []).extend(unsaid)
        return {p: self._agreed(p, by_priority[p]) for p in order if by_priority[p]}

    def _agreed(self, priority: int | None, rows: Sequence[Curve]) -> Curve:
        """Return the curve of most queues of a priority, the first of equals; note the others."""
        many = Counter(curve.key for curve in rows)
        key = many.most_common(1)[0][0]
        taken = next(curve for curve in rows if curve.key == key)
        said = "the queues" if priority is None else f"queues of priority {priority}"
        for curve in (curve for curve in rows if curve.key != key):
            self.tally.note(
                f"{said} mark otherwise than {many[key]} of {len(rows)}, whose {taken} was taken",
                curve,
            )
        return taken

    def _switch(self, primary: int | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.lossless:
            (own, many), *others = self.lossless.most_common()
            found["lossless"] = sorted(own)
            for other, times in others:
                reason = f"ports protect other priorities than {sorted(own)} ({many})"
                self.tally.note(reason, f"{sorted(other)} ({times})")
        if self.pools:
            self.pool_bytes = self._common(self.pools, "bytes of lossless pools")
        if self.alphas:
            of_all = Counter(chain.from_iterable(c.elements() for c in self.alphas.values()))
            most = self.alphas.get(primary) or of_all
            found["alpha"] = self._common(most, "shares of the free buffer (alpha)")
        return found

    def _common(self, values: Counter[float], words: str) -> float:
        (value, many), *others = values.most_common()
        for other, times in others:
            self.tally.note(f"{words} differ: {value:g} was taken ({many})", f"{other:g} ({times})")
        return value

    def _classes(self, groups: Mapping[int | None, Curve]) -> list[dict[str, Any]]:
        """Return a class of each priority whose curve or share is not that of the first."""
        first = next(iter(groups), None)
        base, found = self.alphas.get(first), []
        for priority, curve in groups.items():
            alpha, own = self.alphas.get(priority), dict[str, Any]()
            if priority is None or priority == first:
                continue
            missing = [name for name in ECN_KNOBS if name not in curve.knobs]
            if curve.key != groups[first].key and missing:
                reason = f"curves of other priorities lack {' and '.join(missing)}: no class"
                self.tally.note(reason, curve)
            elif curve.key != groups[first].key:
                low, high = (round(curve.knobs[name] * 1000) for name in ("kmin", "kmax"))
                own["ecn"] = [low, high, curve.knobs["pmax"]]
            if alpha and base and alpha.most_common(1)[0][0] != base.most_common(1)[0][0]:
                own["alpha"] = self._common(alpha, f"shares of priority {priority}")
            if own:
                found.append(_class(priority, curve, own))
                if not curve.where.lossless:
                    self.tally.note(
                        "classes can lose packets; their traffic is taken for RoCE, as TCP here "
                        "knows no ECN", priority,
                    )  # fmt: skip
        if found and first is not None and groups[first].weight:
            found.append(_class(first, groups[first], {}))
        return sorted(found, key=lambda row: int(row["priority"]))


def _class(priority: int, curve: Curve, own: Mapping[str, Any]) -> dict[str, Any]:
    more = {"weight": curve.weight, "dscp": curve.dscp}
    return {"priority": priority, **{k: v for k, v in more.items() if v is not None}, **own}


def _where(
    file: str, port: str, number: int | None, lossless: bool | None = None, profile: str = ""
) -> Where:
    likely = number in USUALLY_LOSSLESS if lossless is None else lossless
    return Where(file, port, number, likely, profile)


_SWITCH_NAMES = {
    text.format("green"): KNOBS[name] for of in SONIC_FIELDS.values() for name, text in of.items()
}


def _knob(name: str) -> Knob | None:
    """Return the knob that some device calls so."""
    plain = name.strip().lower()
    found = _SWITCH_NAMES.get(plain) or KNOBS.get(plain)
    nic = nic_knob(name.strip())
    return found or (None if nic is None else KNOBS[nic])


def _whole(text: str) -> int:
    return int(text, 16) if text.startswith("0x") else int(text)


def read_device_state(paths: Sequence[Path], queue_bytes: float | None = None) -> DeviceState:
    """Read dumps and folders; raise :class:`ConfigError` for what cannot be read."""
    state = DeviceState(queue_bytes, files=[path for path in paths if path.is_file()])
    read_dumps_into(state, paths)
    return state
