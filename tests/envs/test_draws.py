"""Which scenarios draw their traffic: the seeds of all others differ in their marks alone."""

from __future__ import annotations

import numpy as np
import pytest

from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.scenario.workloads import draws_traffic

DRAWN = {"plus-staggered": False, "mini-llm-alltoall": False, "incast": False,
         "parameter-server": False, "allreduce-ring": False, "mini-fb-hadoop": True,
         "mini-storm": True, "storage-24": True, "plus-incast": True, "influx": True}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_decided_by_the_workloads(name: str) -> None:
    assert draws_traffic(load_scenario(name).model_dump(mode="json")) is DRAWN[name]


@pytest.mark.parametrize("name", ["mini-fb-hadoop", "storage-24"])
def test_drawn_traffic_differs_by_seed(name: str) -> None:
    def first(seed: int) -> list[list[int]]:
        backend = make_backend("native")
        backend.open(load_scenario(name), seed)
        backend.apply(load_scenario(name).initial_setting())
        flows = [backend.advance().finished for _ in range(3)]
        backend.close()
        return [np.concatenate([getattr(f, k) for f in flows]).tolist() for k in ("src", "dst")]

    assert first(1) != first(2)


@pytest.mark.parametrize("damaged", [None, "x", {}, {"workloads": 3}, {"workloads": [3]}])
def test_a_damaged_scenario_draws_nothing(damaged: object) -> None:
    assert not draws_traffic(damaged)
