"""The rule: a setting from facts of the fabric alone, with a reason for every changed knob.

Its numbers stand in ``configs/tuners/advise.toml``, which :mod:`dcqcn_gym.benchmarks.keeper.fit`
writes; docs/keeper.md says why these knobs and no others. Where nothing like the fabric was tried,
the rule says so and turns less. Ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pydantic import Field

from dcqcn_gym.core.config import CONFIGS, StrictModel, load_toml
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.knobs import Setting

Range = tuple[float, float]


class RuleTerms(StrictModel):
    """The numbers of the rule."""

    floor_share: float = Field(gt=0, le=1, description="of the line rate, shared by all who meet")
    floor_cap: float = Field(gt=0, le=1, description="most of the line rate that is a floor")
    time_reset_us: float = Field(gt=0, description="rp_time_reset")
    g: float = Field(ge=0, le=1023, description="rp_dce_tcp_g")
    ecn: float = Field(gt=0, description="kmin and kmax over the default's")
    pmax: float = Field(gt=0, le=1, description="pmax")


class Territory(StrictModel):
    """Between which facts the rule was tried: lowest and highest of each, and the schemes."""

    line_rate_gbps: Range
    hosts: Range
    base_rtt_us: Range
    oversubscription: Range
    schemes: tuple[str, ...]


class RuleFile(StrictModel):
    """``configs/tuners/advise.toml``."""

    made_by: str
    terms: RuleTerms
    territory: Territory


@cache
def rule_file() -> RuleFile:
    """Return the numbers that are shipped."""
    return load_toml(CONFIGS / "tuners" / "advise.toml", RuleFile)


@dataclass(frozen=True)
class Advice:
    """``setting``, a reason for each knob that it turns, and what of the fabric was never tried."""

    setting: Setting
    reasons: Mapping[str, str]
    untried: tuple[str, ...]


def advise(facts: FabricFacts | None, default: Setting, file: RuleFile | None = None) -> Advice:
    """Return what to set on a fabric whose default is ``default``; nothing is simulated.

    Another scheme than was tried leaves the default; any other fact outside of what was tried gives
    half the floor and nothing else.
    """
    given = rule_file() if file is None else file
    if facts is None:
        return Advice(default, {}, ("nothing is known of the fabric",))
    untried = _untried(facts, given.territory)
    if facts.scheme not in given.territory.schemes or facts.reaction_point != "nic":
        return Advice(default, {}, untried)
    changes = _changes(facts, default, given.terms, careful=bool(untried))
    reasons = {name: why for name, (_, why) in changes.items()}
    setting = default.replace({name: value for name, (value, _) in changes.items()})
    return Advice(setting, reasons, untried)


def _untried(facts: FabricFacts, territory: Territory) -> tuple[str, ...]:
    found = []
    for name in ("line_rate_gbps", "hosts", "base_rtt_us", "oversubscription"):
        value, (low, high) = getattr(facts, name), getattr(territory, name)
        if not low <= value <= high:
            found.append(f"{name} = {value:g} (tried: {low:g} to {high:g})")
    if facts.scheme not in territory.schemes:
        found.append(f"scheme {facts.scheme!r} (tried: {', '.join(territory.schemes)})")
    if facts.reaction_point != "nic":
        found.append(f"the reaction point {facts.reaction_point!r} (tried: 'nic')")
    if not facts.pfc:
        found.append("a network without PFC")
    return tuple(found)


def _changes(
    facts: FabricFacts, default: Setting, terms: RuleTerms, *, careful: bool
) -> dict[str, tuple[float, str]]:
    """Return the value (NVIDIA's units) and the reason of each knob that is turned."""
    line = facts.line_rate_gbps * 1e3
    share = terms.floor_share / (2 if careful else 1)
    meeting = share * line / facts.meeting_hosts
    floor = max(1, round(min(meeting, terms.floor_cap * line)))
    found = {
        "rp_min_rate": (
            float(floor),
            f"{facts.meeting_hosts} hosts at this floor fill "
            f"{100 * floor * facts.meeting_hosts / line:.0f} % of a port of {line:g} Mb/s: none of "
            "them can crawl at 1 Mb/s, and a queue of all of them still drains",
        )
    }
    if careful:
        return found
    found["rp_time_reset"] = (
        terms.time_reset_us,
        "the time between two increases: how soon a cut flow has its rate back",
    )
    found["rp_dce_tcp_g"] = (terms.g, "how quickly alpha follows the CNPs")
    for name in ("kmin", "kmax"):
        found[name] = (
            default[name] * terms.ecn,
            f"{terms.ecn:g} times the default: packets are marked before queues are long",
        )
    found["pmax"] = (terms.pmax, "how sharply marking rises between kmin and kmax")
    return {name: (value, why) for name, (value, why) in found.items() if value != default[name]}
