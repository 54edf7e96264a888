"""How the flow sizes of a scenario are measured: the table ``[monitor]``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.tables import CdfField

__all__ = ["Monitor"]

SKETCH_BUCKET_BYTES = 64


class Monitor(StrictModel):
    """How flow sizes are measured at the ToRs (PARALEON section III-B).

    ``tau_bytes``: an elephant has sent this much; ``delta``: intervals of activity that make a
    potential elephant; ``theta``: KL divergence that triggers tuning; ``pe_weight``: how a
    potential elephant counts, by bytes/tau, by age, or by the chance that a flow of the
    distribution ``sizes_cdf`` that got so far reaches tau. ``heavy_bytes``, ``light_bytes`` and
    ``unit`` (what a counter counts) concern the sketches, ``sample_one_in`` and ``export_us``
    NetFlow, ``local_us`` and ``upload_us`` CHAMELEON.
    """

    kind: Literal["exact", "elastic", "elastic-naive", "netflow", "none", "chameleon"] = "exact"
    tau_bytes: int = Field(default=1_000_000, ge=1, le=2**50)
    delta: int = Field(default=3, ge=1, le=1000)
    theta: float = Field(default=0.01, ge=0)
    pe_weight: Literal["ratio", "logistic", "survival"] = "ratio"
    sizes_cdf: CdfField | None = None
    max_flows: int = Field(default=65_536, ge=1, le=2**30, description="bound on the history")
    heavy_bytes: int = Field(default=153_600, ge=1, le=2**34)
    light_bytes: int = Field(default=460_800, ge=1, le=2**34)
    unit: Literal["bytes", "packets"] = "bytes"
    sample_one_in: int = Field(default=100, ge=1, le=1_000_000)
    export_us: float = Field(default=1e6, ge=1, le=1e9)
    local_us: float = Field(default=10_000.0, ge=1, le=1e9)
    upload_us: float = Field(default=100_000.0, ge=1, le=1e9)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.heavy_bytes < SKETCH_BUCKET_BYTES:
            raise ConfigError(
                f"heavy_bytes = {self.heavy_bytes} is too small for one bucket; expected at least "
                f"{SKETCH_BUCKET_BYTES}"
            )
        counter = 1 if self.unit == "packets" else 4
        if self.light_bytes < counter:
            raise ConfigError(
                f"light_bytes = {self.light_bytes} is too small for one counter of {self.unit}; "
                f"expected at least {counter}"
            )
        if self.pe_weight == "survival" and self.sizes_cdf is None:
            raise ConfigError(
                "pe_weight = 'survival' needs 'sizes_cdf'; expected the distribution of the flow "
                'sizes, such as sizes_cdf = "FB_Hadoop"'
            )
        return self
