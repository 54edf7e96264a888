"""The sentence at the top of the report: what was gained, or that nothing was."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcqcn_gym.core.statistics import ALL_SIZES, Estimate, paired_change, slowdown_by_seed
from dcqcn_gym.report.data import ReportData, Series
from dcqcn_gym.runs.table import with_interval

__all__ = ["Headline", "change_text", "headline", "mean_utility", "slowdown_change", "utility_gain"]


@dataclass(frozen=True)
class Headline:
    """``verdict`` is gain, loss, none (no measurable difference) or unknown (no evidence)."""

    verdict: str
    text: str


def mean_utility(series: Series) -> float:
    """Return the mean utility over the intervals with traffic; NaN if there is none."""
    busy = np.array([not r.get("idle") for r in series.records], dtype=bool)
    values = series.utility[busy] if len(series) else np.zeros(0)
    return float(np.mean(values)) if values.size else float("nan")


def utility_gain(data: ReportData, reference: str) -> Estimate:
    """Return the recommended setting's paired gain in mean utility over fresh seeds."""
    ours, theirs = (
        [mean_utility(data.evaluation[name][seed]) for seed in data.seeds]
        for name in ("recommended", reference)
    )
    return paired_change(ours, theirs)


def slowdown_change(data: ReportData, reference: str, statistic: str) -> Estimate:
    """Return the relative change of a slowdown statistic over all sizes, paired by seed."""
    ours, theirs = (
        slowdown_by_seed(
            [data.evaluation[name][seed].flows for seed in data.seeds], ALL_SIZES, statistic
        )
        for name in ("recommended", reference)
    )
    return paired_change(ours, theirs, relative=True)


def change_text(change: Estimate, *, percent: bool) -> str:
    """Return e.g. ``-12.3 % (95 % interval -20.1 to -4.0 %)``; no interval if unknown."""
    scale, unit, form = (100, "\u00a0%", "+.1f") if percent else (1, "", "+.4f")
    return with_interval(change, form, scale, unit=unit, style="words").replace("-", "−")


def headline(data: ReportData) -> Headline:
    """Say in one sentence what the run gained over the default, from the best evidence there is.

    The recommended setting on fresh seeds counts; without those, the utility during the run
    against the default on the same traffic, and the sentence says that this is all it is.
    """
    tuner = str(data.run.header.get("tuner", "the tuner"))
    if data.seeds:
        return _from_seeds(data, tuner)
    n = len(data.run)
    ours = mean_utility(data.run)
    if not n or np.isnan(ours):
        return Headline("unknown", "The log holds no interval with traffic yet.")
    default = data.references.get("default")
    if default is None or not len(default):
        return Headline(
            "unknown",
            f"Mean utility was {ours:.4f} over {n} intervals of {tuner}; there is no run with "
            "the default setting to compare it with.",
        )
    m = min(n, len(default))
    ours, theirs = mean_utility(data.run.first(m)), mean_utility(default.first(m))
    word = "above" if ours > theirs else "below" if ours < theirs else "equal to"
    return Headline(
        "unknown",
        f"While {tuner} was searching, mean utility was {ours:.4f}, {word} the default's "
        f"{theirs:.4f} on the same traffic; no setting was tried on fresh seeds, so what "
        "a recommendation would gain is not known.",
    )


def _from_seeds(data: ReportData, tuner: str) -> Headline:
    gain = utility_gain(data, "default")
    seeds = f"{gain.n} fresh seeds" if gain.n != 1 else "one fresh seed"
    slow = [_claim(slowdown_change(data, "default", s), percent=True) for s in ("mean", "p99")]
    what = (
        f"mean utility {change_text(gain, percent=False)} on {seeds}, mean FCT slowdown {slow[0]}, "
        f"p99 {slow[1]}; against the experts' setting: utility "
        f"{_claim(utility_gain(data, 'expert'), percent=False)}"
    )
    if gain.sign > 0:
        text = f"The setting that {tuner} found beats NVIDIA's default: {what}."
        return Headline("gain", text)
    if gain.sign < 0:
        text = f"The setting that {tuner} found is worse than NVIDIA's default: {what}."
        return Headline("loss", text)
    if gain.known or (gain.constant and gain.mean == 0):
        text = (
            f"Nothing was measurably gained over NVIDIA's default: with the setting that {tuner} "
            f"found, {what}; "
            + ("the interval of the utility includes zero." if gain.known else "no seed differs.")
        )
        return Headline("none", text)
    why = "one seed may be chance" if gain.n == 1 else "one trace, no interval"
    text = f"Against NVIDIA's default, the setting that {tuner} found gives {what} ({why})."
    return Headline("unknown", text)


def _claim(change: Estimate, *, percent: bool) -> str:
    """Return a change without its interval, but never without saying that it may be none."""
    text = change_text(replace(change, low=None, high=None), percent=percent)
    return f"{text} (not significant)" if change.known and not change.sign else text
