"""The scenario that the tests of the digital fabric share."""

from __future__ import annotations

import pytest
from fabrics import SMALL

from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return it, read from a file."""
    file = tmp_path_factory.mktemp("scenario") / "small-fabric.toml"
    file.write_text(SMALL)
    return load_scenario(file)
