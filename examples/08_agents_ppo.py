# %% [markdown]
"""
# PPO in one file: one network for all switch ports

The whole algorithm in one file, as CleanRL writes it: PPO (Schulman et al., 2017) with generalised
advantages over the PettingZoo environment. Every egress port is an agent, and all share one network
that chooses among five marking curves. The agents' own rewards are what is learnt from; so short a
training shows the loop, not a good policy. Wants torch and PettingZoo:
`pip install 'dcqcn-gym[multiagent,rl]'`, then `python examples/08_agents_ppo.py`.
"""

# %%
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import dcqcn_gym

CURVES = [{"kmin": 20 * 2**i, "kmax": 80 * 2**i, "pmax": 0.5} for i in range(5)]


@dataclass(frozen=True)
class Arguments:
    """What CleanRL has on its command line."""

    scenario: str = "mini-storm"
    seed: int = 1
    updates: int = 4
    steps: int = 32  # decisions of every agent per update; the episode goes on over updates
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 1e-3
    gamma: float = 0.9
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value: float = 0.5
    max_grad_norm: float = 0.5


# %%
def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    """Return a layer with orthogonal weights and no bias at first."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Network(nn.Module):  # type: ignore[misc, unused-ignore]
    """The one that all agents share: chances of the curves, and the value of what they see."""

    def __init__(self, inputs: int, choices: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(layer(inputs, 64), nn.Tanh(), layer(64, choices, 0.01))
        self.critic = nn.Sequential(layer(inputs, 64), nn.Tanh(), layer(64, 1, 1.0))

    def judge(self, x: Any, action: Any = None) -> tuple[Any, Any, Any, Any]:
        """Return actions (drawn if not given), their log chance, the entropy, and the values."""
        chances: Any = Categorical(logits=self.actor(x))
        action = chances.sample() if action is None else action
        return action, chances.log_prob(action), chances.entropy(), self.critic(x).squeeze(-1)


# %%
class Collector:
    """Steps the environment for all agents at once; a row per agent, in their fixed order."""

    def __init__(self, args: Arguments) -> None:
        self.env = dcqcn_gym.parallel_env(args.scenario, agents="port", templates=CURVES)
        self.names = list(self.env.possible_agents)
        self.seen = self.rows(self.env.reset(seed=args.seed)[0])

    def rows(self, of_agents: dict[str, Any]) -> Any:
        """Return what a dictionary holds for the agents, as a tensor."""
        return torch.as_tensor(np.array([of_agents[name] for name in self.names]))

    def collect(self, network: Network, args: Arguments) -> dict[str, Any]:
        """Return ``steps`` decisions, shape (steps, agents, ...), and the values after them."""
        parts: dict[str, list[Any]] = {"x": [], "a": [], "log": [], "v": [], "r": [], "go": []}
        for _ in range(args.steps):
            with torch.no_grad():
                action, log, _, value = network.judge(self.seen)
            chosen = dict(zip(self.names, action.tolist(), strict=True))
            seen, rewards, *_ = self.env.step(chosen)
            over = not self.env.agents
            taken = (self.seen, action, log, value, self.rows(rewards).float())
            for part, it in zip(("x", "a", "log", "v", "r"), taken, strict=True):
                parts[part].append(it)
            parts["go"].append(torch.full((len(self.names),), 0.0 if over else 1.0))
            self.seen = self.rows(self.env.reset()[0] if over else seen)
        with torch.no_grad():
            after = network.judge(self.seen)[3]
        return {**{name: torch.stack(part) for name, part in parts.items()}, "after": after}


def advantages(batch: dict[str, Any], args: Arguments) -> Any:
    """Return generalised advantage estimates (Schulman et al., 2016), shape (steps, agents)."""
    found = torch.zeros_like(batch["r"])
    last, after = torch.zeros_like(batch["after"]), batch["after"]
    for t in reversed(range(len(found))):
        go = batch["go"][t]
        error = batch["r"][t] + args.gamma * go * after - batch["v"][t]
        last = error + args.gamma * args.gae_lambda * go * last
        found[t], after = last, batch["v"][t]
    return found


def learn(network: Network, optimizer: Any, batch: dict[str, Any], args: Arguments) -> float:
    """Take the steps of one update with clipped ratios; return the mean entropy at its end."""
    gain = advantages(batch, args)
    flat = {name: batch[name].flatten(0, 1) for name in ("x", "a", "log")}
    gains, wanted = gain.flatten(), (gain + batch["v"]).flatten()
    entropy = torch.zeros(())
    for _ in range(args.epochs):
        for at in torch.randperm(len(gains)).chunk(args.minibatches):
            _, log, spread, value = network.judge(flat["x"][at], flat["a"][at])
            ratio, g = (log - flat["log"][at]).exp(), gains[at]
            g = (g - g.mean()) / (g.std() + 1e-8)
            policy = -torch.min(ratio * g, ratio.clamp(1 - args.clip, 1 + args.clip) * g).mean()
            entropy = spread.mean()
            loss = policy + args.value * nn.functional.mse_loss(value, wanted[at])
            optimizer.zero_grad()
            (loss - args.entropy * entropy).backward()
            nn.utils.clip_grad_norm_(network.parameters(), args.max_grad_norm)
            optimizer.step()
    return float(entropy.detach())


# %%
def main(args: Arguments = Arguments()) -> list[float]:
    """Train; print and return the mean reward of a port in every update."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    collector = Collector(args)
    network = Network(collector.seen.shape[1], len(CURVES))
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate, eps=1e-5)
    means = []
    for update in range(args.updates):
        batch = collector.collect(network, args)
        entropy = learn(network, optimizer, batch, args)
        means.append(float(batch["r"].mean()))
        print(f"update {update}: mean reward per port {means[-1]:.4f}, entropy {entropy:.3f}")
    collector.env.close()
    return means


if __name__ == "__main__":
    main()
