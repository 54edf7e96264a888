"""``dcqcn-gym hw advise``: what the advice for a network would change on a fleet."""

from __future__ import annotations

from dcqcn_gym.commands.advise import said
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.hw.commands.fleet import FleetOption, open_fleet
from dcqcn_gym.hw.commands.output import PLACES, JsonOption, output
from dcqcn_gym.runs.options import ScenarioOption


def advise_fleet(fleet: FleetOption, scenario: ScenarioOption, as_json: JsonOption = False) -> None:
    """Print the same for a fleet, and place by place what its devices hold instead.

    The scenario file tells line rate, round trip and buffers; a fleet of another number of devices
    is refused. Nothing changes: `hw apply`, or `hw tune` with its default tuner, puts it in force.

    Example: `dcqcn-gym hw advise --fleet fleet.toml --scenario my-fabric.toml`
    """
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.hw.targets import targets_of_setting

    chosen = load_scenario(scenario)
    with open_fleet(fleet) as controller, output(as_json) as out:
        found = said(chosen, out.say)
        network = chosen.fabric
        for what, here, expected in (
            ("NICs", len(controller.agents.nics), network.n_hosts),
            ("switches", len(controller.agents.switches), network.n_nodes - network.n_hosts),
        ):
            if here != expected:
                raise ConfigError(
                    f"the fleet has {here} {what}, the scenario {expected}; expected as many: what "
                    "is advised depends on it"
                )
        wanted = {name: found.setting[name] for name in found.reasons}
        out.facts |= {"advised": wanted, "why": dict(found.reasons), "untried": [*found.untried]}
        plans = controller.plan(targets_of_setting(controller.agents, wanted))
        places = {name: plan.lines for name, plan in plans.items()}
        out.plans(places, PLACES, "every device holds it already")
