"""ACC as a tuner: what its agents see and do, what it refuses, what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.core.knobs import NIC_KNOBS, Setting
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.learn.parallel import AgentsEnv
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import Outcome, make_tuner
from dcqcn_gym.tuners.acc import FOLDER, AccTuner, cost, load_network
from dcqcn_gym.tuners.acc_state import CENTRAL, TEMPLATES, joint_actions, layout, sides_of, sizes
from dcqcn_gym.tuners.ddqn import new_layers
from dcqcn_gym.tuners.policy import Policy, PolicyMeta

MINI = load_scenario("mini-llm-alltoall").model_copy(update={"warmup_us": 500.0})


def network(path: Path, sides: int = 0, seed: int = 1) -> str:
    """Write an untrained network and return its path."""
    layers = new_layers(sizes(sides), np.random.Generator(np.random.PCG64(seed)))
    outputs = sizes(sides)[-1]
    meta = PolicyMeta(
        algo="acc", observation_version=1, layout=layout(sides), knobs=("template",),
        output="argmax", steps=0, scenarios=(), command="none", versions={},
    )  # fmt: skip
    places = np.linspace(-1, 1, outputs, dtype=np.float32).reshape(-1, 1)
    plain = tuple((w.astype(np.float32), b.astype(np.float32)) for w, b in layers)
    path.write_bytes(Policy(meta, plain, places).to_bytes())
    return str(path)


def started(name: str, scenario: Scenario = MINI, **arguments: Any) -> AccTuner:
    tuner = make_tuner(name, arguments)
    spec = RunSpec(scenario, name, 1, 10)
    env = spec.make_env()
    tuner.start(spec.context(env))
    assert isinstance(tuner, AccTuner)
    return tuner


def test_sizes_and_templates() -> None:
    """{20, 40, 40, 20} and 216 actions; curves in the order of their thresholds."""
    assert sizes() == (20, 40, 40, 20)
    assert sizes(3) == (60, 40, 40, 216)
    assert len(TEMPLATES) == 20
    assert TEMPLATES[0] == {"kmin": 20, "kmax": 20, "pmax": 1.0}
    assert TEMPLATES[19] == {"kmin": 2560, "kmax": 10240, "pmax": 0.2}
    assert [t["kmax"] for t in CENTRAL] == [20, 80, 160, 640, 1280, 5120]
    assert joint_actions(3)[[0, 1, 6, 215]].tolist() == [[0] * 3, [0, 0, 1], [0, 1, 0], [5] * 3]
    assert sides_of(MINI.fabric.devices) == ("tor-downlinks", "tor-uplinks", "spine-downlinks")


def test_the_tuner_sees_what_the_agents_were_trained_on(tmp_path: Path) -> None:
    """Fed with the reports of a run, its inputs are the observations of the environment."""
    tuner = started("acc", file=network(tmp_path / "n.npz"))
    env = AgentsEnv(MINI, agents="port", history=4, templates=TEMPLATES, intervals=6)
    observations, _ = env.reset(seed=4)
    # the environment has seen a warm-up of half an interval, the tuner has not
    env._episode.past.rows[:] = 0  # type: ignore[union-attr]
    chosen = None
    while env.agents:
        setting = tuner.ask()
        if setting is None:
            chosen = [10] * len(env.agents)
            tuner._chosen = np.array(chosen)
        else:
            chosen = tuner._chosen.tolist()
            assert not isinstance(setting, Setting)
            for i, agent in enumerate(env.members):
                assert [setting[g] for g in agent.groups] == [env.templates[chosen[i]]]
        names = env.agents
        observations, _, _, _, infos = env.step(dict(zip(names, chosen, strict=True)))
        utility = infos[names[0]]["utility"]
        outcome = Outcome(MINI.initial_setting(), utility, None, np.zeros(0), env.reports[-1])  # type: ignore[arg-type]
        tuner.tell(outcome)
        assert np.array_equal(tuner._inputs(), np.array([observations[n] for n in names]))
    recommended = tuner.recommend()
    assert not isinstance(recommended, Setting)
    assert len(recommended) == 1 + 24


@pytest.mark.parametrize(("name", "groups"), [("acc", 25), ("acc-central", 4)])
@pytest.mark.parametrize("adapt", [False, True])
def test_runs_on_the_engine_repeat_and_resume(
    name: str, groups: int, adapt: bool, tmp_path: Path
) -> None:
    arguments = {"file": network(tmp_path / "n.npz", 3 * (groups == 4)), "adapt": adapt}
    spec = RunSpec(MINI, name, 1, 5, tuner_args=arguments)
    run(spec, tmp_path / "log")
    data = (tmp_path / "log").read_bytes()
    done = read_run(tmp_path / "log")
    assert len(done.intervals[-1]["setting"]) == groups
    base = dict(MINI.initial_setting())
    for values in done.intervals[-1]["setting"].values():
        assert all(values[k] == base[k] for k in NIC_KNOBS)  # ACC leaves the NICs alone
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    (tmp_path / "part").write_bytes(data[: ends[3]])
    run(spec, tmp_path / "part", replay=read_run(tmp_path / "part"))
    assert (tmp_path / "part").read_bytes() == data


def test_adapting_changes_the_network_and_what_it_does(tmp_path: Path) -> None:
    tuner = started("acc", file=network(tmp_path / "n.npz"), adapt=True, epsilon=0.5)
    env = AgentsEnv(MINI, agents="port", intervals=6)
    env.reset(seed=1)
    before = tuner._brain.layers[0][0].copy()
    for _ in range(5):
        tuner.ask()
        env.step({name: np.zeros(3) for name in env.agents})
        tuner.tell(Outcome(MINI.initial_setting(), 0.5, None, np.zeros(0), env.reports[-1]))  # type: ignore[arg-type]
    assert tuner.state()["updates"] == 2  # 24 steps per decision, from the first batch of 64 on
    assert not np.array_equal(before, tuner._brain.layers[0][0])


def test_a_network_for_other_agents_is_refused_in_one_sentence(tmp_path: Path) -> None:
    port, central = network(tmp_path / "a.npz"), network(tmp_path / "b.npz", 3)
    with pytest.raises(ConfigError, match=r"'1/acc-central/.*tuner 'acc' needs '1/acc/"):
        started("acc", file=central)
    with pytest.raises(ConfigError, match="tuner 'acc-central' needs"):
        started("acc-central", file=port)
    fat = load_scenario("fat-tree-1024")
    with pytest.raises(ConfigError, match=r"needs '1/acc-central/.*\[100, 40, 40, 7776\]"):
        started("acc-central", fat, file=central)
    with pytest.raises(ConfigError, match="did you mean 'acc-mini'"):
        started("acc", file="acc-mimi")


def test_it_needs_to_know_the_devices(tmp_path: Path) -> None:
    from dataclasses import replace

    tuner = make_tuner("acc", {"file": network(tmp_path / "n.npz")})
    spec = RunSpec(MINI, "acc", 1, 10)
    context = spec.context(spec.make_env())
    with pytest.raises(ConfigError, match="has to know the network's devices"):
        tuner.start(replace(context, devices=None))
    assert isinstance(context.devices, Devices)


def test_what_an_agent_costs() -> None:
    """20-40-40-20 is 3200 weights and 100 biases; ACC states 14 M FLOPS and 30 KB (section 6)."""
    layers = new_layers(sizes(), np.random.Generator(np.random.PCG64(1)))
    assert cost(layers, 2000.0, 24) == {
        "read_bytes_per_s": 48_000.0, "flops": 12_800_000.0, "model_bytes": 26_400.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sides"), [("acc-mini", 0), ("acc-websearch", 0), ("acc-central-mini", 3)]
)
def test_shipped_networks_fit_and_say_how_they_were_made(name: str, sides: int) -> None:
    policy = load_network(name)
    assert policy.meta.layout == layout(sides)
    assert (policy.inputs, *(len(bias) for _, bias in policy.layers)) == sizes(sides)
    words = policy.meta.command.replace("train-acc", "train --tuner acc")
    words = words.replace("--decisions ", "--steps ").replace("--weight ", "--algo-arg weight=")
    if "--central " in words:
        words = words.replace("--central ", "").replace("--tuner acc", "--tuner acc-central")
    assert words in (FOLDER / "README.md").read_text()
