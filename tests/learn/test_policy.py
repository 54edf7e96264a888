"""Policy files without torch: the forward pass, the file, the tuner, what is wrong with a file."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.observation import (
    OBSERVATION_SIZE,
    OBSERVATION_VERSION,
    idle_observation,
    layout_name,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.wrappers import ladder
from dcqcn_gym.extras.learn.spec import TrainSpec
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.testing.tuner_case import TunerCase
from dcqcn_gym.tuners import TunerContext, make_tuner
from dcqcn_gym.tuners.policy import (
    FIRST_LAYOUT,
    FOLDER,
    Policy,
    PolicyMeta,
    load_policy,
    shipped_policies,
)
from toy_tables import OTHER_SCHEME, WITH_TOY

SPACE = KnobSpace()


def meta(**changes: Any) -> PolicyMeta:
    values: dict[str, Any] = {
        "algo": "ppo",
        "observation_version": OBSERVATION_VERSION,
        "knobs": SPACE.knobs,
        "output": "clip",
        "steps": 10,
        "scenarios": ("mini-fb-hadoop",),
        "command": "dcqcn-gym train ...",
        "versions": {},
    }
    return PolicyMeta.model_validate({**values, **changes})


def network(*widths: int, **changes: Any) -> Policy:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([7])))
    layers = tuple(
        (
            (rng.standard_normal((b, a)) / np.sqrt(a)).astype(np.float32),
            (0.1 * rng.standard_normal(b)).astype(np.float32),
        )
        for a, b in itertools.pairwise(widths)
    )
    actions = ladder(SPACE) if changes.get("output") == "argmax" else None
    return Policy(meta(**changes), layers, actions)


def spec(file: Path | str, **changes: Any) -> RunSpec:
    scenario = load_scenario("mini-fb-hadoop").model_copy(update=changes)
    return RunSpec(scenario, "policy", 1, 8, "fake", {"file": str(file)})


def write(path: Path, policy: Policy) -> Path:
    path.write_bytes(policy.to_bytes())
    return path


def test_forward_pass_by_hand() -> None:
    # hidden: relu(x0 - x1), relu(x1 - x0 + 1); out: (h0 - h1, 0.5 h1)
    first = np.array([[1, -1], [-1, 1]], np.float32), np.array([0, 1], np.float32)
    last = np.array([[1, -1], [0, 0.5]], np.float32), np.zeros(2, np.float32)
    policy = Policy(meta(knobs=("kmin", "kmax")), (first, last))
    assert policy.act([0.75, 0.5]).tolist() == [-0.5, 0.375]
    assert policy.act([0.0, 3.0]).tolist() == [-1.0, 1.0]  # clipped from -4 and 2
    squashed = replace(policy, meta=meta(knobs=("kmin", "kmax"), output="tanh"))
    assert squashed.act([0.75, 0.5]) == pytest.approx(np.tanh([-0.5, 0.375]), abs=1e-6)
    table = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
    chooser = replace(policy, meta=meta(knobs=("kmin", "kmax"), output="argmax"), actions=table)
    assert np.array_equal(chooser.act([0.75, 0.5]), table[1])


@pytest.mark.parametrize("output", ["clip", "tanh", "argmax"])
def test_file_round_trip_gives_the_same_bytes(tmp_path: Path, output: str) -> None:
    policy = network(OBSERVATION_SIZE, 64, 64, 25 if output == "argmax" else 14, output=output)
    path = write(tmp_path / "p.npz", policy)
    again = load_policy(path)
    assert again.meta == policy.meta
    assert again.to_bytes() == path.read_bytes()
    x = np.linspace(-1, 1, OBSERVATION_SIZE, dtype=np.float32)
    assert np.array_equal(again.act(x), policy.act(x))
    Policy.load(path).save(tmp_path / "policy.npz")
    assert Policy.load(tmp_path).to_bytes() == path.read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"p.npz", "policy.npz"}


class TestPolicyOfAFile(TunerCase):
    """The conformance kit on a random network."""

    tuner = "policy"

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "random.npz", network(OBSERVATION_SIZE, 16, 14))
        type(self).arguments = {"file": str(path)}


def test_a_run_follows_the_policy(tmp_path: Path) -> None:
    policy = network(OBSERVATION_SIZE, 16, 14)
    run(spec(write(tmp_path / "p.npz", policy)), tmp_path / "run.jsonl")
    done = read_run(tmp_path / "run.jsonl")
    settings = {tuple(line["setting"].values()) for line in done.intervals}
    assert len(settings) > 1  # it reacts
    assert done.end is not None
    recommended = done.end["recommended"]
    for name in SPACE.knobs:
        values = [line["setting"][name] for line in done.intervals]
        assert min(values) <= recommended[name] <= max(values)


MINI = [name for name in shipped_policies() if name.endswith("-mini")]
ELASTIC = [name for name in shipped_policies() if name not in MINI]


def test_shipped_policies_fit_this_version_and_are_small() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert {load_policy(name).meta.algo for name in MINI} == {"ppo", "sac", "td3", "dqn"}
    for name in shipped_policies():
        policy = load_policy(name)
        assert (FOLDER / f"{name}.npz").stat().st_size < 100_000
        assert policy.meta.observation_version == OBSERVATION_VERSION
        assert policy.inputs == OBSERVATION_SIZE
        assert policy.meta.knobs == SPACE.knobs
        assert name in ELASTIC or policy.meta.command in readme
        assert np.all(np.abs(policy.act(np.zeros(OBSERVATION_SIZE))) <= 1)


@pytest.mark.parametrize("name", ELASTIC)
def test_an_elastic_policy_is_what_the_command_trains_on_a_suite_without_ranking(name: str) -> None:
    meta = load_policy(name).meta
    algo, _, seed = name.split("-")
    files = tuple(map(str, sorted(Path("configs/suites/learn-v1").glob("[0-9]*.toml"))))
    trained = TrainSpec(algo, files, steps=6_000, seed=int(seed), episode=130)
    assert meta.command == trained.command()
    assert meta.steps == trained.whole_steps()
    learned = load_suite("learn-v1")
    assert meta.command.count("suites/learn-v1/") == len(learned.file.scenarios)
    assert {Path(path).stem for path in meta.scenarios} == set(learned.scenarios)
    digest = hashlib.sha256((FOLDER / f"{name}.npz").read_bytes()).hexdigest()
    lines = (FOLDER / "README.md").read_text().splitlines()
    assert any(f"| `{name}.npz` |" in line and digest in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"observation_version": 99}, "observations of version 99, this environment gives"),
        ({"knobs": (*SPACE.knobs[:-1], "rp_gd2")}, "other knobs than this environment turns"),
        ({"knobs": tuple(reversed(SPACE.knobs))}, "the same in another order"),
    ],
)
def test_a_policy_for_something_else_is_refused_at_the_start(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    path = write(tmp_path / "p.npz", network(OBSERVATION_SIZE, 8, 14, **changes))
    with pytest.raises(ConfigError, match=expected):
        spec(path).check()


def test_a_policy_for_another_knob_table_is_refused_by_both_names(tmp_path: Path) -> None:
    there = layout_name(KnobSpace(table=OTHER_SCHEME))
    path = write(tmp_path / "p.npz", network(OBSERVATION_SIZE, 8, 14, layout=there))
    digests = [name.split("/")[2] for name in (there, layout_name(SPACE))]
    with pytest.raises(ConfigError) as caught:
        spec(path).check()
    assert (
        f"was trained for the knob table of scheme 'toy' ({digests[0]}), this environment has "
        f"the knob table of scheme 'dcqcn' ({digests[1]}); train it again with: dcqcn-gym train"
    ) in str(caught.value)


@pytest.mark.parametrize("name", ["acc", "acc-central"])
def test_a_network_of_acc_is_sent_to_the_tuner_that_runs_it(name: str) -> None:
    file = FOLDER.parent / "acc" / f"{name}-mini.npz"
    with pytest.raises(ConfigError, match=f"ACC, .* dcqcn-gym tune --tuner {name} --tuner-arg"):
        spec(file).check()


def test_the_shipped_policies_are_those_of_the_first_table() -> None:
    """The first files say nothing; what that means is fixed, whatever becomes of the table."""
    assert {load_policy(name).meta.layout for name in ELASTIC} <= {FIRST_LAYOUT}
    for name in MINI:
        assert load_policy(name).meta.layout == FIRST_LAYOUT
        with np.load(FOLDER / f"{name}.npz") as file:
            assert "layout" not in json.loads(file["meta"].tobytes())
    assert layout_name(SPACE) == FIRST_LAYOUT, "the shipped policies have to be trained again"


def test_a_knob_nobody_tunes_breaks_no_shipped_file() -> None:
    space = KnobSpace(line_rate_bps=25e9, table=WITH_TOY)
    base = default_setting(25e9, WITH_TOY)
    context = TunerContext(
        space=space,
        base=base,
        seed=1,
        intervals=4,
        observation=idle_observation(base, space),
        observation_version=OBSERVATION_VERSION,
        observation_layout=layout_name(space),
    )
    assert ELASTIC
    tuners: list[tuple[str, dict[str, object]]] = [("policy", {"file": name}) for name in ELASTIC]
    tuners += [(name, {}) for name in (*MINI, "pretrained-alltoall", "pretrained-fbhadoop")]
    for name, arguments in tuners:
        tuner = make_tuner(name, arguments)
        tuner.start(context)
        proposal = tuner.ask()
        assert isinstance(proposal, Setting)
        assert proposal.check(25e9).table == WITH_TOY
        assert proposal["toy_gap"] == base["toy_gap"]
    other = replace(
        context,
        space=KnobSpace(table=OTHER_SCHEME),
        observation_layout=layout_name(KnobSpace(table=OTHER_SCHEME)),
    )
    for name, arguments in tuners:
        with pytest.raises(ConfigError, match=r"'dcqcn'.*'toy'"):
            make_tuner(name, arguments).start(other)


def test_another_length_of_observation_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.npz", network(5, 8, 14))
    with pytest.raises(ConfigError, match="expects observations of 5 numbers"):
        run(spec(path), tmp_path / "run.jsonl")


def test_files_that_are_no_policies_are_named(tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("hello")
    other = tmp_path / "other.npz"
    np.savez(other, a=np.zeros(3))
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, meta=np.array([{"x": 1}], dtype=object))
    cut = tmp_path / "cut.npz"
    cut.write_bytes(network(OBSERVATION_SIZE, 8, 14).to_bytes()[:-100])
    for path in (text, other, pickled, cut):
        with pytest.raises(ConfigError, match=f"{path.name} is not a policy file"):
            load_policy(path)
    with pytest.raises(ConfigError, match="neither a file nor a policy of the package"):
        load_policy("ppo-minni")
    with pytest.raises(ConfigError, match="no training has reached a checkpoint there"):
        load_policy(tmp_path)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (network(OBSERVATION_SIZE, 8, 13), "the last layer gives 13 numbers, not 14"),
        (replace(network(4, 8, 14), layers=network(4, 8, 14).layers[1:] * 2), "do not fit"),
        (replace(network(4, 14), actions=np.zeros((2, 14), np.float32)), "'argmax' alone"),
        (replace(network(4, 14), layers=((np.full((14, 4), np.nan, np.float32),
                                          np.zeros(14, np.float32)),)), "not finite"),
        (replace(network(4, 14), meta=meta().model_copy(update={"format": 2})), "format 2"),
    ],
)  # fmt: skip
def test_damaged_networks_are_named(tmp_path: Path, policy: Policy, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_policy(write(tmp_path / "p.npz", policy))
