"""The single-file PPO of examples/: its advantages by hand, that it learns, that it repeats."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pettingzoo")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "08_agents_ppo.py"


@pytest.fixture(scope="module")
def ppo() -> Any:
    spec = importlib.util.spec_from_file_location("agents_ppo", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["agents_ppo"] = module
    torch.set_num_threads(1)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["agents_ppo"]


def test_advantages_worked_out_by_hand(ppo: Any) -> None:
    """Two steps, gamma 0.5, lambda 0.5; the second agent's episode is over after the first."""
    args = ppo.Arguments(gamma=0.5, gae_lambda=0.5)
    batch = {
        "r": torch.tensor([[1.0, 1.0], [2.0, 2.0]]),
        "v": torch.tensor([[0.0, 0.0], [4.0, 4.0]]),
        "go": torch.tensor([[1.0, 0.0], [1.0, 1.0]]),
        "after": torch.tensor([8.0, 8.0]),
    }
    # errors of the first: 1 + 0.5 * 4 - 0 = 3 and 2 + 0.5 * 8 - 4 = 2; 3 + 0.25 * 2 = 3.5
    assert ppo.advantages(batch, args).tolist() == [[3.5, 1.0], [2.0, 2.0]]


def test_it_learns_which_curve_pays(ppo: Any) -> None:
    """Choice 3 pays 1, the others 0: after some updates nearly every draw is 3."""
    args = ppo.Arguments(learning_rate=5e-3)
    torch.manual_seed(1)
    network = ppo.Network(6, 5)
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    x = torch.randn(args.steps, 24, 6)
    for _ in range(15):
        with torch.no_grad():
            action, log, _, value = network.judge(x)
        batch = {"x": x, "a": action, "log": log, "v": value, "r": (action == 3).float(),
                 "go": torch.zeros(args.steps, 24), "after": torch.zeros(24)}  # fmt: skip
        ppo.learn(network, optimizer, batch, args)
    assert (network.judge(x)[0] == 3).float().mean() > 0.9


@pytest.mark.slow
def test_a_training_over_all_ports_repeats(ppo: Any) -> None:
    args = ppo.Arguments(updates=2, steps=8)
    first = ppo.main(args)
    assert first == ppo.main(args)
    assert len(first) == 2
    assert all(0 < mean < 1 for mean in first)
    assert first != ppo.main(ppo.Arguments(updates=2, steps=8, seed=2))
