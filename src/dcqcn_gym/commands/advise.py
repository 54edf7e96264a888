"""``dcqcn-gym advise``: a setting from facts of the fabric; no simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dcqcn_gym.runs.options import ScenarioOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dcqcn_gym.core.fabric_facts import FabricFacts
    from dcqcn_gym.core.knobs import Setting
    from dcqcn_gym.envs.scenario.scenario import Scenario
    from dcqcn_gym.tuners.rule import Advice


def advise(
    scenario: ScenarioOption,
) -> None:
    """Print what to set on a network, why, and where the rule was tried; simulates nothing.

    Example: `dcqcn-gym advise --scenario fb-hadoop`
    """
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.report.traffic_choice import remarks

    chosen = load_scenario(scenario)
    said(chosen)
    for line in remarks(chosen):
        typer.echo(line)


def said(chosen: Scenario, say: Callable[[str], None] = typer.echo) -> Advice:
    """Print the advice for a network, and return it."""
    from dcqcn_gym.envs.scenario.facts import facts_of
    from dcqcn_gym.tuners import rule

    facts, default = facts_of(chosen), chosen.default_setting()
    found = rule.advise(facts, default)
    for line in _lines(facts, default, found):
        say(line)
    for line in _of_initial(chosen, facts, found):
        say(line)
    return found


def _of_initial(chosen: Scenario, facts: FabricFacts, found: Advice) -> Iterator[str]:
    """Yield what the advice does to the setting in force, and whether that marks too late."""
    from dcqcn_gym.core.fabric_facts import late_marking

    initial, default = chosen.initial_setting(), chosen.default_setting()
    others = [n for n in initial if initial[n] != default[n] and n not in found.reasons]
    if others:
        yield f"[initial] has {', '.join(others)} otherwise than the default, which is judged here"
    low, high = (initial.table[name].to_si(initial[name]) for name in ("kmin", "kmax"))
    shared = facts.shared_bytes
    late = late_marking(low, high, facts.meeting_hosts + 1, chosen.alpha, shared)
    if others and facts.pfc and late:
        yield f"[initial]: {late}"


def _lines(facts: FabricFacts, default: Setting, found: Advice) -> Iterator[str]:
    """Yield the fabric, the knobs that change with their reasons, and what was never tried."""
    from dcqcn_gym.tuners.rule import rule_file

    slowest = "" if facts.slowest_gbps is None else f"{facts.slowest_gbps:g} to "
    yield (
        f"fabric: {facts.hosts} hosts at {slowest}{facts.line_rate_gbps:g} Gb/s, "
        f"{facts.meeting_hosts} can "
        f"meet at a port; round trip {facts.base_rtt_us:g} us, {facts.oversubscription:g}:1, "
        f"{facts.shared_bytes / 1e6:.1f} MB shared per switch, scheme {facts.scheme}"
    )
    before, after = default, found.setting
    for name, why in found.reasons.items():
        unit = default.table[name].unit
        yield f"{name} = {after[name]:g} {unit} (default {before[name]:g}): {why}"
    if not found.reasons:
        yield "the default stays: the rule was never tried on such a network"
    else:
        yield "all other knobs stay at the default"
    tried = rule_file().territory
    yield (
        f"tried on {tried.line_rate_gbps[0]:g} to {tried.line_rate_gbps[1]:g} Gb/s, "
        f"{tried.hosts[0]:g} to {tried.hosts[1]:g} hosts, round trips of {tried.base_rtt_us[0]:g} "
        f"to {tried.base_rtt_us[1]:g} us, up to {tried.oversubscription[1]:g}:1, scheme "
        f"{', '.join(tried.schemes)}; in simulation alone"
    )
    for what in found.untried:
        yield f"never tried: {what}; the rule turns less there"
