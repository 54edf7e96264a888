"""The wrappers: the same environment, actions and observations written differently."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import KNOBS, schemes
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.info import PlainInfo
from dcqcn_gym.envs.observation import as_groups, layout
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.wrappers import (
    DeltaAction,
    DictAction,
    DictObservation,
    GroupAction,
    NumericInfo,
)
from dcqcn_gym.extras.ns3.bridge import codec
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.ns3gym import GymDialogue
from dcqcn_gym.runs.entries import changed_scenario

ALL = [
    DictAction,
    DeltaAction,
    DictObservation,
    NumericInfo,
]


def new_env(**arguments: Any) -> DcqcnEnv:
    return DcqcnEnv(load_scenario("mini-fb-hadoop"), "fake", **arguments)


def made() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("dcqcn/MiniFBHadoop-v0", backend="fake")


@pytest.mark.parametrize("wrap", ALL)
def test_gymnasium_s_checker_passes_on_every_wrapper(wrap: Any) -> None:
    env = wrap(made())
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for _ in range(5):
        assert env.observation_space.contains(observation)
        observation, *_ = env.step(env.action_space.sample())
    again = env.spec.make()
    assert type(again) is type(env)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*different from the unwrapped version.*")
        check_env(again, skip_render_check=True)


def test_dict_actions_are_taken_exactly() -> None:
    env = DictAction(new_env())
    env.reset(seed=0)
    values = {n: KNOBS[n].tuned_at(25e9)[0] for n in env.space.knobs}
    values |= {"kmin": 123.0, "kmax": 321.0, "rp_ai_rate": 77.0, "pmax": 0.25}
    found = dict(env.step(values)[4]["setting"])
    assert {n: found[n] for n in values} == pytest.approx(values)


def test_dict_actions_are_brought_into_range() -> None:
    env = DictAction(new_env())
    env.reset(seed=0)
    values = dict.fromkeys(env.space.knobs, 1000000000000.0) | {
        "kmin": 400.0,
        "kmax": 100.0,
        "rp_gd": 11.4,
    }
    setting = env.step(values)[4]["setting"]
    assert setting["kmin"] == setting["kmax"] == 400
    assert setting["rp_gd"] == 11
    setting.check(25e9)


def test_dict_actions_name_what_is_wrong() -> None:
    env = DictAction(new_env(knobs=["kmin", "kmax"]))
    env.reset(seed=0)
    with pytest.raises(UnknownNameError, match="kmin"):
        env.step({"kmn": 1.0, "kmax": 2.0})
    with pytest.raises(ConfigError, match="kmin = nan"):
        env.step({"kmin": float("nan"), "kmax": 2.0})
    for wrong in ("a", None, [1]):
        with pytest.raises(ConfigError, match=r"action for kmin = .*: expected a finite number"):
            env.step({"kmin": wrong})
    with pytest.raises(ConfigError, match="an action is 3; expected values by knob"):
        env.step(3)


def test_a_dict_action_may_name_some_knobs_only() -> None:
    env = DictAction(new_env())
    env.reset(seed=0)
    first = dict(env.step({"rp_ai_rate": 77.0, "pmax": 0.25})[4]["setting"])
    before = dict(env.get_wrapper_attr("initial_setting"))
    assert (first["rp_ai_rate"], first["pmax"]) == (77.0, 0.25)
    second = dict(env.step({"kmin": 123.0})[4]["setting"])
    assert second["kmin"] == 123.0
    assert (second["rp_ai_rate"], second["pmax"]) == (77.0, 0.25)  # what is in force stays
    untouched = set(env.space.knobs) - {"rp_ai_rate", "pmax", "kmin", "kmax"}
    assert untouched
    assert {n: second[n] for n in untouched} == {n: before[n] for n in untouched}
    assert dict(env.step({})[4]["setting"]) == second


def test_a_step_moves_a_knob_by_its_step_in_its_direction() -> None:
    env = DeltaAction(new_env())
    env.reset(seed=0)
    names = env.space.knobs
    start = dict(env.step(np.zeros(14, np.float32))[4]["setting"])
    before = dict(env.get_wrapper_attr("setting"))
    assert start == before
    up = np.zeros(14, np.float32)
    for name in ("rp_ai_rate", "rp_time_reset", "kmin"):
        up[names.index(name)] = 1.0
    after = dict(env.step(up)[4]["setting"])
    assert after["rp_ai_rate"] == before["rp_ai_rate"] + 50
    assert after["rp_time_reset"] == before["rp_time_reset"] - 50  # sooner favours throughput
    assert after["kmin"] == pytest.approx(before["kmin"] + 25)  # 100 KB at 100 Gb/s
    untouched = set(names) - {"rp_ai_rate", "rp_time_reset", "kmin"}
    assert all(after[n] == before[n] for n in untouched)


def test_steps_stay_in_the_tuned_range() -> None:
    env = DeltaAction(new_env(), scale=50.0)
    env.reset(seed=0)
    for sign in (1.0, -1.0, 1.0):
        for _ in range(5):
            setting = env.step(np.full(14, sign, np.float32))[4]["setting"]
        setting.check(25e9)
        assert setting == env.space.setting(env.space.encode(setting), setting)


def test_groups_stack_on_fewer_knobs_and_under_steps() -> None:
    env = GroupAction(new_env(knobs=["kmin", "kmax"]), ["tor"])
    env.reset(seed=0)
    setting = env.step(np.ones(env.parts.n, np.float32))[4]["setting"]
    assert setting["tor"]["kmax"] > env.unwrapped.initial_setting["kmax"]  # type: ignore[attr-defined]
    over = DeltaAction(GroupAction(new_env(), ["tor"]))
    over.reset(seed=0)
    assert over.step(np.zeros(14, np.float32))[4]["setting"]["kmin"] > 0


def test_wrappers_stack() -> None:
    env = DictObservation(DeltaAction(new_env(knobs=["kmin", "kmax"])))
    assert env.action_space.shape == (2,)
    observation, _ = env.reset(seed=0)
    before = env.get_wrapper_attr("setting")
    info = env.step(np.array([1.0, 0.0], np.float32))[4]
    assert info["setting"]["kmin"] > before["kmin"]
    assert set(observation) == set(as_groups(np.zeros(67)))


@pytest.mark.parametrize("scheme", schemes())
def test_every_scheme_has_its_own_layout_in_every_face(scheme: str) -> None:
    own = changed_scenario(load_scenario("mini-fb-hadoop"), {"scheme": scheme}, "test")
    env = DictObservation(DcqcnEnv(own, "fake"))
    assert isinstance(env.observation_space, spaces.Dict)
    n = DcqcnEnv(own, "fake").observation_space.shape
    observation, _ = env.reset(seed=0)
    for _ in range(2):
        assert env.observation_space.contains(observation)
        assert (sum(len(part) for part in observation.values()),) == n
        assert len(observation["setting"]) == len(own.table.observed)
        observation, *_ = env.step(env.action_space.sample())
    said: list[pb.EnvStateMsg] = []

    def stop(state: bytes) -> bytes:
        said.append(codec.decode(pb.EnvStateMsg, state))
        return codec.encode(pb.EnvActMsg(stopSimReq=True))

    dialogue, box = GymDialogue(), pb.BoxSpace()
    dialogue.serve(stop, FakeBackend(), own, 0)
    assert dialogue.spaces(own)[0].space.Unpack(box)
    assert tuple(box.shape) == (len(box.lows),) == n
    assert codec.decode_box(said[0].obsData, len(box.lows)).shape == n
    assert list(box.names) == [slot.name for slot in layout(own.table)]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_steps_are_one_clear_sentence(bad: float) -> None:
    env = DeltaAction(new_env())
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="finite"):
        env.step(np.full(14, bad))
    with pytest.raises(ConfigError, match="shape"):
        env.step(np.zeros(3))


def test_a_foreign_environment_is_refused() -> None:
    with pytest.raises(ConfigError, match="DcqcnEnv"):
        DictAction(gymnasium.make("CartPole-v1"))


def test_numeric_info_has_one_shape_in_every_step() -> None:
    env = NumericInfo(DcqcnEnv(load_scenario("mini-llm-alltoall"), "native", intervals=6))
    _, info = env.reset(seed=1)
    seen = [info, *(env.step(env.action_space.sample())[4] for _ in range(6))]
    assert list(info) == list(PlainInfo.__annotations__)
    for later in seen:
        assert list(later) == list(info)
        for name, value in later.items():
            assert isinstance(value, bool | int | float | np.ndarray), name
            assert np.shape(value) == np.shape(info[name])
    assert {later["finished_rounds"] for later in seen} != {0}  # rounds come and go unseen
    env.close()


def test_minari_records_info(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = NumericInfo(DcqcnEnv(load_scenario("mini-llm-alltoall"), "native", intervals=3))
    collector = minari.DataCollector(env, record_infos=True)
    for seed in (1, 2):
        collector.reset(seed=seed)
        for _ in range(3):
            collector.step(env.action_space.sample())
    data = collector.create_dataset(dataset_id="dcqcn/test-v0")
    episode = next(data.iterate_episodes())
    assert episode.infos["fsd_bins"].shape == (4, 16)
    assert set(episode.infos["seed"]) == {1}


def test_an_episode_is_recorded_as_a_film(tmp_path: Path) -> None:
    for package in ("matplotlib", "moviepy"):
        pytest.importorskip(package)
    made = gymnasium.make(
        "dcqcn_gym:dcqcn/MiniFBHadoop-v0", backend="fake", intervals=3, render_mode="rgb_array"
    )
    env = gymnasium.wrappers.RecordVideo(made, str(tmp_path / "films"))
    env.reset(seed=1)
    for _ in range(3):
        env.step(env.action_space.sample())
    env.close()  # type: ignore[no-untyped-call]
    assert [film.suffix for film in (tmp_path / "films").iterdir() if film.stat().st_size] == [
        ".mp4"
    ]
