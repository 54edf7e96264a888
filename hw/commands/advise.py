"""The advice for a network as what a fleet's devices are to get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcqcn_gym.commands.advise import said
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.hw.commands.output import Output

if TYPE_CHECKING:
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.drivers import Targets


def advised_targets(controller: Controller, scenario: str, out: Output) -> dict[str, Targets]:
    """Print the advice for a scenario's network; return device -> what it is to get.

    The scenario says line rate, round trip and buffers. Raises ConfigError for a fleet of another
    number of devices.
    """
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.hw.targets import targets_of_setting

    chosen = load_scenario(scenario)
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
    return targets_of_setting(controller.agents, wanted)
