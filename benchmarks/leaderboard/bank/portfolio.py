"""A portfolio: named settings as functions of the fabric's facts, for whoever chooses among them.

``portfolio.toml`` beside this says what each is for, where it harms, where it is from. Most are
the rule of :mod:`dcqcn_gym.tuners.rule` with some of its terms changed, without its territory: who
chooses has to try them. Ours; docs/measured/race.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel, load_toml
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.presets import PRESETS
from dcqcn_gym.tuners.rule import RuleFile, RuleTerms, Territory, advise, rule_file


class PortfolioSetting(StrictModel):
    """A setting of the file; ``set`` and ``times`` change terms of the rule, ``only`` leaves knobs.

    One with a ``preset`` is that and not the rule's. ``star_below_gbps``: not where all hosts have
    their full rate on a fabric of this speed and above, which facts cannot tell from a star.
    """

    name: str
    purpose: str
    harms: str
    provenance: str
    set: dict[str, float] = Field(default={})
    times: dict[str, float] = Field(default={})
    only: tuple[str, ...] | None = None
    schemes: tuple[str, ...] = ("dcqcn",)
    preset: str = ""
    star_below_gbps: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = RuleTerms.model_fields
        for name in (*self.set, *self.times):
            if name not in known:
                raise UnknownNameError(f"term of {self.name!r}", name, known)
        if self.preset and self.preset not in PRESETS:
            raise UnknownNameError(f"preset of {self.name!r}", self.preset, PRESETS)
        return self

    def terms(self) -> RuleFile:
        """Return the rule with these terms, to be used anywhere."""
        file = rule_file()
        terms = {n: v * self.times.get(n, 1.0) for n, v in file.terms.model_dump().items()}
        changed = file.model_dump() | {"terms": terms | self.set, "territory": _ANYWHERE}
        return RuleFile.model_validate(changed)


_ANY = (0.0, 1e9)
_ANYWHERE = Territory(
    line_rate_gbps=_ANY, hosts=_ANY, base_rtt_us=_ANY, oversubscription=_ANY, schemes=("dcqcn",)
).model_dump()


class PortfolioFile(StrictModel):
    """``portfolio.toml`` beside this."""

    settings: tuple[PortfolioSetting, ...]


@cache
def portfolio_file() -> PortfolioFile:
    """Return the settings that are shipped, the default first."""
    return load_toml(Path(__file__).with_suffix(".toml"), PortfolioFile)


@dataclass(frozen=True)
class Candidate:
    """A setting of the portfolio on a fabric, and a reason for each knob that it turns."""

    name: str
    setting: Setting
    reasons: Mapping[str, str]


def portfolio(facts: FabricFacts | None, default: Setting) -> tuple[Candidate, ...]:
    """Return what there is to choose from on a fabric whose default is ``default``, which is first.

    It is the default alone where nothing is known of the fabric, without PFC, and with a scheme or
    a reaction point that no setting was made for.
    """
    return tuple(_fitting(facts, default))


def _fitting(facts: FabricFacts | None, default: Setting) -> Iterator[Candidate]:
    if facts is None or not facts.pfc or facts.reaction_point != "nic":
        yield Candidate("default", default, {})
        return
    for one in portfolio_file().settings:
        fastest = one.star_below_gbps
        star = facts.oversubscription <= 1 and fastest and facts.line_rate_gbps >= fastest
        if star or (one.schemes and facts.scheme not in one.schemes):
            continue
        if one.preset:
            wanted = PRESETS[one.preset](facts.line_rate_gbps * 1e9, default.table)
            yield Candidate(one.name, wanted, {})
            continue
        advice = advise(facts, default, one.terms())
        turned = [n for n in advice.reasons if one.only is None or n in one.only]
        yield Candidate(
            one.name,
            default.replace({n: advice.setting[n] for n in turned}),
            {n: advice.reasons[n] for n in turned},
        )
