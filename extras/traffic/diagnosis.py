"""What is wrong with a setting in service, by dumps of devices and counters: each with its line.

A check that the dumps have no figures for is named as not done, so that silence is never taken for
health. Counters have the names of mlx5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dcqcn_gym.extras.traffic.dumps import COUNTERS, Dumps, Finding
from dcqcn_gym.extras.traffic.switch_checks import SWITCH_CHECKS, listed

IGNORED_SHARE = 0.01
"""CNPs for queue pairs that are gone are ignored on healthy NICs as well; a hundredth is ours."""


def diagnose(dumps: Dumps) -> tuple[list[Finding], list[str]]:
    """Return what is wrong, and the names of the checks that these dumps have no figures for."""
    found: list[Finding] = []
    undone: list[str] = []
    for name, check in CHECKS.items():
        result = check(dumps)
        if result is None:
            undone.append(name)
        else:
            found += result
    return found, undone


def _counted(dumps: Dumps, *names: str) -> list[int] | None:
    if any(name not in dumps.counters for name in names):
        return None
    return [dumps.counters[name] for name in names]


def _ignored(dumps: Dumps) -> list[Finding] | None:
    if (values := _counted(dumps, "rp_cnp_ignored")) is None:
        return None
    ignored, handled = values[0], dumps.counters.get("rp_cnp_handled", 0)
    if ignored <= IGNORED_SHARE * (ignored + handled):
        return []
    return [Finding(
        f"the NIC ignores CNPs: {ignored} of {ignored + handled}, so it does not slow down",
        (dumps.lines["rp_cnp_ignored"],),
        "turn the reaction point on for the priority of the traffic: ROCE_CC_PRIO_MASK_P1 of "
        "mlxconfig, or 1 in ecn/roce_rp/enable/PRIORITY",
    )]  # fmt: skip


def _silent(dumps: Dumps) -> list[Finding] | None:
    if (values := _counted(dumps, "np_ecn_marked_roce_packets", "np_cnp_sent")) is None:
        return None
    marked, sent = values
    if not marked or sent:
        return []
    return [Finding(
        f"{marked} marked packets came in and no CNP went out: the notification point is off",
        (dumps.lines["np_ecn_marked_roce_packets"], dumps.lines["np_cnp_sent"]),
        "1 in ecn/roce_np/enable/PRIORITY (any priority turns on the whole port)",
    )]  # fmt: skip


def _paused(dumps: Dumps) -> dict[int, str]:
    """Return the priorities that were paused, with a line each."""
    return {
        n: dumps.lines[name]
        for n in range(8)
        for name in (f"tx_prio{n}_pause", f"rx_prio{n}_pause")
        if dumps.counters.get(name)
    }


def _unmarked_pauses(dumps: Dumps) -> list[Finding] | None:
    pauses = [name for name in dumps.counters if name.endswith("_pause") and "_prio" in name]
    marked = _counted(dumps, "np_ecn_marked_roce_packets")
    if not pauses or marked is None:
        return None
    paused = _paused(dumps)
    if not paused or marked[0]:
        return []
    return [Finding(
        f"priorities {listed(paused)} are paused and no packet came in marked: switches do not "
        "mark, or they pause before they mark",
        (*paused.values(), dumps.lines["np_ecn_marked_roce_packets"]),
        "look at the switches' config_db.json with this command",
    )]  # fmt: skip


def _lost(dumps: Dumps) -> list[Finding] | None:
    names = [n for n in ("out_of_sequence", "packet_seq_err", "rx_discards_phy")
             if n in dumps.counters]  # fmt: skip
    if not names:
        return None
    lost = [name for name in names if dumps.counters[name]]
    if not lost:
        return []
    return [Finding(
        "packets are lost or reordered: " + ", ".join(f"{n} {dumps.counters[n]}" for n in lost),
        tuple(dumps.lines[n] for n in lost),
        "RoCE without PFC or with too little headroom loses packets; with adaptive routing only "
        "out_of_sequence counts, and that is normal",
    )]  # fmt: skip


def _global_pause(dumps: Dumps) -> list[Finding] | None:
    names = [n for n in COUNTERS if n.endswith(("_ctrl_phy", "_global_pause"))]
    known = [n for n in names if n in dumps.counters]
    if not known:
        return None
    used = [n for n in known if dumps.counters[n]]
    # mlx5 counts frames of PFC among those of pause as well
    if not used or _paused(dumps):
        return []
    return [Finding(
        "the whole link is paused, not a priority: global pause in place of PFC",
        tuple(dumps.lines[n] for n in used),
        "`ethtool -A DEV rx off tx off`, then `mlnx_qos -i DEV --pfc` with the priority's bit",
    )]  # fmt: skip


def _points(dumps: Dumps) -> list[Finding] | None:
    if not dumps.points:
        return None
    found = []
    for point, word in (("np", "notification"), ("rp", "reaction")):
        switched = {n: on for (which, n), on in dumps.points.items() if which == point}
        if switched and not any(switched.values()):
            found.append(Finding(
                f"the {word} point is off for every priority",
                tuple(f"roce_{point}/enable/{n} 0" for n in switched),
                f"1 in ecn/roce_{point}/enable/PRIORITY",
            ))  # fmt: skip
    return found


def _nic_pfc(dumps: Dumps) -> list[Finding] | None:
    if dumps.pfc is None:
        return None
    on = [n for (which, n), switched in dumps.points.items() if which == "rp" and switched]
    wanted = on if 0 < len(on) < 8 else None
    lossless = [n for n, flag in enumerate(dumps.pfc) if flag]
    line = "mlnx_qos: enabled " + " ".join(str(int(flag)) for flag in dumps.pfc)
    if not lossless:
        what = "PFC is off for every priority"
    elif wanted and not set(wanted) & set(lossless):
        what = f"PFC protects {listed(lossless)}, and DCQCN runs on {listed(wanted)}"
    else:
        return []
    return [Finding(what, (line,), "`mlnx_qos -i DEV --pfc` with the bit of RoCE's priority")]


CHECKS: Mapping[str, Callable[[Dumps], list[Finding] | None]] = {
    "CNPs ignored": _ignored,
    "marked packets without CNPs": _silent,
    "pauses without marks": _unmarked_pauses,
    "losses": _lost,
    "global pause": _global_pause,
    "notification and reaction points": _points,
    "PFC of the NIC": _nic_pfc,
    **SWITCH_CHECKS,
}
"""The checks; each returns None where the dumps have no figures for it."""
