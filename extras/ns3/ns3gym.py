"""The dialogue with ns3-gym's own client: actions in, observation and reward out.

An episode here is the episode of :class:`~dcqcn_gym.envs.dcqcn.DcqcnEnv` over the same network, so
a client sees the same numbers as through Gymnasium (rewards rounded to float32 by the wire).
``python -m dcqcn_gym.extras.ns3.ns3gym`` is the simulation process with this interface.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import DcqcnGymError, in_one_line
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.backends.base import Backend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.observation import bounds, layout
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.ns3.bridge import codec, simulation
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb


class GymDialogue:
    """The environment over a network, as ns3-gym's client sees it."""

    def spaces(self, scenario: Scenario) -> tuple[pb.SpaceDescription, pb.SpaceDescription]:
        """Return the observation and the action space."""
        low, high = bounds(scenario.table)
        slots = [slot.name for slot in layout(scenario.table)]
        seen = codec.box_space("observation", low, high, slots)
        space = KnobSpace(scenario.turned, scenario.line_rate_bps, scenario.table, scenario.ranges)
        ones = np.ones(space.n)
        return seen, codec.box_space("action", -ones, ones, space.knobs)

    def serve(
        self, ask: Callable[[bytes], bytes], backend: Backend, scenario: Scenario, seed: int
    ) -> None:
        """Run one episode; the client ends it by a stop request, we by isGameOver.

        An action that is none, or a network that fails, ends it too: the client, which would wait
        for ever, gets isGameOver with ``{"error": ...}`` in info, then the error is raised here.
        """
        env = DcqcnEnv(scenario, backend=backend)
        observation = np.zeros(len(bounds(scenario.table)[0]), np.float32)
        try:
            observation, info = env.reset(seed=seed)
        except Exception as error:
            ask(_failed(observation, error))
            raise
        reward, terminated, truncated = 0.0, False, False
        while True:
            over = terminated or truncated
            answer = ask(_state(observation, reward, over, terminated, _info_text(info)))
            try:
                request = codec.decode(pb.EnvActMsg, answer)
                if request.stopSimReq or over:
                    return
                action = codec.decode_box(request.actData, env.space.n)
                # a float32 of the wire may lie a rounding error outside
                observation, reward, terminated, truncated, info = env.step(
                    np.clip(action, -1.0, 1.0)
                )
            except Exception as error:
                ask(_failed(observation, error))
                raise


def _failed(observation: npt.NDArray[np.float32], error: Exception) -> bytes:
    """Return the message that ends an episode by an error."""
    said = str(error) if isinstance(error, DcqcnGymError) else in_one_line(error)
    return _state(observation, 0.0, True, True, json.dumps({"error": said}))


def _state(
    observation: npt.NDArray[np.float32], reward: float, over: bool, terminated: bool, info: str
) -> bytes:
    """Return the message of one state."""
    state = pb.EnvStateMsg(
        obsData=codec.encode_box(observation),
        reward=reward,
        isGameOver=over,
        reason=pb.EnvStateMsg.GameOver if terminated else pb.EnvStateMsg.SimulationEnd,
        info=info,
    )
    return codec.encode(state)


def _info_text(info: dict[str, Any]) -> str:
    """Return what is plain in ``info`` as a JSON object."""
    plain = {k: v for k, v in info.items() if isinstance(v, bool | int | float | str)}
    return json.dumps(plain, sort_keys=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the network on ns-3 to a client of ns3-gym, or to one of this project."""
    return simulation.main(arguments, GymDialogue())


if __name__ == "__main__":
    sys.exit(main())
