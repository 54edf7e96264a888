"""Guardrails: what a candidate may cost against the setting in service; docs/verdict.md."""

from __future__ import annotations

from pydantic import Field

from dcqcn_gym.core.config import StrictModel


class Guardrails(StrictModel):
    """The table ``[guardrails]`` of a scenario: an operator's limits. The defaults are judgement.

    A figure crosses its limit only where the near end of the 95 % interval of its change is beyond
    the relative part. A slowdown must also be above ``slowdown_floor`` under the candidate: going
    from 1.7 to 3.0 times the ideal time is a large ratio and no harm that a user sees.
    """

    slowdown: float = Field(
        default=0.25,
        gt=0,
        le=10,
        description="rise of mean or p99 slowdown of a class (0.25: 25 %)",
    )
    slowdown_floor: float = Field(
        default=3.0, ge=1, le=1e6, description="a slowdown up to this, times ideal, is no harm"
    )
    unfinished: float = Field(
        default=0.005, gt=0, le=1, description="more unfinished flows, as a share of all"
    )
    goodput: float = Field(default=0.03, gt=0, le=1, description="loss of goodput (0.03: 3 %)")
    pause: float = Field(
        default=0.01, gt=0, le=1, description="more pause of the mean device, as a share of time"
    )
    worst_pause: float = Field(
        default=0.1, gt=0, le=1, description="more pause of the worst device, as a share of time"
    )
    weights: tuple[float, float, float] = Field(
        default=(1.0, 1.0, 1.0),
        description="of flows below 100 KB, up to 1 MB, and from there on, in the gain",
    )

    @property
    def limits(self) -> dict[str, float]:
        """The relative limits by key of a flag."""
        return {
            "class": self.slowdown,
            "unfinished": self.unfinished,
            "goodput": self.goodput,
            "pause": self.pause,
            "worst_pause": self.worst_pause,
        }
