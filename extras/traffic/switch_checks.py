"""What is wrong with a SONiC switch, by the tables of its ``config_db.json``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dcqcn_gym.core.device_limits import held_range
from dcqcn_gym.core.device_units import from_device
from dcqcn_gym.core.errors import quote
from dcqcn_gym.core.fabric_facts import late_marking
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS
from dcqcn_gym.extras.traffic.dumps import Dumps, Finding
from dcqcn_gym.extras.traffic.sonic import SonicSwitch, curve_fields, marking_problem, number

FIBRE_M_PER_S = 2e8
MTU_BYTES = 9100
"""SONiC's default of a port (``mtu`` of the table PORT)."""


def listed(numbers: Iterable[int]) -> str:
    """Return numbers in order, with commas."""
    return ", ".join(map(str, sorted(numbers)))


def _marking(dumps: Dumps) -> list[Finding] | None:
    """Check that the profiles of queues mark what RoCE sends."""
    if not any(switch.table("WRED_PROFILE") for switch in dumps.switches):
        return None
    found: list[Finding] = []
    for switch in dumps.switches:
        for name in dict.fromkeys(q.profile for q in switch.queues):
            profile = switch.table("WRED_PROFILE").get(name)
            if (problem := marking_problem(profile)) is None:
                continue
            what, field = problem
            line = f'"wred_profile": "{name}"' if profile is None else (
                f'{name} "{field}": {quote(str(profile.get(field, "")))}')  # fmt: skip
            found.append(Finding(
                f"the WRED profile {name}, which queues use, {what}", (f"{switch.name}: {line}",),
                f"`ecnconfig -p {name}` and wred_green_enable in WRED_PROFILE",
            ))  # fmt: skip
    return found


def _lossy(dumps: Dumps) -> list[Finding] | None:
    """Check that what is marked is lossless, and what is lossless is marked."""
    known = [s for s in dumps.switches if s.table("PORT_QOS_MAP") and s.table("QUEUE")]
    if not known:
        return None
    found: list[Finding] = []
    for switch in known:
        marked: dict[str, set[int]] = {}
        for queue in switch.queues:
            marked.setdefault(queue.port, set()).add(switch.priority(queue))
        for port, lossless in switch.pfc.items():
            found += _of_port(switch.name, port, marked.get(port, set()), set(lossless))
    return _first_of_each(found)


def _of_port(place: str, port: str, marked: set[int], lossless: set[int]) -> Iterator[Finding]:
    """Yield what is wrong with a port; ECN on a lossy queue beside a lossless one is TCP's."""
    line = f'{place}: {port} "pfc_enable": "{listed(lossless)}"'
    if marked and not lossless:
        yield Finding(
            f"PFC is off on the queues that RoCE uses ({listed(marked)})", (line,),
            f"pfc_enable in PORT_QOS_MAP: `config interface pfc priority {port} PRIORITY on`",
        )  # fmt: skip
    elif marked and not marked & lossless:
        yield Finding(
            f"ECN marks queues {listed(marked)}, which can lose packets: PFC protects "
            f"{listed(lossless)}",
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


def _thresholds(dumps: Dumps) -> list[Finding] | None:
    """Check that marking comes before pausing."""
    found: list[Finding] = []
    done = False
    for switch in dumps.switches:
        pool = _pool(switch)
        if pool is None:
            continue
        size, alpha, where = pool
        ports = len({q.port for q in switch.queues} | set(switch.table("PORT"))) or 2
        for name in dict.fromkeys(q.profile for q in switch.queues):
            profile = switch.table("WRED_PROFILE").get(name, {})
            low, high, _ = curve_fields(profile)
            kmin, kmax = number(profile, low), number(profile, high)
            if kmin is None or kmax is None:
                continue
            done = True
            lines = (f'{switch.name}: {name} "{low}": "{kmin:.0f}", "{high}": "{kmax:.0f}"',
                     f"{switch.name}: {where}")  # fmt: skip
            if what := late_marking(kmin, kmax, ports, alpha, size):
                do = f"lower {low} and {high} (`dcqcn-gym advise`), or raise dynamic_th"
                found.append(Finding(what, lines, do))
    return found if done else None


def _pool(switch: SonicSwitch) -> tuple[float, float, str] | None:
    """Return the lossless pool's bytes, its alpha, and where both stand."""
    alpha = OPTIONAL_KNOBS["pfc_alpha"]
    low, high = held_range("sonic", alpha)
    for _, name, row in switch.lossless_buffers():
        power, pool = number(row, "dynamic_th"), switch.pool(row)
        if power is not None and low <= power <= high and pool is not None:
            where = f'{name} "dynamic_th": "{power:.0f}", {pool[0]} "{pool[1]:.0f}"'
            return pool[1], from_device(alpha, int(power)), where
    return None


def headroom_bytes(gbps: float, cable_m: float, mtu: float = MTU_BYTES) -> float:
    """Return the least headroom of a port: a round trip of the cable and a packet at each end.

    A lower bound, without the delay of MACs and of the peer's answer, which differ by ASIC.
    """
    return 2 * cable_m / FIBRE_M_PER_S * gbps * 1e9 / 8 + 2 * mtu


def _headroom(dumps: Dumps) -> list[Finding] | None:
    found: list[Finding] = []
    done = False
    for switch in dumps.switches:
        lengths = next(iter(switch.table("CABLE_LENGTH").values()), {})
        of_ports = {(port, name): row for port, _, name, row in switch.buffer_profiles()}
        for (port, name), row in of_ports.items():
            xoff = number(row, "xoff")
            cable = re.fullmatch(r"(\d{1,6})m", str(lengths.get(port, "")))
            of_port = switch.table("PORT").get(port, {})
            speed = number(of_port, "speed")
            if xoff is None or cable is None or not speed:
                continue
            done = True
            gbps, length = speed / 1000, int(cable[1])
            need = headroom_bytes(gbps, length, number(of_port, "mtu") or MTU_BYTES)
            if xoff < need:
                words = f"at {gbps:.0f} Gb/s needs at least {need:.0f} B"
                found.append(Finding(
                    f"headroom of profile {name} is {xoff:.0f} B, and a cable of {length} m "
                    f"{words}: packets are lost in a pause",
                    (f'{switch.name}: {name} "xoff": "{xoff:.0f}"',
                     f'{switch.name}: CABLE_LENGTH {port} "{length}m"'),
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
