"""Golden playthroughs: what the mini scenarios do under a fixed list of actions, as text.

``python tools/golden_runs.py DIR`` writes one file per scenario whose name begins with
``mini-``. A change of dynamics shows as a diff of these files: read it, explain it in CHANGELOG,
and bump the environment version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dcqcn_gym.core.interval import FloatArray, Observation
from dcqcn_gym.core.knobs import Setting, expert_setting
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.info import Info
from dcqcn_gym.envs.observation import as_groups
from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names

__all__ = ["golden_names", "main", "playthrough"]

SEED = 2024
INTERVALS = 8
FIGURES = (
    "delivered_bytes",
    "rtt_mean_s",
    "device_pause_s",
    "pauses",
    "marks",
    "cnps",
    "drops",
    "max_queue_bytes",
    "packet_hops",
    "active_flows",
    "finished_flows",
)


def golden_names() -> list[str]:
    """Return the scenarios that have a playthrough."""
    return [name for name in scenario_names() if name.startswith("mini-")]


def _moves(env: DcqcnEnv) -> list[Setting | FloatArray]:
    """Return the fixed list: presets first, then corners and waves of the action space."""
    n = env.space.n
    wave = np.linspace(-1.0, 1.0, n)
    expert = expert_setting(env.scenario.line_rate_bps)
    corners: list[Setting | FloatArray] = [np.full(n, v) for v in (-1.0, 0.0, 1.0)]
    return [env.initial_setting, expert, *corners, wave, -wave, env.initial_setting]


def _lines(name: str) -> Iterator[str]:
    env = DcqcnEnv(load_scenario(name), intervals=INTERVALS)
    yield f"scenario {name}, seed {SEED}, {INTERVALS} intervals after the warm-up"
    observation, info = env.reset(seed=SEED)
    yield from _interval(0.0, observation, info)  # type: ignore[arg-type]
    for move in _moves(env):
        observation, reward, terminated, _, info = env.step(move)
        yield from _interval(reward, observation, info)  # type: ignore[arg-type]
        if terminated:
            break
    env.close()


def _interval(reward: float, observation: Observation, info: Info) -> Iterator[str]:
    yield ""
    yield f"interval {info['interval']}: {info['start_ps']} to {info['end_ps']} ps"
    assert isinstance(info["setting"], Setting)
    knobs = info["setting"]
    yield "  setting " + " ".join(f"{n}={v:.9g}" for n, v in knobs.items())
    yield f"  reward {reward!r} terms {info['o_tp']!r} {info['o_rtt']!r} {info['o_pfc']!r}"
    yield "  " + " ".join(f"{n}={info[n]:.12g}" for n in FIGURES)  # type: ignore[literal-required]
    for group, values in as_groups(observation).items():
        yield f"  {group} " + " ".join(f"{v:.9g}" for v in values.tolist())


def playthrough(name: str) -> str:
    """Return the text of one scenario's playthrough on the native backend."""
    return "\n".join(_lines(name)) + "\n"


def main(arguments: list[str]) -> int:
    """Write every playthrough into the directory given as the only argument."""
    if len(arguments) != 1:
        print("usage: python tools/golden_runs.py DIR", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name in golden_names():
        (folder / f"{name}.txt").write_text(playthrough(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
