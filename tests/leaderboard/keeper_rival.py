"""``python tests/leaderboard/keeper_rival.py OUT --steps 500000``: a learned rival of Keeper.

PPO learns a residual on the rule's setting: action 0 is the rule, and each knob moves by at most
:data:`REACH` of half its range. Fabrics and traffic are those of the bank's training kinds with at
most :data:`MOST_HOSTS` hosts, drawn anew for each episode. The reward of an interval is what
ln(active flows) + ln(round trip) is below the default's in the same interval of the same traffic;
pauses and goodput beyond the verdict's limits cost as much as Lagrange multipliers say, which rise
while an episode breaks a limit. Each of two seeds is then held against its own best constant on the
validation kinds, and all against the default. Needs Stable-Baselines3.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.bank.bank import Part, bank
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.measured import Interval
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.verdict import LIMITS, Measured, scores_by_seed
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.entries import FIRST_TRAINING_SEED, changed_scenario
from dcqcn_gym.tuners import TunerContext
from dcqcn_gym.tuners.policy import Policy, PolicyTuner, load_policy
from dcqcn_gym.tuners.rule import advise

sys.path.insert(0, str(Path(__file__).parent))
from keeper_ablations import _crossed, _text
from keeper_hardships import runs_of

__all__ = ["Rival", "main"]

SALT, DRAWN, MOST_HOSTS, REACH = "rival", 60, 32, 0.3
TRAFFICS, ENVS, ROLLOUT = 4, 4, 64
PRICE_RISES = 0.05
SEEDS, JUDGED, INTERVALS = (1, 2), 30, 60


def scenarios(part: Part, drawn: int) -> list[Scenario]:
    """Return the small ones of a part of the bank, watched by the sketch."""
    watched = {"monitor": {"kind": "elastic"}}
    return [
        changed_scenario(s, watched, s.name)
        for s in bank(SALT, drawn, part)
        if s.n_hosts <= MOST_HOSTS
    ]


def _seen(interval: Interval) -> tuple[float, float, float]:
    """Return ln(active flows) + ln(round trip), the share of pause, and bits a second."""
    figures, report = interval.figures, interval.report
    trip = np.log(figures.rtt_mean_ps) if figures.rtt_mean_ps else np.nan
    return (
        float(np.log(max(report.active_flows, 1)) + trip),
        figures.device_pause_ps / report.duration_ps,
        figures.throughput_bps,
    )


@dataclass
class Prices:
    """Lagrange multipliers of a point of pause and of a percent of goodput beyond the limit."""

    pause: float = 0.0
    goodput: float = 0.0

    def learn(self, pause: float, lost: float) -> None:
        """Rise where an episode was beyond a limit in the mean, fall where it was not."""
        self.pause = max(0.0, self.pause + PRICE_RISES * (pause - 100 * LIMITS["pause"]))
        self.goodput = max(0.0, self.goodput + PRICE_RISES * (lost - 100 * LIMITS["goodput"]))


class Ground:
    """A scenario with the rule's place in the ranges, and the default's runs on its traffic.

    Those are taken from a ground that is ``like`` it.
    """

    def __init__(self, scenario: Scenario, like: Ground | None = None) -> None:
        self.env = DcqcnEnv(scenario)
        default = scenario.default_setting()
        self.rule = self.env.space.encode(advise(facts_of(scenario), default).setting)
        self.default: list[list[tuple[float, float, float]]] = []
        if like is not None:
            self.default = like.default
            return
        for traffic in range(TRAFFICS):
            self.env.reset(seed=FIRST_TRAINING_SEED + traffic)
            self.default.append(
                [_seen(self.env.run_interval(default)) for _ in range(self.env.intervals)]
            )

    def setting(self, action: npt.ArrayLike) -> Setting:
        """Return what an action on the rule stands for."""
        return moved(self.env.space, self.rule, np.asarray(action), self.env.initial_setting)


def moved(space: KnobSpace, rule: FloatArray, action: FloatArray, base: Setting) -> Setting:
    """Return the rule's setting, moved by an action in -1..1."""
    return space.setting(np.clip(rule + REACH * action, -1, 1), base)


class ResidualEnv(gymnasium.Env[Any, Any]):
    """Episodes on drawn grounds; see the module."""

    def __init__(self, grounds: Sequence[Ground], stream: Sequence[int], prices: Prices) -> None:
        self.grounds, self.prices = grounds, prices
        self.action_space = grounds[0].env.action_space
        self.observation_space = grounds[0].env.observation_space
        self._draws = np.random.default_rng(list(stream))
        self.rewards: list[float] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Draw scenario and traffic."""
        super().reset(seed=seed)
        self._on = self.grounds[int(self._draws.integers(len(self.grounds)))]
        self._traffic = int(self._draws.integers(TRAFFICS))
        self._over: list[tuple[float, float]] = []
        return self._on.env.reset(seed=FIRST_TRAINING_SEED + self._traffic)[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Run an interval."""
        default = self._on.default[self._traffic]
        theirs = default[len(self._over)]
        done = self._on.env.run_interval(self._on.setting(action))
        ours = _seen(done)
        pause = 100 * (ours[1] - theirs[1])
        lost = 100 * (1 - ours[2] / theirs[2]) if theirs[2] else 0.0
        gained = float(np.nan_to_num(theirs[0] - ours[0]))  # nothing was sent
        self._over.append((pause, lost))
        self.rewards.append(gained)
        reward = gained - self.prices.pause * pause - self.prices.goodput * max(lost, 0.0) / 10
        cut = len(self._over) == len(default)
        if cut:
            self.prices.learn(*np.mean(self._over, axis=0))
        return done.observation, float(reward), False, cut, {}


def train(grounds: Sequence[list[Ground]], seed: int, steps: int) -> Policy:
    """Train one policy, printing where the curve stands at every tenth."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv
    from torch import nn, set_num_threads

    from dcqcn_gym.extras.learn.export import export_policy

    set_num_threads(1)
    prices = Prices()
    envs = [ResidualEnv(own, (seed, i), prices) for i, own in enumerate(grounds)]
    network = {"net_arch": [64, 64], "activation_fn": nn.ReLU, "log_std_init": -1.0}
    model = PPO("MlpPolicy", DummyVecEnv([lambda e=e: e for e in envs]), seed=seed, device="cpu",
                learning_rate=3e-4, gamma=0.3, gae_lambda=0.9, n_steps=ROLLOUT, batch_size=64,
                n_epochs=5, policy_kwargs=network)  # fmt: skip
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(10):
        model.learn(steps // 10, reset_num_timesteps=False)
        reward = mean([r for env in envs for r in env.rewards])
        for env in envs:
            env.rewards.clear()
        print(f"seed {seed}, {model.num_timesteps} steps: reward {reward:+.3f}, prices "
              f"{prices.pause:.3f} {prices.goodput:.3f}, {time.process_time() - cpu:.0f} CPU s, "
              f"{time.perf_counter() - began:.0f} s", flush=True)  # fmt: skip
    space = grounds[0][0].env.space
    return export_policy(model, "ppo", space, [f"bank {SALT}"], "keeper_rival.py")


class Rival(PolicyTuner):
    """A residual policy as a tuner."""

    name = "rival"
    summary = "a learned residual on the rule's setting"

    def start(self, context: TunerContext) -> None:
        default = default_setting(context.space.line_rate_bps, context.space.table)
        self._rule = context.space.encode(advise(context.fabric, default).setting)
        super().start(context)

    def _setting(self, unit: FloatArray) -> Setting:
        return moved(self.context.space, self._rule, np.asarray(unit), self.context.base)


def constant(policy: Policy, action: FloatArray) -> Policy:
    """Return a policy that always acts alike."""
    weight = np.zeros((len(action), policy.inputs), np.float32)
    return replace(policy, layers=((weight, action.astype(np.float32)),))


@dataclass
class Judged:
    """Runs of an entry by scenario, with the default's."""

    default: Mapping[str, list[Measured]]
    runs: dict[str, list[Measured]] = field(default_factory=dict)

    def over(self, other: Mapping[str, list[Measured]]) -> str:
        """Return S over other runs with its interval."""
        found = [v for name, r in self.runs.items() for v in scores_by_seed(r, other[name])]
        self.last = estimate([v for v in found if np.isfinite(v)])
        return _text(self.last)

    def crossed(self) -> int:
        """Return how many limits of the verdict are crossed in the mean."""
        return sum(_crossed(r, self.default[name]) for name, r in self.runs.items())


def judge(out: Path, seeds: Sequence[int], drawn: int) -> None:
    """Print every entry against the default, and each policy against its best constant."""
    on = [changed_scenario(s, {"intervals": INTERVALS}, s.name)
          for s in scenarios("validation", drawn)]  # fmt: skip
    default = {s.name: runs_of(s, "default", SEEDS) for s in on}
    place = f"{__file__}:Rival"

    def judged(tuner: str, file: Path | None = None) -> Judged:
        given = {} if file is None else {"file": str(file)}
        return Judged(default, {s.name: runs_of(s, tuner, SEEDS, given) for s in on})

    def row(name: str, one: Judged, against: str = "") -> None:
        print(f"| {name} | {one.over(default)} | {one.crossed()} | {against} |", flush=True)

    print(f"| {len(on)} held-out scenarios | S online | limits crossed | over its best constant |")
    print("|---|---|---|---|")
    for name in ("advise", "keeper", "default-min-rate"):
        row(name, judged(name))
    for seed in seeds:
        file = out / f"rival-{seed}.npz"
        policy, mine = load_policy(file), judged(place, file)
        acted = np.array(actions_of(policy, on))
        held = []
        for what in ("mean", "median"):
            still = out / f"rival-{seed}-{what}.npz"
            still.write_bytes(constant(policy, getattr(np, what)(acted, axis=0)).to_bytes())
            held.append(judged(place, still))
        best = max(held, key=lambda one: (one.over(default), one.last.mean)[1])
        over = mine.over(best.runs)
        ships = "ships" if (mine.last.low or 0.0) > 0 else "a constant, not shipped"
        row(f"rival, seed {seed}", mine, f"{over}: {ships}")
        row(f"its best constant, seed {seed}", best)


def actions_of(policy: Policy, on: Sequence[Scenario]) -> list[FloatArray]:
    """Return what a policy does on scenarios, on their first traffic."""
    found = []
    for scenario in on:
        ground = DcqcnEnv(scenario)
        rule = ground.space.encode(advise(facts_of(scenario), scenario.default_setting()).setting)
        seen = ground.reset(seed=SEEDS[0])[0]
        for _ in range(INTERVALS):
            found.append(policy.act(seen))
            setting = moved(ground.space, rule, found[-1], ground.initial_setting)
            seen = ground.run_interval(setting).observation
        ground.close()
    return found


def main() -> None:
    """Train what is missing, then judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=500_000, help="of each seed")
    parser.add_argument("--drawn", type=int, default=JUDGED, help="of the validation kinds")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    missing = [s for s in SEEDS if not (options.out / f"rival-{s}.npz").exists()]
    if missing:
        on = scenarios("training", DRAWN)
        first = [Ground(s) for s in on]
        more = [[Ground(s, one) for s, one in zip(on, first, strict=True)] for _ in range(ENVS - 1)]
        grounds = [first, *more]
        print(f"{len(on)} scenarios", flush=True)
        for seed in missing:
            data = train(grounds, seed, options.steps).to_bytes()
            (options.out / f"rival-{seed}.npz").write_bytes(data)
    judge(options.out, SEEDS, options.drawn)


if __name__ == "__main__":
    main()
