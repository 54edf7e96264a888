"""The rule: a setting from facts of the fabric alone, with a reason for every changed knob.

Its numbers stand in ``configs/tuners/advise.toml``, which ``leaderboard/bank/fit.py``
writes; docs/measured/keeper.md says why these knobs and no others. Where nothing like the fabric
was tried, the rule says so and turns less. Ours.
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

USUAL_RTT_US = 40.0
"""Base round trip at which thresholds are those of the terms: a path of eight links of 5 us."""

USUAL_FAN_IN = 16
"""Hosts that can meet at a port up to which floor and step are those of the terms."""

MOST_FILLED = 0.9
"""Of a port, by all hosts that can meet there at their floor: the rest drains their queue."""


class RuleTerms(StrictModel):
    """The numbers of the rule."""

    floor_share: float = Field(gt=0, le=1, description="of the line rate: rp_min_rate")
    step_mbps: float = Field(gt=0, description="rp_ai_rate, at any line rate")
    fan_in_power: float = Field(ge=1, description="of the usual fan-in over this: floor and step")
    time_reset_us: float = Field(gt=0, description="rp_time_reset")
    g: float = Field(ge=0, le=1023, description="rp_dce_tcp_g")
    kmin: float = Field(gt=0, description="kmin over the default's")
    kmax: float = Field(gt=0, description="kmax over the default's")
    pmax: float = Field(gt=0, le=1, description="pmax")
    rtt_power: float = Field(ge=0, description="of the round trip over the usual: kmin and kmax")
    buffer_share: float = Field(gt=0, description="of the shared buffer: kmax at most")


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
    changes = _floor(facts, given.terms, careful=bool(untried))
    if not untried:
        changes |= _recovery(facts, default, given.terms) | _marking(facts, default, given.terms)
    changes = {name: (v, why) for name, (v, why) in changes.items() if v != default[name]}
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


Changes = dict[str, tuple[float, str]]
"""The value (NVIDIA's units) and the reason of each knob that is turned."""


def _fewer(facts: FabricFacts, terms: RuleTerms) -> float:
    """Return by what factor floor and step are smaller where more hosts than usual can meet."""
    return float(min(1.0, USUAL_FAN_IN / facts.meeting_hosts) ** terms.fan_in_power)


def _port(facts: FabricFacts) -> str:
    return "a port" if facts.slowest_gbps is None else "the slowest port"


def _floor(facts: FabricFacts, terms: RuleTerms, *, careful: bool) -> Changes:
    """Return the lowest rate: what hosts that meet at a port may always send."""
    line, meeting = facts.receiver_gbps * 1e3, facts.meeting_hosts
    share = terms.floor_share / (2 if careful else 1) * _fewer(facts, terms)
    floor = max(1, int(line * min(share, MOST_FILLED / meeting)))
    why = (
        f"{meeting} hosts at this floor fill {100 * floor * meeting / line:.0f} % of "
        f"{_port(facts)} of {line:g} Mb/s: none of them can crawl at 1 Mb/s, and "
        "a queue of all of them still drains"
    )
    return {"rp_min_rate": (float(floor), why)}


def _recovery(facts: FabricFacts, default: Setting, terms: RuleTerms) -> Changes:
    """Return how soon a flow that was cut has its rate back."""
    line, meeting = facts.receiver_gbps * 1e3, facts.meeting_hosts
    step = max(default["rp_ai_rate"], float(round(terms.step_mbps * _fewer(facts, terms))))
    period = float(round(terms.time_reset_us))
    why = (
        f"{meeting} hosts that rise at once add {100 * step * meeting / line:.0f} % of "
        f"{_port(facts)} every {period:g} us"
    )
    return {
        "rp_time_reset": (
            period,
            "the time between two increases: how soon a cut flow has its rate back",
        ),
        "rp_ai_rate": (step, why),
        "rp_hai_rate": (max(default["rp_hai_rate"], step), "no smaller than rp_ai_rate"),
        "rp_dce_tcp_g": (
            float(round(terms.g)),
            "how quickly alpha, and with it a cut, follows the CNPs",
        ),
    }


def _marking(facts: FabricFacts, default: Setting, terms: RuleTerms) -> Changes:
    """Return where switches mark: by line rate as the default, by round trip and buffer.

    One curve holds for ports of all speeds, and a queue of so many bytes waits longest at the
    slowest: so it is that one's, where the default's follows the fastest.
    """
    trips = (facts.base_rtt_us / USUAL_RTT_US) ** terms.rtt_power
    most = terms.buffer_share * facts.shared_bytes / 1e3
    slower = facts.receiver_gbps / facts.line_rate_gbps
    kmax = min(default["kmax"] * terms.kmax * trips * slower, most)
    kmin = min(default["kmin"] * terms.kmin * trips * slower, kmax / 2)
    of = (
        f"for a round trip of {facts.base_rtt_us:g} us and {facts.shared_bytes / 1e6:.1f} MB shared"
    )
    if slower < 1:
        of += f" and ports of {facts.receiver_gbps:g} Gb/s, the slowest"
    return {
        "kmin": (float(max(1, round(kmin))), f"marking begins while queues are short, {of}"),
        "kmax": (float(max(2, round(kmax))), f"every packet is marked before ports pause, {of}"),
        "pmax": (terms.pmax, "how sharply marking rises between kmin and kmax"),
    }
