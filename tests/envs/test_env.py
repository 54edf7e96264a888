"""The environment: every registered id against the kit; budget, end, cadence, settings, picture."""

from __future__ import annotations

import math
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import dcqcn_gym
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import ConfigError, StateError, UnknownNameError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import expert_setting
from dcqcn_gym.core.utility import terms, utility
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.info import info_schema
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario, scenario_names
from dcqcn_gym.testing.env_case import EnvCase
from large import LARGE

BACKENDS = ("fake", "native")


def quick(name: str = "mini-fb-hadoop", **changes: Any) -> Scenario:
    """Return a scenario with short intervals and warm-up, so that paper scale is quick too."""
    whole = load_scenario(name)
    steps = -(-whole.intervals // whole.cadence)  # of its id
    short = {"monitor_interval_us": 50.0, "warmup_us": 100.0, "cadence": 1}
    return whole.model_copy(update={**short, "intervals": min(40, steps), **changes})


def scenario_of(env_id: str) -> str:
    return str(gymnasium.spec(env_id).kwargs.get("scenario", "fb-hadoop"))


def needs(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("dcqcn_gym._core")


class TestEveryRegisteredId(EnvCase):
    """Registered means tested, on the packet engine, with short intervals."""

    env_id: str

    @pytest.fixture(
        autouse=True,
        params=[
            pytest.param(name, marks=pytest.mark.slow) if scenario_of(name) in LARGE else name
            for name in dcqcn_gym.env_ids()
        ],
    )
    def _choose(self, request: pytest.FixtureRequest) -> None:
        needs("native")
        self.env_id = request.param

    def new_env(self, **arguments: Any) -> gymnasium.Env[Any, Any]:
        scenario = quick(scenario_of(self.env_id))
        return gymnasium.make(self.env_id, scenario=scenario, **arguments)

    def test_gymnasium_check_env(self, env: gymnasium.Env[Any, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped, skip_render_check=True)  # the picture is the same: TestFake


class TestFake(EnvCase):
    """The same on the fake backend, with the scenario as it is."""

    def new_env(self, **arguments: Any) -> gymnasium.Env[Any, Any]:
        return gymnasium.make("dcqcn/MiniFBHadoop-v0", backend="fake", **arguments)


def test_every_scenario_has_an_id() -> None:
    assert {dcqcn_gym.env_id(n) for n in scenario_names()} == set(dcqcn_gym.env_ids()) - {
        "dcqcn/Dcqcn-v0"
    }
    assert dcqcn_gym.env_id("mini-llm-alltoall") == "dcqcn/MiniLLMAlltoall-v0"
    assert dcqcn_gym.env_id("fb-hadoop-uplink30") == "dcqcn/FBHadoopUplink30-v0"


@pytest.mark.parametrize("env_id", dcqcn_gym.env_ids())
def test_made_by_id_alone(env_id: str) -> None:
    env = gymnasium.make(f"dcqcn_gym:{env_id}", backend="fake")
    assert env.unwrapped.scenario.name == scenario_of(env_id)  # type: ignore[attr-defined]
    assert gymnasium.spec(env_id).vector_entry_point


def env_of(backend: str = "fake", **changes: Any) -> DcqcnEnv:
    needs(backend)
    return DcqcnEnv(quick(**changes), backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_reward_is_the_utility_of_the_report(backend: str) -> None:
    env = env_of(backend)
    env.reset(seed=1)
    _, reward, _, _, info = env.step(np.zeros(14))
    assert reward == info["utility"] == utility(terms(info["report"]), env.scenario.weights)
    assert info["setting"] == env.space.setting(np.zeros(14), env.initial_setting) == env.setting


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_explicit_setting_is_one_interval(backend: str) -> None:
    env = env_of(backend, cadence=3)
    env.reset(seed=1)
    expert = expert_setting(env.scenario.line_rate_bps)
    info = env.step_setting(expert)[4]
    assert (info["interval"], info["intervals"], info["setting"]) == (1, 1, expert)
    assert env.step_setting(None)[4]["setting"] == expert
    grouped = {"cluster": env.initial_setting, "tor": expert}
    assert env.step_setting(grouped)[4]["setting"] == grouped
    assert env.setting == env.initial_setting


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cadence_is_the_mean_over_its_intervals(backend: str) -> None:
    slow, fast = env_of(backend, cadence=3), env_of(backend)
    slow.reset(seed=2)
    fast.reset(seed=2)
    action = np.full(14, 0.3)
    observation, reward, _, _, info = slow.step(action)
    steps = [fast.step(action) for _ in range(3)]
    assert info["reports"] == tuple(s[4]["report"] for s in steps)
    assert reward == pytest.approx(np.mean([s[1] for s in steps]))
    assert observation == pytest.approx(np.mean([s[0] for s in steps], axis=0), abs=1e-6)
    assert info["intervals"] == 3


def test_the_budget_counts_intervals_not_steps() -> None:
    env = env_of(cadence=4, intervals=10)
    env.reset(seed=0)
    flags, counts = zip(*((s[3], s[4]["intervals"]) for s in _steps(env, 3)), strict=True)
    assert flags == (False, False, True)
    assert counts == (4, 4, 2)


def _steps(env: DcqcnEnv, n: int) -> list[Any]:
    return [env.step(np.zeros(14)) for _ in range(n)]


def test_step_after_the_end_or_before_reset_names_reset() -> None:
    env = env_of(intervals=1)
    with pytest.raises(StateError, match="reset"):
        env.step(np.zeros(14))
    env.reset(seed=0)
    env.step(np.zeros(14))
    with pytest.raises(StateError, match="reset"):
        env.step(np.zeros(14))
    env.close()
    with pytest.raises(StateError, match="reset"):
        env.step_setting(None)


def test_terminated_when_a_finite_scenario_has_delivered_everything() -> None:
    needs("native")
    flows = {"kind": "flows", "flows": [[0, 1, 20_000, 0], [2, 9, 500_000, 60_000]]}
    scenario = Scenario.model_validate(
        {**quick(intervals=100).model_dump(mode="json"), "warmup_us": 0, "workloads": [flows]}
    )
    env = DcqcnEnv(scenario)
    observation, info = env.reset(seed=0)
    assert info["report"] is None
    assert env.observation_space.contains(observation)
    delivered, terminated, n = 0, False, 0
    while not terminated:
        _, _, terminated, truncated, info = env.step(np.zeros(14))
        delivered += info["delivered_bytes"]
        n += 1
        assert not truncated
    assert delivered == 520_000
    assert n < 100


def test_an_unbounded_scenario_never_terminates() -> None:
    needs("native")
    env = env_of("native", intervals=5)
    env.reset(seed=0)
    assert not any(s[2] for s in _steps(env, 5))


def test_finishing_early_never_costs_reward() -> None:
    env = DcqcnEnv(quick(warmup_us=0.0), FakeBackend(work_intervals=1))
    env.reset(seed=0)
    assert env.step(np.zeros(14))[2]  # terminated
    backend = FakeBackend(work_intervals=0)
    silent = DcqcnEnv(quick(warmup_us=0.0), backend)
    silent.reset(seed=0)
    _, reward, _, _, info = silent.step(np.zeros(14))
    assert (reward, info["idle"], info["utility"]) == (1.0, True, 1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_warm_up_runs_under_the_initial_setting(backend: str) -> None:
    env = env_of(backend, warmup_us=120.0)
    _, info = env.reset(seed=0)
    report = info["report"]
    assert isinstance(report, IntervalReport)
    assert (report.start_ps, report.end_ps) == (70_000_000, 120_000_000)
    assert (info["interval"], info["setting"]) == (0, env.initial_setting)
    assert env.step(np.zeros(14))[4]["start_ps"] == 120_000_000


def test_a_reset_option_replaces_the_initial_setting() -> None:
    env = env_of()
    expert = expert_setting(env.scenario.line_rate_bps)
    _, info = env.reset(seed=0, options={"setting": expert})
    assert info["setting"] == expert
    assert env.reset(seed=0)[1]["setting"] == env.initial_setting
    with pytest.raises(ConfigError, match="sett"):
        env.reset(options={"sett": expert})


def test_never_seeded_is_seed_zero() -> None:
    assert env_of().reset()[1]["seed"] == 0


def test_only_the_named_knobs_are_turned() -> None:
    env = DcqcnEnv(quick(), "fake", knobs=["kmin", "rp_gd"])
    env.reset(seed=0)
    info = env.step(np.array([1.0, 1.0]))[4]
    changed = {n for n in env.setting if info["setting"][n] != env.initial_setting[n]}
    assert changed <= {"kmin", "rp_gd"}
    assert changed == {"kmin", "rp_gd"}
    assert info["setting"]["kmin"] == env.initial_setting["kmax"]  # bounded by what is not turned


def test_bad_arguments_are_one_clear_sentence() -> None:
    with pytest.raises(UnknownNameError, match="mini-fb-hadoop"):
        DcqcnEnv("mini-fb-hadop", "fake")
    with pytest.raises(UnknownNameError, match="fake"):
        DcqcnEnv(quick(), "fak")
    with pytest.raises(UnknownNameError, match="kmin"):
        DcqcnEnv(quick(), "fake", knobs=["kmn"])
    with pytest.raises(ConfigError, match="intervals"):
        DcqcnEnv(quick(), "fake", intervals=0)
    for wrong in (2.7, "7", math.nan):
        with pytest.raises(ConfigError, match=r"intervals = .*: expected at least 1, a whole"):
            DcqcnEnv(quick(), "fake", intervals=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown scenario '3'"):
        DcqcnEnv(3, "fake")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="render_mode"):
        DcqcnEnv(quick(), "fake", render_mode="human")
    env = env_of()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="kmin = 400 KB is larger"):
        env.step_setting(env.initial_setting.replace({"kmin": 400, "kmax": 100}))


def test_a_scenario_may_be_a_path() -> None:
    file = CONFIGS / "scenarios" / "mini-fb-hadoop.toml"
    assert DcqcnEnv(file, "fake").scenario == DcqcnEnv(str(file), "fake").scenario


def test_ansi_is_text_and_rgb_is_a_picture() -> None:
    text = DcqcnEnv(quick(), "fake", render_mode="ansi")
    text.reset(seed=0)
    text.step(np.zeros(14))
    shown = text.render()
    assert isinstance(shown, str)
    assert "mini-fb-hadoop 1/40" in shown
    assert "kmin=" in shown
    pytest.importorskip("matplotlib")
    picture = DcqcnEnv(quick(), "fake", render_mode="rgb_array")
    picture.reset(seed=0)
    blank = picture.render()
    _steps(picture, 3)
    frame = picture.render()
    assert isinstance(frame, np.ndarray)
    assert frame.shape == (480, 640, 3)
    assert frame.dtype == np.uint8
    assert isinstance(blank, np.ndarray)
    assert not np.array_equal(frame, blank)


def test_render_before_reset_names_reset() -> None:
    with pytest.raises(StateError, match="reset"):
        DcqcnEnv(quick(), "fake", render_mode="ansi").render()


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("dcqcn/MiniFBHadoop-v0", backend="fake")
        env.reset(seed=0)
        env.step(env.action_space.sample())


def test_the_info_schema_names_every_plain_value() -> None:
    schema = info_schema()
    env = env_of()
    _, info = env.reset(seed=0)
    objects = {"setting", "terms", "report", "reports", "rounds", "scheme_counters"}
    assert set(schema["properties"]) == set(schema["required"]) == set(info) - objects
    assert all(p["description"] for p in schema["properties"].values())


def test_info_counts_the_rounds_of_collectives() -> None:
    work = {"kind": "alltoall", "bytes": 20_000, "hosts": 3, "off_us": 30}
    topology = {"kind": "single-switch", "hosts": 3, "delay_us": 1}
    task = {"monitor_interval_us": 200, "warmup_us": 200, "cadence": 2}
    scenario = Scenario.model_validate({"topology": topology, "workloads": [work], **task})
    needs("native")
    env = DcqcnEnv(scenario)
    infos = [env.reset(seed=1)[1], *(env.step(env.setting)[4] for _ in range(3))]
    for info in infos:
        rounds = info["rounds"]
        assert info["finished_rounds"] == len(rounds) > 0
        assert info["busbw_bytes_per_s"] == pytest.approx(info["algbw_bytes_per_s"] * 2 / 3)
        cycle_s = np.mean([r.time_ps for r in rounds]) * 1e-12 + 30e-6
        assert info["iterations_per_s"] == pytest.approx(1 / cycle_s)
    numbers = [r.number for info in infos for r in info["rounds"]]
    assert numbers == list(range(len(numbers)))
    assert DcqcnEnv(quick(), "fake").reset(seed=1)[1]["iterations_per_s"] == 0.0
