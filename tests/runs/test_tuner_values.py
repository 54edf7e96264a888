"""What goes over a tuner's pipe arrives as it was: every field of it, every number to the bit."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.benchmarks.leaderboard.tuner_host.protocol import encode
from dcqcn_gym.benchmarks.leaderboard.tuner_host.values import (
    context_from,
    context_plain,
    outcome_from,
    outcome_plain,
    proposal_from,
    proposal_plain,
)
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.core.scheme_tables import named_table
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import Outcome, Tuner, TunerContext

MIX = {"name": "mix", "groups": [{"hosts": [0, 1, 3], "scheme": "dcqcn-plus"}]}
"""Two schemes side by side: a setting has the knobs of both."""


def mini(**changes: Any) -> Scenario:
    return changed_scenario(load_scenario("mini-fb-hadoop"), changes, "test")


def unlike_its_default(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass; fail if one of them is what it would be anyway."""
    for field in fields(value):
        made = field.default_factory
        usual = field.default if made is MISSING else made()
        assert usual is MISSING or not np.array_equal(getattr(value, field.name), usual), (
            f"give {type(value).__name__}.{field.name} another value above, so that it is seen"
        )
    return {field.name: getattr(value, field.name) for field in fields(value)}


def outcomes(backend: str) -> list[Outcome]:
    """Return what a run on a backend tells a tuner."""
    heard: list[Outcome] = []

    class Hears(Tuner):
        def ask(self) -> None:
            return None

        def tell(self, outcome: Outcome) -> None:
            heard.append(outcome)

    one = RunSpec(load_scenario("mini-fb-hadoop"), "random", 1, 4, backend)
    env, tuner = one.make_env(), Hears()
    observation, _ = env.reset(seed=1)
    tuner.start(replace(one.context(env), observation=observation))
    for _ in range(4):
        interval = env.run_interval(env.initial_setting, tuning=True)
        tuner.tell(
            Outcome(
                interval.setting, interval.utility, interval.terms, interval.observation,
                interval.report,
            )
        )  # fmt: skip
    env.close()
    return heard


@pytest.mark.parametrize("backend", ["fake", "native"])
def test_outcomes_arrive_to_the_bit(backend: str) -> None:
    every = list(outcomes(backend))
    assert every
    for heard in every:
        outcome = replace(heard, intervals=3, triggered=True)
        back = outcome_from(json.loads(encode({"o": outcome_plain(outcome)}))["o"])
        assert back.observation.dtype == np.float32
        assert back.report.port_pause_ps.tobytes() == outcome.report.port_pause_ps.tobytes()
        found, given = unlike_its_default(back), unlike_its_default(outcome)
        assert found.pop("observation").tobytes() == given.pop("observation").tobytes()
        assert found == given


def full_context() -> TunerContext:
    """Return a context in which no field has the value that it has without being given."""
    scenario = mini(
        scheme=MIX, knobs={"kmin": [50, 100], "rp_ai_rate": [5, 10], "pfc_alpha": "tuned"},
        groups=["tor-uplinks", "spine"], cadence=3, trigger="kl",
    )  # fmt: skip
    table, devices = scenario.table, scenario.fabric.devices
    own = [table.nic[: 1 + h % 3] for h in range(devices.n_hosts)]
    spec = RunSpec(scenario, "random", 7, 40)
    seen = np.array([0.1, -0.0, 1e-42], dtype=np.float32)
    context = spec.context(spec.make_env())
    return replace(context, observation=seen, devices=replace(devices, nic_knobs=tuple(own)))


def test_every_field_of_a_context_arrives() -> None:
    context = full_context()
    assert context.space.ranges == {"kmin": (50, 100), "rp_ai_rate": (5, 10)}
    assert context.space.table.scheme == "dcqcn,dcqcn-plus+pfc_alpha"
    sent = json.loads(encode(context_plain(context)))
    back = unlike_its_default(context_from(sent))
    given = unlike_its_default(context)
    assert back.pop("observation").tobytes() == given.pop("observation").tobytes()
    assert back == given
    devices = given["devices"]
    assert unlike_its_default(back["devices"]) == unlike_its_default(devices)
    assert isinstance(devices, Devices)
    assert back["devices"].port_groups == devices.port_groups


def test_proposals_arrive_whole() -> None:
    base = full_context().base
    groups = {"cluster": base, "tor": base.replace({"pmax": 0.1 + 0.2})}
    for proposal in (None, base, groups):
        assert proposal_from(json.loads(json.dumps(proposal_plain(proposal)))) == proposal


def test_names_of_tables_are_read_or_refused() -> None:
    for name in ("timely", "dcqcn+pfc_alpha", "dcqcn-plus,dcqcn", "dcqcn,dcqcn-plus+pfc_alpha"):
        assert named_table(name).scheme == name
    with pytest.raises(UnknownNameError, match="unknown scheme 'dcqn'; did you mean 'dcqcn'"):
        named_table("dcqcn-plus,dcqn")
    with pytest.raises(UnknownNameError, match="did you mean 'pfc_alpha'"):
        named_table("dcqcn+pfc_alfa")


PLUGIN = """
import json
from dcqcn_gym.tuners.base import Proposal
from dcqcn_gym.tuners.random_search import RandomTuner

class Mine(RandomTuner):
    name = summary = "mine"

    def ask(self) -> Proposal:
        own = super().ask()
        return {groups}
"""


def played(folder: Path, scenario: Scenario, groups: str, backend: str = "fake") -> bytes:
    """Run a plug-in in both places, compare the bytes and return them."""
    file = folder / "mine.py"
    file.write_text(PLUGIN.format(groups=groups))
    logs = []
    for name, hosting in (("here", Hosting(apart=False)), ("apart", Hosting())):
        spec = RunSpec(scenario, f"{file}:Mine", 1, 4, backend, hosting=hosting)
        run(spec, folder / name)
        logs.append((folder / name).read_bytes())
    assert logs[0] == logs[1]
    return logs[1]


def test_a_plugin_may_set_uplinks_apart(tmp_path: Path) -> None:
    played(tmp_path, mini(), '{"cluster": self.context.base, "tor-uplinks": own}')
    found = read_run(tmp_path / "apart").intervals[-1]["setting"]
    assert list(found) == ["cluster", "tor-uplinks"]


def test_a_plugin_tunes_a_mix_of_schemes(tmp_path: Path) -> None:
    played(tmp_path, mini(scheme=MIX, knobs={"pfc_alpha": "tuned"}), "own", "native")
    settings = [line["setting"] for line in read_run(tmp_path / "apart").intervals]
    assert len({setting["pfc_alpha"] for setting in settings}) > 1


def test_a_plugin_has_the_ranges_of_the_scenario(tmp_path: Path) -> None:
    ranges = {"kmin": (50, 100), "kmax": (200, 300), "rp_ai_rate": (5, 10)}
    knobs = {name: list(bounds) for name, bounds in ranges.items()}
    played(tmp_path, mini(knobs=knobs), "own")
    lines = read_run(tmp_path / "apart").intervals
    assert lines
    for line in lines:
        for name, (low, high) in ranges.items():
            assert low <= line["setting"][name] <= high
