"""How much each term of the utility counts."""

from __future__ import annotations

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError


class UtilityWeights(StrictModel):
    """Weights of throughput, round trip and pause in the utility (PARALEON eq. 1); sum 1."""

    tp: float = Field(ge=0, le=1)
    rtt: float = Field(ge=0, le=1)
    pfc: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        total = self.tp + self.rtt + self.pfc
        if abs(total - 1.0) > 1e-9:
            raise ConfigError(f"tp + rtt + pfc = {total:g}; expected weights that add up to 1")
        return self
