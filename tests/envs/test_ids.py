"""An environment id stands for what it does: other dynamics need another id."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dcqcn_gym.envs.ids import env_id
from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names
from environment_ids import TABLE, check, digest_of, table
from run_digests import SLOW

pytest.importorskip("dcqcn_gym._core")
KNOWN = table(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in scenario_names()]
)
def test_an_id_does_what_it_did(name: str) -> None:
    assert check(env_id(name), digest_of(load_scenario(name)), KNOWN) == ""


def test_other_dynamics_are_refused_under_the_same_id() -> None:
    name = "mini-fb-hadoop"
    scenario = load_scenario(name)
    changed = scenario.model_copy(update={"warmup_us": 4000.0})
    said = check(env_id(name), digest_of(changed), KNOWN)
    assert "raise ENV_VERSION" in said
    assert KNOWN[env_id(name)] in said
    assert "not in ids.txt" in check("dcqcn/MiniFBHadoop-v9", digest_of(changed), KNOWN)


def test_a_name_can_be_asked_for_before_gymnasium_is_there() -> None:
    asked = "import dcqcn_gym; print(dcqcn_gym.env_id('fb-hadoop'), len(dcqcn_gym.env_ids()))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == f"dcqcn/FBHadoop-v0 {1 + len(scenario_names())}\n"
