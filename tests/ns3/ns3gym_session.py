"""What the published ns3-gym client does in our test: ``PYTHON ns3gym_session.py PORT``.

For the Python that has the client; needs nothing else. With gym and a numpy before 1.24 the client
runs as it is; with newer ones only after this preamble.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np

if not hasattr(np, "float"):
    np.int, np.float = np.int64, np.float64  # type: ignore[attr-defined]
if importlib.util.find_spec("gym") is None:
    for name in ("", ".spaces", ".utils", ".utils.seeding", ".envs", ".envs.registration"):
        sys.modules["gym" + name] = importlib.import_module("gymnasium" + name)

from ns3gym.ns3env import Ns3Env  # type: ignore[import-not-found]

EPISODES = ((-0.25, 0.0, 0.25), (0.5,))
"""The value of all parts of the action, step by step, of two episodes."""


def main(options: dict[str, Any]) -> None:
    env = Ns3Env(**options)
    for actions in EPISODES:
        assert len(env.reset()) == env.observation_space.shape[0]
        for value in actions:
            action = np.full(env.action_space.shape, value, dtype=np.float32)
            observation, reward, done, info = env.step(action)
            assert len(observation) == env.observation_space.shape[0]
            assert 0 <= reward <= 1, reward
            assert not done
            assert info.startswith("{")
    env.close()


if __name__ == "__main__":
    main({"port": int(sys.argv[1]), "startSim": False} if len(sys.argv) > 1 else {"simSeed": 3})
