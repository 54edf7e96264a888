"""The names that knobs have on devices, for people who type or paste those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import KNOBS, Knob

T = TypeVar("T")


WINOF: Mapping[str, str] = {
    "DcQcnClampTgtRate": "rp_clamp_tgt_rate", "DcQcnTimeReset": "rp_time_reset",
    "DcQcnClampTgtRateAfterTimeInc": "rp_clamp_tgt_rate_ati", "DcQcnByteReset": "rp_byte_reset",
    "DcQcnThreshold": "rp_threshold", "DcQcnMaxRate": "rp_max_rate", "DcQcnAIRate": "rp_ai_rate",
    "DcQcnHaiRate": "rp_hai_rate", "DcQcnAlphaToRateShift": "rp_gd",
    "DcQcnMinDecFac": "rp_min_dec_fac", "DcQcnMinRate": "rp_min_rate",
    "DcQcnRateToSetOnFirstCnp": "rp_rate_to_set_on_first_cnp",
    "DcQcnRateReduceMonitorPeriod": "rp_rate_reduce_monitor_period",
    "DcQcnDceAlphaG": "rp_dce_tcp_g", "DcQcnDceAlphaUpdatePeriod": "rp_dce_tcp_rtt",
    "DcQcnInitialAlphaValue": "rp_initial_alpha_value",
    "DcQcnMinTimeBetweenCnps": "np_min_time_between_cnps",
}  # fmt: skip
"""Windows, in the units of the other tools: NVIDIA's "DCQCN CC Parameters"."""
_SHORT: Mapping[str, str] = {
    "rpg_time_reset": "rp_time_reset",
    "clamp_tgt_rate_after_time_inc": "rp_clamp_tgt_rate_ati",
    "min_time_bet_cnp": "np_min_time_between_cnps",
    "rate_target_clamp": "rp_clamp_tgt_rate",
    "initial_alpha": "rp_initial_alpha_value",
    **{name.lower(): knob for name, knob in WINOF.items()},
}
"""Names in the kernel's folders, of bnxt_re, hiroce3 and WinOF that no column of the table has."""


def nic_knob(text: str, knobs: Mapping[str, Knob] = KNOBS) -> str | None:
    """Return the NIC's knob that some device calls so, in whatever case, or with ``_P1``."""
    plain = text.removesuffix("_P1").removesuffix("_P2").lower()
    if _SHORT.get(plain) in knobs:
        return _SHORT[plain]
    return next(
        (r.name for r in knobs.values()
         if plain in ((r.mlxconfig or "").lower(), r.debugfs) and not r.is_ecn), None
    )  # fmt: skip


def knob_name(text: str, knobs: Mapping[str, Knob] = KNOBS) -> str:
    """Return the knob that a NIC calls so (``RPG_AI_RATE_P1``, ``rpg_ai_rate``), or ``text``.

    Raises ConfigError for a switch's name, which has another unit.
    """
    for row in knobs.values():
        if row.is_ecn and text.lower() == row.sonic:
            unit = "percent" if row.name == "pmax" else "bytes"
            raise ConfigError(
                f"{text} is a switch's name of {row.name}, in {unit}; expected {row.name} in "
                f"{row.unit}, or `dcqcn-gym settings import`, which reads what devices print"
            )
    return nic_knob(text, knobs) or text


def by_knob_name(values: Mapping[str, T], knobs: Mapping[str, Knob] = KNOBS) -> dict[str, T]:
    """Return ``values`` by the knobs' own names; ConfigError if a knob is there by two names."""
    named: dict[str, T] = {}
    for text, value in values.items():
        name = knob_name(str(text), knobs)
        if name in named:
            raise ConfigError(
                f"{name} is there twice, also as {text}; expected every knob once (of a NIC's two "
                "ports one; `dcqcn-gym settings import` reads a query whole)"
            )
        named[name] = value
    return named
