"""ACC's shipped networks in numpy and in torch: the same values, the same action."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dcqcn_gym.extras.learn.parallel import AgentsEnv
from dcqcn_gym.tuners.acc import load_network
from dcqcn_gym.tuners.acc_state import CENTRAL, HISTORY, TEMPLATES, sides_of
from dcqcn_gym.tuners.ddqn import Array, forward

torch = pytest.importorskip("torch")

STATES = 10_000


def _recorded(central: bool, count: int) -> Array:
    """Return what agents saw under drawn curves, a row per decision of an agent."""
    env = AgentsEnv("mini-fb-hadoop", agents="port", intervals=10_000, decision_us=100.0,
                    history=HISTORY, templates=TEMPLATES)  # fmt: skip
    if central:
        sides = sides_of(env.scenario.fabric.devices)
        env = AgentsEnv("mini-fb-hadoop", agents=sides, intervals=10_000, decision_us=100.0,
                        history=HISTORY, templates=CENTRAL)  # fmt: skip
    random = np.random.Generator(np.random.PCG64(1))
    observations, _ = env.reset(seed=1)
    rows: list[Array] = []
    while len(rows) < count:
        seen = [np.asarray(x, dtype=np.float64) for x in observations.values()]
        rows += [np.concatenate(seen)] if central else seen
        choices = len(CENTRAL if central else TEMPLATES)
        drawn = random.integers(choices, size=len(env.agents))
        observations, *_ = env.step({n: int(i) for n, i in zip(env.agents, drawn, strict=True)})
    env.close()
    return np.array(rows[:count])


@pytest.mark.parametrize(
    ("name", "states"), [("acc-mini", STATES), ("acc-websearch", 500), ("acc-central-mini", 500)]
)
def test_numpy_and_torch_agree(name: str, states: int) -> None:
    layers = load_network(name).layers
    x = _recorded(name == "acc-central-mini", states)
    assert len(np.unique(x, axis=0)) > states / 2
    plain = [(w.astype(np.float64), b.astype(np.float64)) for w, b in layers]
    ours = forward(plain, x)[-1]
    exact, single = (_in_torch(plain, x, dtype) for dtype in (torch.float64, torch.float32))
    chosen = np.argmax(ours, axis=1)
    assert np.abs(ours - exact).max() < 1e-5
    assert np.array_equal(chosen, np.argmax(exact, axis=1))
    # in single precision two values of about 8 within 1e-5 of each other may change places
    assert np.abs(ours - single).max() < 1e-5
    rows = np.arange(states)
    other = np.argmax(single, axis=1)
    assert (ours[rows, chosen] - ours[rows, other]).max() < 2e-5
    assert np.count_nonzero(chosen != other) < states / 1000


def _in_torch(layers: list[tuple[Array, Array]], x: Array, dtype: Any) -> Array:
    modules: list[Any] = []
    for weight, bias in layers:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=dtype)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(weight))
            linear.bias.copy_(torch.tensor(bias))
        modules += [linear, torch.nn.ReLU()]
    with torch.no_grad():
        found = torch.nn.Sequential(*modules[:-1])(torch.tensor(x, dtype=dtype))
    return np.asarray(found.numpy(), dtype=np.float64)
