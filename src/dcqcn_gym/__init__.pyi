from pathlib import Path
from typing import Any

from dcqcn_gym._api import compare as compare
from dcqcn_gym._api import make as make
from dcqcn_gym._api import tune as tune
from dcqcn_gym.core.errors import DcqcnGymError as DcqcnGymError
from dcqcn_gym.core.knobs import Setting as Setting
from dcqcn_gym.core.knobs import default_setting as default_setting
from dcqcn_gym.core.knobs import expert_setting as expert_setting
from dcqcn_gym.envs.ids import env_id as env_id
from dcqcn_gym.envs.ids import env_ids as env_ids
from dcqcn_gym.envs.scenario.scenario import Scenario as Scenario
from dcqcn_gym.envs.scenario.scenario import load_scenario as load_scenario
from dcqcn_gym.envs.scenario.scenario import scenario_names as scenario_names
from dcqcn_gym.report.objective import objective as objective
from dcqcn_gym.runs.log import read_run as read_run
from dcqcn_gym.simulation.run import simulate as simulate
from dcqcn_gym.tuners import Tuner as Tuner

__all__: list[str]
__version__: str

def parallel_env(scenario: str | Path | Scenario = ..., **arguments: Any) -> Any: ...
