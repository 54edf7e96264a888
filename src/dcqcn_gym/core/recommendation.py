"""The recommendation: of every setting that was tried, which one to have in force.

Each is judged by :func:`~dcqcn_gym.core.verdict.verdict` against the setting in force now, on the
same fresh traffic; docs/verdict.md publishes the rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dcqcn_gym.core.score import geometric_ratio
from dcqcn_gym.core.verdict import Flag, Measured, Verdict, verdict

Action = Literal["deploy", "keep", "search more"]

WORTH = 0.1
"""A gain below this, as a share of the slowdowns, is not worth another search."""

NAMES: Mapping[str, str] = {
    "default": "NVIDIA's default",
    "yours": "your setting",
    "expert": "the experts' setting",
    "advise": "the rule's setting (advise)",
    "found": "the setting that was found",
}
"""What a setting is called in a sentence; ``found`` is what the tuner came to."""


@dataclass(frozen=True)
class Recommendation:
    """What to do, with which setting (a key of :data:`NAMES`), and why in one sentence.

    ``in_force`` is what everything was judged against; ``verdicts`` hold every other setting.
    """

    action: Action
    name: str
    why: str
    in_force: str
    verdicts: Mapping[str, Verdict]

    @property
    def title(self) -> str:
        """The recommendation and its reason, in one sentence."""
        gap = ": " if self.action == "search more" else " "
        return f"{self.action.capitalize()}{gap}{self.sentence}"

    @property
    def sentence(self) -> str:
        """The same without its first word."""
        return self.why if self.action == "search more" else f"{_of(self.name)}: {self.why}"

    @property
    def closest(self) -> str | None:
        """The setting to look at: what to deploy, else the best one that crosses no limit."""
        if self.action == "deploy":
            return self.name
        known = {name: v for name, v in self.verdicts.items() if v.score.n}
        harmless = {name: v for name, v in known.items() if not v.harms}
        of = harmless or known
        return max(of, key=lambda name: of[name].score.mean, default=None)


def not_tried(why: str) -> Recommendation:
    """Return what to say where no setting was tried on fresh traffic."""
    return Recommendation("search more", "default", why, "default", {})


def recommend(tried: Mapping[str, Sequence[Measured]], in_force: str) -> Recommendation:
    """Choose among settings by their fresh runs, seed by seed on the same traffic.

    The one with the highest S is deployed of those whose verdict is yes, and that are on average
    within every limit. Else the one in force is kept, unless a gain of more than :data:`WORTH` is
    still possible.
    """
    base = tried[in_force]
    verdicts = {name: verdict(runs, base) for name, runs in tried.items() if name != in_force}

    def best(of: Mapping[str, Verdict]) -> str:
        return max(of, key=lambda name: of[name].score.mean)

    shown = {n: v for n, v in verdicts.items() if v.deploy == "yes" and not doubts(v)}
    if shown:
        name = best(shown)
        lower = f"slowdowns are {_percent(shown[name].score.mean)} % lower"
        why = f"{lower} than with {_of(in_force)}, and no limit is crossed"
        return Recommendation("deploy", name, why, in_force, verdicts)
    unknown = [v for v in verdicts.values() if v.deploy == "unknown"]
    if unknown and len(unknown) == len(verdicts):
        return Recommendation("search more", in_force, _why_unknown(unknown), in_force, verdicts)
    open_ = {name: v for name, v in verdicts.items() if not v.harms and _reach(v) > WORTH}
    if open_:
        name = best(open_)
        why = _why_open(name, open_[name])
        return Recommendation("search more", in_force, why, in_force, verdicts)
    many = f"none of {len(verdicts)} other settings" if len(verdicts) > 1 else "no other setting"
    why = f"{many} that were tried is more than {WORTH:.0%} better without crossing a limit"
    why = why.replace("%", " %").replace("setting that were", "setting that was")
    return Recommendation("keep", in_force, why, in_force, verdicts)


def doubts(of: Verdict) -> list[Flag]:
    """Return the limits that are crossed on average, although not beyond chance."""
    return [f for f in of.flags if f.state == "open" and f.cost.harm.mean > f.limit]


def _reach(of: Verdict) -> float:
    """Return the gain that is not ruled out, as a share of the slowdowns."""
    s = of.score
    return 1 - geometric_ratio(s.mean if s.high is None else s.high) if s.n else 0.0


def _why_open(name: str, of: Verdict) -> str:
    if doubted := [flag.name for flag in doubts(of)]:
        what = f"{_of(name)} is better, but {' and '.join(doubted[:2])} may be beyond the limit"
    else:
        reach = f"{_reach(of) * 100:.0f}"
        what = (
            f"{_of(name)} may be up to {reach} % better, which these runs cannot tell from chance"
        )
    return f"{what}; judge it on more traffic (--eval-seeds, --eval-intervals)"


def _why_unknown(of: Sequence[Verdict]) -> str:
    if all(v.word == "one trace" for v in of):
        if all(v.score.constant or v.score.n > 1 for v in of):
            return (
                "the traffic is the same on every seed, so what was seen may be chance; give a "
                "longer trace or a distribution of sizes"
            )
        return "one fresh seed may be chance; judge on more of them (--eval-seeds)"
    return of[0].text


def _of(name: str) -> str:
    return NAMES.get(name, name)


def _percent(score: float) -> str:
    share = abs(1 - geometric_ratio(score)) * 100
    return f"{share:.0f}" if math.isfinite(share) else "?"
