"""An episode as two lines of text or as a picture, for ``render``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import MissingExtraError
from dcqcn_gym.core.groups import cluster_setting
from dcqcn_gym.core.knobs import Knob
from dcqcn_gym.envs.info import Info

WIDTH_INCHES, HEIGHT_INCHES, DPI = 8.0, 6.0, 80


def as_text(scenario: str, intervals: int, info: Info) -> str:
    """Return two lines: what the network did in the last step, and under which setting."""
    setting = cluster_setting(info["setting"])
    values, table = setting, setting.table
    knobs = "  ".join(f"{n}={values[n]:g}{_unit(table[n])}" for n in table.tuned)
    state = "  idle" if info["idle"] else ""
    return (
        f"{scenario} {info['interval']}/{intervals}  t={info['end_ps'] * 1e-9:.3f} ms  "
        f"U={info['utility']:.4f} (tp {info['o_tp']:.3f} rtt {info['o_rtt']:.3f} "
        f"pfc {info['o_pfc']:.3f})  {info['throughput_bps'] * 1e-9:.1f} Gb/s  "
        f"rtt {info['rtt_mean_s'] * 1e6:.1f} us  pause {info['device_pause_s'] * 1e6:.1f} us"
        f"{state}\n"
        f"  {knobs}\n"
    )


def _unit(knob: Knob) -> str:
    unit = knob.unit
    return f" {unit}" if unit in ("us", "Mb/s", "KB", "%") else ""


def as_picture(scenario: str, intervals: int, history: Sequence[Info]) -> npt.NDArray[np.uint8]:
    """Return an RGB array (480, 640, 3): utility, terms, round trips and pause by interval."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("render_mode='rgb_array'", "report") from error
    figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), dpi=DPI, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    upper, middle, lower = figure.subplots(3, 1, sharex=True)
    at = [i["interval"] for i in history]
    figure.suptitle(f"{scenario}: interval {at[-1]} of {intervals}")
    upper.plot(at, [i["utility"] for i in history], "k.-", label="utility")
    for name, style in (("o_tp", "C0-"), ("o_rtt", "C1-"), ("o_pfc", "C2-")):
        upper.plot(at, [i[name] for i in history], style, lw=0.8, label=name)  # type: ignore[literal-required]
    upper.set(ylim=(0, 1.05), xlim=(0, max(intervals, 1)))
    upper.legend(loc="lower right", ncols=4, fontsize="small")
    middle.plot(at, [i["throughput_bps"] * 1e-9 for i in history], "C0.-")
    middle.set(ylabel="throughput, Gb/s")
    lower.plot(at, [i["rtt_mean_s"] * 1e6 for i in history], "C1.-", label="mean RTT")
    lower.plot(at, [i["device_pause_s"] * 1e6 for i in history], "C2.-", label="pause per device")
    lower.set(ylabel="us", xlabel="monitor interval")
    lower.legend(loc="upper right", fontsize="small")
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(canvas.buffer_rgba(), dtype=np.uint8)  # type: ignore[no-untyped-call]
    return pixels[:, :, :3].copy()
