"""The figures of a comparison: utility by interval with bands, final utility, profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dcqcn_gym.comparison.ranks import leads
from dcqcn_gym.comparison.results import WINDOW, EntryResult, moving_mean, scored
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.report.axes import Axis, linear_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel

COLUMNS = 4
WIDEST = 1.0
"""An interval is drawn so far beyond the means, in spans of the means; an arrow says more."""
BASELINE_SCORE = Estimate(0.0, None, None, 0)
COLOURS = 8
"""Series that a profile shows at once: more cannot be distinguished."""


def mean_over(intervals: int) -> int:
    """Return how many intervals a point of a curve is a mean over: at most a third of them."""
    return max(1, min(WINDOW, intervals // 3))


def curve(entry: EntryResult) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, low and high of the smoothed utility per interval, over the seeds.

    Where a seed's interval was idle its last value stays, so that the curve has no holes.
    """
    n = max(len(f.utility) for f in entry.figures)
    matrix = np.full((len(entry.figures), n), np.nan)
    for line, figures in zip(matrix, entry.figures, strict=True):
        line[: len(figures.utility)] = _held(moving_mean(figures.utility, mean_over(n)))
    mean, low, high = (np.full(n, np.nan) for _ in range(3))
    for i in range(n):
        at = estimate(matrix[:, i])
        mean[i] = at.mean
        low[i] = at.mean if at.low is None else at.low
        high[i] = at.mean if at.high is None else at.high
    return mean, low, high


def _held(values: FloatArray) -> FloatArray:
    known = np.where(np.isnan(values), 0, np.arange(len(values)))
    return np.asarray(values[np.maximum.accumulate(known)], dtype=np.float64)


def _role(entry: EntryResult) -> str:
    if entry.is_baseline:
        return "default"
    return entry.tuner if entry.tuner == "expert" else "tuned"


def utility_figure(entries: Sequence[EntryResult]) -> Chart:
    """Draw one small panel per tuner: its curve with band over the baseline's."""
    curves = {entry.tuner: (entry, curve(entry)) for entry in entries if entry.seeds}
    means = [mean for _, (mean, _, _) in curves.values()]
    longest = np.array([1.0, max(len(mean) for mean in means)])
    x, y = linear_axis([longest], exact=True, wanted=3), linear_axis(means, margin=0.15, wanted=4)
    panels = []
    for tuner, (entry, (mean, low, high)) in curves.items():
        panel = Panel(tuner, x, y, 100, "interval", follow=True)
        if entry.baseline in curves and not entry.is_baseline:
            base = curves[entry.baseline][1][0]
            panel.line(Key("default", entry.baseline), _count(base), base)
        key = Key("default", tuner)
        if not entry.is_baseline:
            key = Key(_role(entry), "expert" if tuner == "expert" else "this tuner")
        panel.band(key, _count(mean), low, high, "band")
        panel.line(key, _count(mean), mean)
        panels.append(panel)
    return Chart(panels, COLUMNS)


def _count(values: FloatArray) -> FloatArray:
    return np.arange(1.0, len(values) + 1)


def dots_figure(entries: Sequence[EntryResult]) -> Chart:
    """Draw what decides the places, one line per tuner: S over the baseline, or else utility."""
    return _scores_figure(entries) if scored(entries) else _utilities_figure(entries)


def _scores_figure(entries: Sequence[EntryResult]) -> Chart:
    """Draw the score S of each tuner with its interval, and an arrow where that leaves the frame.

    The frame holds every mean and all of the intervals but those that are far wider than the rest.
    """
    drawn = [entry for entry in entries if entry.seeds]
    scores = [entry.verdict.score if entry.verdict else BASELINE_SCORE for entry in drawn]
    means = np.array([s.mean for s in scores])
    reach = WIDEST * max(float(np.ptp(means)), 1e-9)
    ends = np.array([x for s in scores for x in (s.low, s.high) if x is not None])
    inside = np.clip(ends, means.min() - reach, means.max() + reach)
    title = "Score S over the baseline on held-out traffic, 95 % intervals (right is better)"
    panel = _by_tuner(title, drawn, linear_axis([means, inside]))
    panel.rule(x=0.0)
    for place, (entry, score) in enumerate(zip(drawn, scores, strict=True)):
        key = _span(panel, entry, score, place)
        panel.dot(key, score.mean, place, f"{entry.tuner}: S = {score.mean:+.3f}")
    return Chart([panel])


def _utilities_figure(entries: Sequence[EntryResult]) -> Chart:
    """Draw final utility (full, with interval) and online utility (hollow) per tuner."""
    drawn = [entry for entry in entries if entry.seeds]
    means = [np.array([entry.final.mean, entry.online.mean]) for entry in drawn]
    title = "Mean utility: final on held-out traffic (full, 95 % interval), online (hollow)"
    panel = _by_tuner(title, drawn, linear_axis(means, margin=0.15))
    for place, entry in enumerate(drawn):
        if entry.is_baseline:
            panel.rule(x=entry.final.mean)
        key = _span(panel, entry, entry.final, place)
        panel.dot(key, entry.online.mean, place, f"{entry.tuner}: online {entry.online.mean:.4f}",
                  hollow=True)  # fmt: skip
        panel.dot(key, entry.final.mean, place, f"{entry.tuner}: final {entry.final.mean:.4f}")
    return Chart([panel])


def _by_tuner(title: str, drawn: Sequence[EntryResult], x: Axis) -> Panel:
    """Return an empty panel with a line per tuner, the first at the top."""
    names = named_axis([entry.tuner for entry in drawn], down=True)
    return Panel(title, x, names, 16 + 20 * len(drawn), wide_names=True)


def _span(panel: Panel, entry: EntryResult, value: Estimate, place: int) -> Key:
    """Draw an interval, if it is known, on a tuner's line; return the tuner's key."""
    key = Key(_role(entry), "tuners" if _role(entry) == "tuned" else entry.tuner)
    if value.low is not None and value.high is not None:
        panel.span(key, value.low, value.high, place)
    return key


def profile_figure(entries: Sequence[EntryResult]) -> Chart:
    """Draw, for every gain over the baseline, on which share of the seeds a tuner reached it.

    The performance profile of Agarwal et al., "Deep RL at the Edge of the Statistical Precipice"
    (NeurIPS 2021), of the score S, or of the final utility where there are no scores: a curve
    further to the right is better.
    """
    by_score = scored(entries)
    base = {f.seed: f for entry in entries if entry.is_baseline for f in entry.figures}
    gains = {}
    for entry in entries:
        pairs = [(f, base[f.seed]) for f in entry.figures if f.seed in base]
        if not entry.is_baseline:
            gains[entry.tuner] = np.sort(
                leads(pairs) if by_score else [a.final - b.final for a, b in pairs]
            )
    gains = {tuner: values for tuner, values in gains.items() if values.size}
    what = "score S" if by_score else "gain in final utility"
    title = f"Share of the seeds, %, with at least this {what} over the baseline"
    return profile_chart(gains, title, f"{what} over the baseline")


def profile_chart(gains: Mapping[str, FloatArray], title: str, x_label: str) -> Chart:
    """Draw performance profiles of sorted gains, by name; more than eight wait to be asked for."""
    every = linear_axis([*gains.values(), np.zeros(1)], wanted=6)
    share = Axis(-4.0, 104.0, tuple((float(p), str(p)) for p in range(0, 101, 25)))
    panel = Panel(title, every, share, 190, x_label)
    panel.rule(x=0.0)
    keys = []
    for i, (tuner, values) in enumerate(gains.items()):
        keys.append(Key(f"c{i % COLOURS}", tuner))
        x = np.concatenate([[every.low], np.repeat(values, 2), [every.high]])
        y = 100 * np.repeat(np.arange(len(values), -1, -1) / len(values), 2)
        panel.line(keys[-1], x, y)
    return Chart([panel], hidden=keys[COLOURS:])
