"""The answer to an operator: deploy, keep, a choice, or cannot tell. Made here, shown everywhere.

Every candidate is judged by :func:`~dcqcn_gym.core.verdict.verdict` against one baseline, the
setting in service, on the same held-out traffic. docs/verdict.md publishes the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.score import CLASSES, geometric_ratio, tail_times_ps
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.traffic_check import Problem
from dcqcn_gym.core.verdict import (
    FEWEST_FLOWS,
    Change,
    Flag,
    Measured,
    Verdict,
    changes,
    in_words,
    verdict,
)

Action = Literal["deploy", "keep", "a choice", "cannot tell"]

WORTH = 0.1
"""A gain below this, as a share of the slowdowns, is not worth another search, nor a harm."""

IN_SERVICE = "do-nothing"
"""The tuner that leaves a scenario's ``[initial]`` as it is: ``yours`` of a comparison."""

NAMES: Mapping[str, str] = {
    "default": "NVIDIA's default",
    "yours": "your setting",
    IN_SERVICE: "your setting",
    "expert": "the experts' setting",
    "advise": "the rule's setting (advise)",
    "candidate": "the candidate",
}
"""What a setting is called in a sentence; ``candidate`` is what the tuner came to."""

SIZES: Mapping[str, str] = {
    "0-100KB": "flows below 100 KB",
    "100KB-1MB": "flows of 100 KB to 1 MB",
    "1MB-": "flows from 1 MB",
}
"""What a class of sizes is called to an operator."""

MORE_SEEDS = "judge on more traffic: --eval-seeds 20 --eval-intervals 20"
BUSIER = (
    "take a busier window of the traffic (`dcqcn-gym traffic import` names the busiest, `--window` "
    "takes it) or a longer one"
)


@dataclass(frozen=True)
class Trade:
    """What one candidate gains and costs against the baseline, in an operator's numbers."""

    gains: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    not_tested: tuple[str, ...] = ()
    """Classes with too few flows for a guardrail."""

    @property
    def text(self) -> str:
        """All of it in one clause."""
        parts = [in_words(self.gains) or "no figure that can be told from chance is better"]
        parts += [f"but {in_words(self.costs)}"] if self.costs else []
        return "; ".join([*parts, *filter(None, [self.untested])])

    @property
    def untested(self) -> str:
        """The classes that were not tested; empty where all were."""
        few = in_words(self.not_tested)
        return f"not tested, for want of flows: {few}" if self.not_tested else ""


@dataclass(frozen=True)
class Answer:
    """What to do, with which setting, and why in one sentence.

    ``setting`` and ``baseline`` are keys of :data:`NAMES`. ``baseline`` is the setting in service,
    which everything was judged against; ``verdicts`` hold every other setting. ``next_step`` is
    what to do now: a command, or what traffic to bring.
    """

    action: Action
    setting: str
    why: str
    baseline: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    trade: Trade = Trade()
    next_step: str = ""
    calibrated: str = ""
    """How far the simulator is from the measured network; empty without measurements."""

    @property
    def title(self) -> str:
        """The answer and its reason, in one sentence."""
        gap = ": " if self.action in ("cannot tell", "a choice") else " "
        return f"{self.action.capitalize()}{gap}{self.sentence}"

    @property
    def sentence(self) -> str:
        """The same without its first words."""
        return self.why if self.action == "cannot tell" else f"{name_of(self.setting)}: {self.why}"

    @property
    def candidate(self) -> str | None:
        """The setting to look at: of the answer, else the best one that crosses no limit."""
        if self.action in ("deploy", "a choice"):
            return self.setting
        known = {name: v for name, v in self.verdicts.items() if v.score.n}
        harmless = {name: v for name, v in known.items() if not v.harms}
        of = harmless or known
        return max(of, key=lambda name: of[name].score.mean, default=None)

    def data(self) -> dict[str, Any]:
        """Return it for programs: the same in ``best.json`` and ``results.json``."""
        calibrated = {"calibrated": self.calibrated} if self.calibrated else {}
        return {
            **calibrated,
            "action": self.action,
            "setting": self.setting,
            "baseline": self.baseline,
            "title": self.title,
            "why": self.why,
            "gains": list(self.trade.gains),
            "costs": list(self.trade.costs),
            "not_tested": list(self.trade.not_tested),
            "next_step": self.next_step,
            "tried": {
                name: {"score": v.score, "deploy": v.deploy, "text": v.text}
                for name, v in self.verdicts.items()
            },
        }


def cannot_tell(why: str, baseline: str = "default", next_step: str = "") -> Answer:
    """Return the answer of runs that say nothing; ``next_step`` is what would."""
    return Answer("cannot tell", baseline, why, baseline, next_step=next_step)


def answer(
    tried: Mapping[str, Sequence[Measured]],
    baseline: str,
    rails: Guardrails | None = None,
    *,
    problem: Problem | None = None,
    longer: str = "",
    busiest: str = "",
) -> Answer:
    """Choose among settings by their held-out runs, seed by seed on the same traffic.

    ``problem`` says why this traffic is not the network's (a capture at one host), ``longer`` what
    a trace would have to have, ``busiest`` names windows of it. In this order: traffic that cannot
    answer; the candidate with the highest gain that crosses no guardrail; no evidence; a candidate
    that gains more than :data:`WORTH` and crosses one, as a choice; a gain that is still possible;
    the setting in service.
    """
    rails = rails or Guardrails()
    base = tried[baseline]
    verdicts = {n: verdict(runs, base, rails) for n, runs in tried.items() if n != baseline}
    if problem is not None:
        found = cannot_tell(problem.why, baseline, problem.step)
    elif quiet := _quiet(tried):
        found = cannot_tell(quiet, baseline, f"{BUSIER}; {busiest}" if busiest else BUSIER)
    else:
        found = _answer(tried, baseline, verdicts, longer)
    of = replace(found, verdicts=verdicts).candidate
    if of is None or found.action == "cannot tell":
        return replace(found, verdicts=verdicts)
    what = trade(tried[of], base, verdicts[of])
    why = found.why
    if found.action == "keep":
        why += f"; {what.untested}" if what.untested else ""
    else:
        why = f"against {name_of(baseline)}, {what.text}"
    return replace(found, why=why, verdicts=verdicts, trade=what)


def _answer(
    tried: Mapping[str, Sequence[Measured]],
    baseline: str,
    verdicts: Mapping[str, Verdict],
    longer: str,
) -> Answer:
    def best(of: Mapping[str, Verdict]) -> str:
        return max(of, key=lambda name: of[name].score.mean)

    good = {n: v for n, v in verdicts.items() if v.deploy == "yes" and not doubts(v)}
    if good:
        step = "dcqcn-gym emit DIR --changed-only"
        return Answer("deploy", best(good), "", baseline, next_step=step)
    if (slack := _slack(tried[baseline])) <= WORTH:
        why = (
            f"no setting matters: computation hides the communication (the busiest rank computes "
            f"in {100 - 100 * slack:.3g} % of the {_iteration_ms(tried[baseline]):.4g} ms of an "
            "iteration)"
        )
        return Answer("keep", baseline, why, baseline, next_step="nothing to do")
    unknown = [v for v in verdicts.values() if v.deploy == "unknown"]
    if unknown and len(unknown) == len(verdicts):
        why, step = _why_unknown(unknown)
        if any(m.rounds_ps for m in tried[baseline]):
            why, step = _why_one_job(tried, baseline, verdicts)
        return cannot_tell(why, baseline, longer or step)
    mixed = {
        n: v
        for n, v in verdicts.items()
        if v.harms and (v.score.low or 0.0) > 0 and _percent(v) > 100 * WORTH
    }
    open_ = {n: v for n, v in verdicts.items() if not v.harms and _reach(v) > WORTH}
    if mixed and (not open_ or _percent(mixed[best(mixed)]) > 2 * _percent(open_[best(open_)])):
        step = (
            "say what counts in [guardrails] of the scenario and run again; "
            "`dcqcn-gym emit DIR --force` prints it"
        )
        return Answer("a choice", best(mixed), "", baseline, next_step=step)
    if open_:
        name = best(open_)
        return cannot_tell(_why_open(name, open_[name]), baseline, longer or MORE_SEEDS)
    many = f"none of {len(verdicts)} other settings" if len(verdicts) > 1 else "no other setting"
    were = "were" if len(verdicts) > 1 else "was"
    why = f"{many} that {were} tried is more than {WORTH * 100:g} % better within the guardrails"
    return Answer("keep", baseline, why, baseline, next_step="nothing to do")


def _slack(runs: Sequence[Measured]) -> float:
    """Return by how much a setting could shorten iterations at most; NaN unless jobs alone ran."""
    return float(np.mean([m.slack for m in runs]))


def _iteration_ms(runs: Sequence[Measured]) -> float:
    known = [float(np.mean(m.rounds_ps)) for m in runs if m.rounds_ps]
    return float(np.mean(known or [np.nan])) * 1e-9


def _quiet(tried: Mapping[str, Sequence[Measured]]) -> str:
    """Return why no setting can matter on this traffic; empty where some can."""
    runs = [m for of in tried.values() for m in of]
    flows = count(int(m.flows.bytes.size) for m in next(iter(tried.values())))
    if any(m.contended for m in runs) or any(m.rounds_ps for m in runs):
        return ""
    if not flows:
        return "no flow started in what was judged, and nothing queued, so nothing can be said"
    return (
        f"nothing queued, was marked or paused under any of {len(tried)} settings, in {flows} "
        "flows, so no setting can matter here and nothing is known of busier traffic"
    )


def trade(ours: Sequence[Measured], base: Sequence[Measured], of: Verdict) -> Trade:
    """Return what a candidate gains and costs: only what is beyond chance."""
    drawn = all(m.drawn for m in (*ours, *base))
    table = {c.key: c for c in changes(ours, base, drawn=drawn)}
    few = {f.key.partition(" ")[2] for f in of.flags if f.state == "few" and " " in f.key}
    up = {f.key for f in of.flags if f.state == "up"}
    gains: list[str] = []
    costs: list[str] = []
    iteration = table.get("round")
    if iteration and (iteration.better or iteration.worse):
        (gains if iteration.better else costs).append(_PLAIN["round"](iteration))
    for i, size in enumerate(CLASSES):
        tail, mean = table[f"p99 {size.key}"], table[f"mean {size.key}"]
        change = tail if tail.better or tail.worse else mean
        # so few flows tell of no harm, so they tell of no gain either
        if change.worse or (change.better and size.key not in few):
            what = _class_words(SIZES[size.key], change, ours, base, i, tail=change is tail)
            (gains if change.better else costs).append(what)
        if mean.key in up and not change.worse:
            costs.append(_class_words(SIZES[size.key], mean, ours, base, i, tail=False))
    for key, words in _PLAIN.items():
        if (
            key != "round"
            and key in table
            and (table[key].better or table[key].worse)
            and _seen(table[key])
        ):
            (gains if table[key].better else costs).append(words(table[key]))
    if not gains and (of.score.low or 0.0) > 0:
        gains.append(
            f"slowdowns of all sizes together {_percent(of):.0f} % lower, of which no single "
            "figure can be told from chance"
        )
    there = [
        c.key for i, c in enumerate(CLASSES) if any(m.classes[i].count for m in (*ours, *base))
    ]
    untested = [f"{SIZES[key]} (fewer than {FEWEST_FLOWS})" for key in there if key in few]
    return Trade(tuple(gains), tuple(costs), tuple(untested))


def _class_words(
    size: str,
    change: Change,
    ours: Sequence[Measured],
    base: Sequence[Measured],
    i: int,
    *,
    tail: bool,
) -> str:
    """Return one class's change: the ratio beside the absolute numbers.

    Times where logs have them; slowdowns where they have not, or where a tail of slowdowns and one
    of times, which are other flows, moved in opposite directions.
    """
    own, theirs = change.ours, change.reference
    where, ratio = "on average (mean", theirs / own
    shown = f"{theirs:.3g} to {own:.3g} times ideal"
    if tail:
        where = "at the tail (p99"
        mine, before = (
            float(np.mean([tail_times_ps(m.flows)[i] for m in of])) for of in (ours, base)
        )
        if mine > 0 and before > 0 and (before > mine) is (ratio > 1):
            shown, ratio = f"{_duration(before)} to {_duration(mine)}", before / mine
    factor = max(ratio, 1 / ratio)
    percent = 1 - 1 / factor if ratio > 1 else factor - 1
    much = f"{factor:.1f} times" if factor >= 1.5 else f"{percent * 100:.0f} %"
    return f"{size} finish {much} {'sooner' if ratio > 1 else 'later'} {where} {shown})"


def _duration(ps: float) -> str:
    return f"{ps * 1e-9:.3g} ms" if ps >= 1e9 else f"{ps * 1e-6:.3g} µs"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _seen(change: Change) -> bool:
    """Whether a change is large enough to be a number: of shares, a tenth of a point."""
    return change.relative or abs(change.change.mean) >= 0.001


_PLAIN: Mapping[str, Any] = {
    "goodput": lambda c: f"goodput {_signed(c.change.mean * 100)} %",
    "pause": lambda c: f"paused {c.reference * 100:.2g} to {c.ours * 100:.2g} % of the time",
    "worst_pause": lambda c: (
        f"the worst device paused {c.reference * 100:.2g} to {c.ours * 100:.2g} % of the time"
    ),
    "unfinished": lambda c: f"unfinished flows {c.reference * 100:.2g} to {c.ours * 100:.2g} %",
    "round": lambda c: (
        f"iteration {c.reference * 1e-9:.4g} to {c.ours * 1e-9:.4g} ms "
        f"({_signed(c.change.mean * 100)} %)"
    ),
}


def doubts(of: Verdict) -> list[Flag]:
    """Return the limits that are crossed on average, although not beyond chance."""
    return [f for f in of.flags if f.state == "open" and f.cost.harm.mean > f.limit]


def _reach(of: Verdict) -> float:
    """Return the gain that is not ruled out, as a share of the slowdowns."""
    s = of.score
    return 1 - geometric_ratio(s.mean if s.high is None else s.high) if s.n else 0.0


def _percent(of: Verdict) -> float:
    return 100 * (1 - geometric_ratio(of.score.mean)) if of.score.n else 0.0


def _why_open(name: str, of: Verdict) -> str:
    if doubted := [flag.name for flag in doubts(of)]:
        return f"{name_of(name)} is better, but {in_words(doubted[:2])} may be beyond the guardrail"
    reach = f"{_reach(of) * 100:.0f}"
    return (
        f"{name_of(name)} may be up to {reach} % better, which these runs cannot tell from chance"
    )


def _why_one_job(
    tried: Mapping[str, Sequence[Measured]], baseline: str, verdicts: Mapping[str, Verdict]
) -> tuple[str, str]:
    """Return what one job or collective showed under the best setting: one sample of it."""
    known = {name: v for name, v in verdicts.items() if v.score.n and v.score.mean > 0}
    shown = "no other setting that was tried shortens it"
    if name := max(known, key=lambda n: known[n].score.mean, default=""):
        ours, base = (_iteration_ms(tried[n]) for n in (name, baseline))
        change = _signed(100 * (ours / base - 1))
        shown = f"iteration {base:.4g} to {ours:.4g} ms ({change} %) under {name_of(name)}"
    return (
        f"the rounds are the same in every run, so there is one sample: {shown}",
        "run it on other hosts and paths (`hosts`, `ecmp_salt`) and beside other traffic",
    )


def _why_unknown(of: Sequence[Verdict]) -> tuple[str, str]:
    if all(v.word == "one trace" for v in of):
        if all(v.score.constant or v.score.n > 1 for v in of):
            return (
                "the traffic is the same in every run, so what was seen may be chance",
                "give a longer trace or a distribution of sizes",
            )
        return "one held-out run may be chance", MORE_SEEDS
    return of[0].text, BUSIER


def name_of(setting: str) -> str:
    """Return what a setting is called in a sentence."""
    return NAMES.get(setting, setting)
