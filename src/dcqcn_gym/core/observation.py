"""What an environment shows and a tuner is given: one flat vector of float32 numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Observation: TypeAlias = npt.NDArray[np.float32]
"""The slots of :func:`dcqcn_gym.envs.observation.layout`, each within its documented bounds."""
