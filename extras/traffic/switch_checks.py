"""What is wrong with a SONiC switch, by the tables of its ``config_db.json``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.core.errors import quote
from dcqcn_gym.extras.traffic.dumps import Dumps, Finding, Tables

FIBRE_M_PER_S = 2e8
MTU_BYTES = 9100
"""SONiC's default of a port (``mtu`` of the table PORT)."""
_MARKS_GREEN = ("ecn_all", "ecn_green", "ecn_green_red", "ecn_green_yellow")


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


@dataclass(frozen=True)
class Queue:
    """A queue of a port that has a WRED profile."""

    port: str
    number: int
    profile: str


def _queues(tables: Tables) -> Iterator[Queue]:
    for key, row in tables.get("QUEUE", {}).items():
        ports, _, numbers = key.partition("|")
        name = re.sub(r"^\[WRED_PROFILE\|(.*)\]$", r"\1", str(row.get("wred_profile", "")))
        if name:
            for port in ports.split(","):
                for number in _numbers(numbers):
                    yield Queue(port, number, name)


def _numbers(text: str) -> list[int]:
    """Return ``3-4`` or ``3,4`` as numbers; nothing for another form."""
    found: list[int] = []
    for part in text.split(","):
        if match := re.fullmatch(r"\s*([0-7])(?:-([0-7]))?\s*", part):
            found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _marking(dumps: Dumps) -> list[Finding] | None:
    """Check that the profiles of queues mark what RoCE sends."""
    if not any("WRED_PROFILE" in tables for _, tables in dumps.switches):
        return None
    found: list[Finding] = []
    for place, tables in dumps.switches:
        for name in dict.fromkeys(q.profile for q in _queues(tables)):
            profile = tables.get("WRED_PROFILE", {}).get(name)
            if profile is None:
                what, line = "is not there", f'"wred_profile": "{name}"'
            elif str(profile.get("ecn", "")) not in _MARKS_GREEN:
                what = "marks nothing that RoCE sends"
                line = f'{name} "ecn": {quote(str(profile.get("ecn", "")))}'
            elif str(profile.get("wred_green_enable", "true")).lower() != "true":
                what, line = "is off: nothing is marked", f'{name} "wred_green_enable": "false"'
            else:
                continue
            found.append(Finding(
                f"the WRED profile {name}, which queues use, {what}", (f"{place}: {line}",),
                f"`ecnconfig -p {name}` and wred_green_enable in WRED_PROFILE",
            ))  # fmt: skip
    return found


def _lossy(dumps: Dumps) -> list[Finding] | None:
    """Check that what is marked is lossless, and what is lossless is marked."""
    known = [(p, t) for p, t in dumps.switches if "PORT_QOS_MAP" in t and "QUEUE" in t]
    if not known:
        return None
    found: list[Finding] = []
    for place, tables in known:
        marked: dict[str, set[int]] = {}
        for queue in _queues(tables):
            marked.setdefault(queue.port, set()).add(queue.number)
        for key, row in tables["PORT_QOS_MAP"].items():
            lossless = set(_numbers(str(row.get("pfc_enable", ""))))
            for port in key.split(","):
                found += _of_port(place, port, marked.get(port, set()), lossless)
    return _first_of_each(found)


def _of_port(place: str, port: str, marked: set[int], lossless: set[int]) -> Iterator[Finding]:
    """Yield what is wrong with a port; ECN on a lossy queue beside a lossless one is TCP's."""
    line = f'{place}: {port} "pfc_enable": "{_list(lossless)}"'
    if marked and not lossless:
        yield Finding(
            f"PFC is off on the queues that RoCE uses ({_list(marked)})", (line,),
            f"pfc_enable in PORT_QOS_MAP: `config interface pfc priority {port} PRIORITY on`",
        )  # fmt: skip
    elif marked and not marked & lossless:
        yield Finding(
            f"ECN marks queues {_list(marked)}, which can lose packets: PFC protects "
            f"{_list(lossless)}",
            (line, f"{place}: QUEUE {port}|{min(marked)}"),
            "the same priorities in pfc_enable and with a WRED profile",
        )
    elif marked:
        for number in sorted(lossless - marked):
            yield Finding(
                f"queue {number} is lossless and has no ECN: it pauses and never marks", (line,),
                f"a wred_profile in QUEUE for {port}|{number}, or no PFC on it",
            )  # fmt: skip


def _first_of_each(found: Sequence[Finding]) -> list[Finding]:
    """Return one finding of each kind, with how many ports have it."""
    groups: dict[str, list[Finding]] = {}
    for one in found:
        groups.setdefault(one.what, []).append(one)
    return [
        ones[0] if len(ones) == 1 else Finding(
            f"{what} (on {len(ones)} ports)", ones[0].shown_by, ones[0].do)
        for what, ones in groups.items()
    ]  # fmt: skip


def _number(row: Mapping[str, Any], key: str) -> float | None:
    try:
        return float(str(row[key]).strip())
    except (KeyError, ValueError):
        return None


def _thresholds(dumps: Dumps) -> list[Finding] | None:
    """Check that marking comes before pausing.

    With n ports that fill one queue alike, the first pause comes when the queue holds
    n alpha / (1 + n alpha) of the pool, where each port's part meets its dynamic threshold (Y. Zhu
    et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 4).
    """
    found: list[Finding] = []
    done = False
    for place, tables in dumps.switches:
        pool = _pool(tables)
        if pool is None:
            continue
        size, alpha, where = pool
        ports = len({q.port for q in _queues(tables)} | set(tables.get("PORT", {}))) or 2
        for name in dict.fromkeys(q.profile for q in _queues(tables)):
            profile = tables.get("WRED_PROFILE", {}).get(name, {})
            kmin, kmax = (_number(profile, f"green_{end}_threshold") for end in ("min", "max"))
            if kmin is None or kmax is None:
                continue
            done = True
            all_of, two = (_first_pause(n, alpha, size) for n in (max(ports - 1, 2), 2))
            lines = (f'{place}: {name} "green_min_threshold": "{kmin:.0f}", '
                     f'"green_max_threshold": "{kmax:.0f}"', f"{place}: {where}")  # fmt: skip
            found += _order(kmin, kmax, two, all_of, ports, lines)
    return found if done else None


def _order(
    kmin: float, kmax: float, two: float, all_of: float, ports: int, lines: tuple[str, ...]
) -> Iterator[Finding]:
    do = "lower green_min_threshold and green_max_threshold (`dcqcn-gym advise`), or raise "
    do += "dynamic_th"
    if kmin >= two:
        yield Finding(
            f"pauses begin before marking: two senders are paused at a queue of {two:.0f} B, and "
            f"marking begins at {kmin:.0f} B", lines, do,
        )  # fmt: skip
    elif kmax >= all_of:
        yield Finding(
            f"no queue reaches Kmax: with all {ports} ports the first pause comes at "
            f"{all_of:.0f} B, Kmax is {kmax:.0f} B", lines, do,
        )  # fmt: skip


def _first_pause(n: int, alpha: float, pool: float) -> float:
    return pool * n * alpha / (1 + n * alpha)


def _pool(tables: Tables) -> tuple[float, float, str] | None:
    """Return the lossless pool's bytes, its alpha, and where both stand."""
    for name, row in tables.get("BUFFER_PROFILE", {}).items():
        power = _number(row, "dynamic_th")
        if "lossless" not in name or power is None or not -8 <= power <= 8:
            continue
        pool = re.sub(r"^\[BUFFER_POOL\|(.*)\]$", r"\1", str(row.get("pool", "")))
        size = _number(tables.get("BUFFER_POOL", {}).get(pool, {}), "size")
        if size:
            return size, 2.0**power, f'{name} "dynamic_th": "{power:.0f}", {pool} "{size:.0f}"'
    return None


def headroom_bytes(gbps: float, cable_m: float, mtu: float = MTU_BYTES) -> float:
    """Return the least headroom of a port: a round trip of the cable and a packet at each end.

    A lower bound, without the delay of MACs and of the peer's answer, which differ by ASIC.
    """
    return 2 * cable_m / FIBRE_M_PER_S * gbps * 1e9 / 8 + 2 * mtu


def _headroom(dumps: Dumps) -> list[Finding] | None:
    found: list[Finding] = []
    done = False
    for place, tables in dumps.switches:
        lengths = next(iter(tables.get("CABLE_LENGTH", {}).values()), {})
        for key, row in tables.get("BUFFER_PG", {}).items():
            name = re.sub(r"^\[BUFFER_PROFILE\|(.*)\]$", r"\1", str(row.get("profile", "")))
            xoff = _number(tables.get("BUFFER_PROFILE", {}).get(name, {}), "xoff")
            for port in key.partition("|")[0].split(","):
                cable = re.fullmatch(r"(\d{1,6})m", str(lengths.get(port, "")))
                of_port = tables.get("PORT", {}).get(port, {})
                speed = _number(of_port, "speed")
                if xoff is None or cable is None or not speed:
                    continue
                done = True
                gbps, length = speed / 1000, int(cable[1])
                need = headroom_bytes(gbps, length, _number(of_port, "mtu") or MTU_BYTES)
                if xoff < need:
                    words = f"at {gbps:.0f} Gb/s needs at least {need:.0f} B"
                    found.append(Finding(
                        f"headroom of profile {name} is {xoff:.0f} B, and a cable of {length} m "
                        f"{words}: packets are lost in a pause",
                        (f'{place}: {name} "xoff": "{xoff:.0f}"',
                         f'{place}: CABLE_LENGTH {port} "{length}m"'),
                        "the profile of that length and speed (pg_profile_lookup.ini)",
                    ))  # fmt: skip
    return _first_of_each(found) if done else None


SWITCH_CHECKS: Mapping[str, Callable[[Dumps], list[Finding] | None]] = {
    "marking of WRED profiles": _marking,
    "ECN and PFC on the same queues": _lossy,
    "marking before pausing": _thresholds,
    "headroom for the cables": _headroom,
}
"""Each returns None where the dumps have no figures for it."""
