"""HPCC's ``config.txt``: which of its keys is which knob or key here, in both directions.

Names, units and defaults are those that the program of HPCC's paper reads (SIGCOMM 2019); its forks
keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import NamedTuple

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_text
from dcqcn_gym.extras.traffic.exchange.hpcc_topology import bps_of, decimal_text
from dcqcn_gym.extras.traffic.exchange.ledger import NOT_GIVEN, Ledger

CONFIG = "config.txt"
_MOST_BYTES = 2**20
_MOST_WORDS = 4096
_MOST_DIGITS = 40


class Knob(NamedTuple):
    """A key of ``config.txt`` that is a knob: its name, its default there, and its kind."""

    name: str
    default: str
    kind: str = "number"


KNOBS: Mapping[str, Knob] = {
    "ALPHA_RESUME_INTERVAL": Knob("rp_dce_tcp_rtt", "55"),
    "RATE_DECREASE_INTERVAL": Knob("rp_rate_reduce_monitor_period", "4"),
    "CLAMP_TARGET_RATE": Knob("rp_clamp_tgt_rate", "0"),
    "RP_TIMER": Knob("rp_time_reset", "1500"),
    "EWMA_GAIN": Knob("rp_dce_tcp_g", "0.0625", "gain"),
    "FAST_RECOVERY_TIMES": Knob("rp_threshold", "5"),
    "RATE_AI": Knob("rp_ai_rate", "5Mb/s", "rate"),
    "RATE_HAI": Knob("rp_hai_rate", "50Mb/s", "rate"),
    "MIN_RATE": Knob("rp_min_rate", "100Mb/s", "rate"),
}
"""Key -> knob; ``gain`` is 1 - knob/1024, ``rate`` has a unit and the knob is in Mb/s."""

FIXED: Mapping[str, float] = {
    "rp_clamp_tgt_rate_ati": 1, "rp_byte_reset": 0, "rp_max_rate": 0, "rp_gd": 11,
    "rp_min_dec_fac": 50, "rp_rate_to_set_on_first_cnp": 0, "rp_initial_alpha_value": 1023,
    "np_min_time_between_cnps": 0,
}  # fmt: skip
"""Knobs that are constants of that program: no byte counter, alpha / 2, no gap between CNPs."""

MAPS: Mapping[str, str] = {"KMIN_MAP": "kmin", "KMAX_MAP": "kmax", "PMAX_MAP": "pmax"}
"""Key -> knob, by the rate of a port in bit/s."""

CONTROLS = {"3": "HPCC", "7": "TIMELY", "8": "DCTCP", "10": "HPCC-PINT"}

_OUTPUT = "keys say what that program writes"
_OTHERS = "keys are of controls that do not run with CC_MODE 1"
_LOSS = "keys are of recovery from loss, by that program's rules"
_PAUSE = "keys are of a pause's length: a pause lasts until its resume, there too"
_UNREAD = "keys are read and not used there"
LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(
        ("TRACE_FILE", "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE", "ENABLE_TRACE",
         "QLEN_MON_FILE", "QLEN_MON_END", "QLEN_MON_INTERVAL", "QLEN_DUMP_INTERVAL"), _OUTPUT),
    **dict.fromkeys(
        ("DCTCP_RATE_AI", "FAST_REACT", "U_TARGET", "MI_THRESH", "INT_MULTI", "MULTI_RATE",
         "SAMPLE_FEEDBACK", "PINT_LOG_BASE", "PINT_PROB"), _OTHERS),
    **dict.fromkeys(("L2_CHUNK_SIZE", "L2_BACK_TO_ZERO"), _LOSS),
    **dict.fromkeys(("PAUSE_TIME", "NIC_TOTAL_PAUSE_TIME"), _PAUSE),
    **dict.fromkeys(("DATA_RATE", "LINK_DELAY"), _UNREAD),
}  # fmt: skip
"""Keys that no key here stands for, and why."""

SWITCHES: Mapping[str, tuple[str, str, str]] = {
    "ENABLE_QCN": ("1", "marking is on", ""),
    "USE_DYNAMIC_PFC_THRESHOLD": ("1", "switch.alpha = 0.125", "thresholds of PFC that stay"),
    "RATE_BOUND": ("1", "senders are paced", "senders that are not paced"),
    "ACK_HIGH_PRIO": ("1", "ACKs go ahead of data at hosts", "ACKs that wait at hosts"),
    "GLOBAL_T": ("1", "one window for all pairs", "a window for each pair (the largest is taken)"),
    "ERROR_RATE_PER_LINK": ("0", "no frame is lost on a link", "random loss on links"),
    "LINK_DOWN": ("0", "no link goes down", "a link that goes down"),
}
"""Key -> the value that is the case here, what that means, what any other value would be."""


@dataclass
class Config:
    """What was read: knobs, and the other keys that count here by their name there."""

    knobs: dict[str, float] = field(default_factory=dict)
    maps: dict[str, dict[int, Decimal]] = field(default_factory=dict)
    places: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Key -> number and text of its line."""
    values: dict[str, Decimal] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


NUMBERS: Mapping[str, str] = {
    "PACKET_PAYLOAD_SIZE": "1000", "BUFFER_SIZE": "16", "HAS_WIN": "1", "VAR_WIN": "0",
    "SIMULATOR_STOP_TIME": "3.01", "QLEN_MON_START": "2000000000", "L2_ACK_INTERVAL": "1",
}  # fmt: skip
"""Other keys with a number that counts here -> the default there."""
_FILES = ("TOPOLOGY_FILE", "FLOW_FILE")


def read_config(path: Path, said: Ledger) -> Config:
    """Read the file; say of every line what it became, but of those the folder decides.

    Raises :class:`ConfigError` for another control than DCQCN, and for a value that is none.
    """
    found, lines = Config(), _last_lines(path, said)
    mode = lines.get("CC_MODE", (0, ["1"]))[1]
    if mode != ["1"]:
        given = quote(" ".join(mode))
        other = CONTROLS.get(" ".join(mode), "another control")
        raise ConfigError(f"{path}: CC_MODE {given} is {other}; expected 1 (DCQCN)")
    for key, (number, words) in lines.items():
        text = " ".join([key, *words])
        found.places[key] = (number, text)
        if key == "CC_MODE":
            said.take(CONFIG, number, text, 'scheme = "dcqcn", rp = "nic"')
        elif key in KNOBS:
            value, note = _knob(path, key, words)
            found.knobs[KNOBS[key].name] = value
            said.take(CONFIG, number, text, f"initial.{KNOBS[key].name} = {value:g}{note}")
        elif key in MAPS:
            found.maps[key] = _map(path, key, words)
        elif key in NUMBERS:
            found.values[key] = _number(path, key, words)
        elif key in _FILES:
            found.files[key] = Path(" ".join(words)).name
        elif key in SWITCHES:
            _switch(path, key, words, number, said)
        else:
            reason = LEFT_OUT.get(key, "keys are not known")
            said.leave_out(CONFIG, number, text, reason)
    _defaults(found, said)
    return found


def _last_lines(path: Path, said: Ledger) -> dict[str, tuple[int, list[str]]]:
    """Return number and words of every key's last line, which is the one that counts there."""
    found: dict[str, tuple[int, list[str]]] = {}
    for number, line in enumerate(read_text(path, _MOST_BYTES).splitlines(), 1):
        words = line.split(maxsplit=_MOST_WORDS)
        if not words:
            continue
        if words[0].startswith("#"):
            said.leave_out(CONFIG, number, line.strip(), "lines are comments")
            continue
        if words[0] in found:
            before, old = found[words[0]]
            text = " ".join([words[0], *old])
            said.leave_out(CONFIG, before, text, "lines are said again below")
        found[words[0]] = (number, words[1:])
    return found


def _number(path: Path, key: str, words: list[str]) -> Decimal:
    text = words[0] if len(words) == 1 else " ".join(words)
    try:
        value = Decimal(text) if len(text) <= _MOST_DIGITS else Decimal("nan")
    except DecimalException:
        value = Decimal("nan")
    if not value.is_finite() or not 0 <= value < 10**15:
        raise ConfigError(f"{path}: {key} {quote(text)}; expected a number of 0 or more")
    return value


def _knob(path: Path, key: str, words: list[str]) -> tuple[float, str]:
    """Return a knob's value, and what was rounded for it."""
    kind = KNOBS[key].kind
    if kind == "rate":
        bps = bps_of(" ".join(words))
        if bps is None:
            raise ConfigError(f"{path}: {key} {quote(' '.join(words))}; expected a rate, '50Mb/s'")
        exact = bps.scaleb(-6)
    else:
        exact = _number(path, key, words)
        exact = 1024 * (1 - exact) if kind == "gain" else exact
    whole = exact.to_integral_value()
    if kind == "gain":
        whole = min(whole, Decimal(1023))
    note = "" if whole == exact else f" (whole here; exactly {float(exact):g})"
    return float(whole), note


def _map(path: Path, key: str, words: list[str]) -> dict[int, Decimal]:
    """Return value by bit/s: ``count rate value rate value ...``."""
    numbers = [_number(path, key, [word]) for word in words]
    if len(numbers) % 2 != 1 or numbers[0] != len(numbers) // 2:
        raise ConfigError(f"{path}: {key} {quote(' '.join(words))}; expected the number of rates, "
                          "then 'bit/s value' for each")  # fmt: skip
    return {int(rate): value for rate, value in zip(numbers[1::2], numbers[2::2], strict=True)}


def _switch(path: Path, key: str, words: list[str], number: int, said: Ledger) -> None:
    usual, became, other = SWITCHES[key]
    text = " ".join([key, *words])
    first = _number(path, key, words[:1] or [""])
    if first == Decimal(usual):
        said.take(CONFIG, number, text, became)
    elif key == "ENABLE_QCN":
        raise ConfigError(f"{path}: {text}: without marks DCQCN does nothing; expected 1")
    else:
        said.leave_out(CONFIG, number, text, f"keys ask for {other}")


def _defaults(found: Config, said: Ledger) -> None:
    """Take that program's defaults for what the file leaves out, and say so."""
    for key, knob in KNOBS.items():
        if knob.name not in found.knobs:
            value, _ = _knob(Path(CONFIG), key, [knob.default])
            found.knobs[knob.name] = value
            became = f"not given: initial.{knob.name} = {value:g}, the default there"
            said.take(CONFIG, NOT_GIVEN, key, became)
    for key, default in NUMBERS.items():
        if key not in found.values:
            found.values[key] = Decimal(default)
            if key not in ("QLEN_MON_START", "L2_ACK_INTERVAL"):
                said.take(CONFIG, NOT_GIVEN, key, f"not given: {default}, the default there")


def knob_text(key: str, value: float) -> str:
    """Return a knob's value as ``config.txt`` writes it."""
    kind = KNOBS[key].kind
    if kind == "gain":
        return decimal_text(1 - Decimal(int(value)) / 1024)
    return f"{value:.0f}Mb/s" if kind == "rate" else f"{value:.0f}"
