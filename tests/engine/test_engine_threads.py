"""One simulation in several threads."""

from __future__ import annotations

import hashlib

import pytest
from engine_worlds import MS, add_report, apply

from dcqcn_gym import _core
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import load_scenario


def digest(scenario: str, threads: int) -> str:
    """All reports of three intervals, with windows that threads share however small."""
    chosen = load_scenario(scenario)
    simulation = _core.Simulation(compile_scenario(chosen), 3, "window:20000000", threads)
    apply(simulation, chosen.default_setting())
    found = hashlib.sha256()
    for _ in range(3):
        simulation.advance(simulation.now_ps + MS)
        add_report(found, simulation.report())
    return found.hexdigest()


@pytest.mark.parametrize("scenario", ["mini-fb-hadoop", "mini-storm", "mini-llm-alltoall"])
def test_any_number_of_threads_reports_the_same(scenario: str) -> None:
    assert len({digest(scenario, threads) for threads in (1, 2, 3, 8)}) == 1


def test_the_backend_reports_what_one_thread_does() -> None:
    scenario = load_scenario("mini-storm")
    found = []
    for name in ("native", "native-threads:2"):
        backend = make_backend(name)
        backend.open(scenario, seed=1)
        backend.apply(scenario.default_setting())
        found.append(backend.advance())
        backend.close()
    assert found[0].data_packets == found[1].data_packets > 0
    assert found[0].finished.fct_ps.tolist() == found[1].finished.fct_ps.tolist()


@pytest.mark.parametrize("text", ["native-threads:0", "native-threads:65", "native-threads:two"])
def test_a_wrong_number_of_threads(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected .*1 to 64"):
        make_backend(text)


def test_the_number_is_needed() -> None:
    with pytest.raises(ConfigError, match="native-threads:THREADS"):
        make_backend("native-threads")


def test_the_plain_engine_has_one_thread() -> None:
    with pytest.raises(ValueError, match="one thread"):
        _core.Simulation(compile_scenario(load_scenario("incast")), 1, "event", threads=2)
