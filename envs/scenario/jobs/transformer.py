"""A training job in a few words: a transformer's sizes, and how it is split over ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel, load_toml
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.envs.scenario.jobs.model import MOST_RANKS

ELEMENT_BYTES = 2


class Transformer(StrictModel):
    """Sizes of a transformer."""

    layers: int = Field(ge=1, le=4096)
    hidden: int = Field(ge=1, le=2**20)
    ffn: int = Field(ge=1, le=2**22, description="of the feed-forward part, of one expert")
    heads: int = Field(ge=1, le=4096)
    kv_heads: int | None = Field(default=None, ge=1, le=4096, description="default: heads")
    gated: bool = True
    experts: int = Field(default=1, ge=1, le=4096)
    active: int = Field(default=1, ge=1, le=64, description="experts of a token")

    @property
    def kv_share(self) -> float:
        """Heads of keys and values over heads."""
        return (self.kv_heads or self.heads) / self.heads

    @property
    def attention(self) -> float:
        """Weights of the attention of a layer."""
        return 2 * self.hidden**2 * (1 + self.kv_share)

    @property
    def feed_forward(self) -> int:
        """Weights of the feed-forward part of a layer, of one expert."""
        return (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def weights(self) -> float:
        """Weights of all layers."""
        return self.layers * (self.attention + self.experts * self.feed_forward)


MODELS: Mapping[str, Transformer] = {
    "gpt3-175b": Transformer(layers=96, hidden=12288, ffn=49152, heads=96, gated=False),
    "llama-7b": Transformer(layers=32, hidden=4096, ffn=11008, heads=32),
    "llama-13b": Transformer(layers=40, hidden=5120, ffn=13824, heads=40),
    "llama-70b": Transformer(layers=80, hidden=8192, ffn=28672, heads=64, kv_heads=8),
    "mixtral-8x7b": Transformer(
        layers=32, hidden=4096, ffn=14336, heads=32, kv_heads=8, experts=8, active=2
    ),
}
"""Sizes as their papers and model cards have them."""

Degree = Field(default=1, ge=1, le=MOST_RANKS)


class JobTable(StrictModel):
    """Training of a transformer, or serving of one; docs/jobs.md explains the keys."""

    model: str | Transformer = Field(description=f"{', '.join(MODELS)}, or a table of sizes")
    tp: int = Degree
    pp: int = Degree
    dp: int = Degree
    ep: int = Degree
    batch: int = Field(default=1, ge=1, le=2**20, description="sequences of an iteration")
    micro_batch: int = Field(default=1, ge=1, le=2**16, description="sequences at a time")
    sequence: int = Field(default=4096, ge=1, le=2**24, description="tokens of a sequence")
    zero: Literal[0, 3] = Field(default=0, description="3: weights are gathered layer by layer")
    layers: int | None = Field(
        default=None, ge=1, le=4096, description="only so many of the layers"
    )
    tflops: float = Field(default=400.0, gt=0, le=1e6, description="what a GPU gets done")
    scale: float = Field(default=1.0, gt=0, le=1, description="bytes and times are this much")
    checkpoint: int = Field(
        default=0, ge=0, le=1024, description="storage ranks that get a checkpoint after all"
    )
    decode: int = Field(
        default=0, ge=0, le=1024,
        description="serve instead: dp groups prefill, so many others decode",
    )  # fmt: skip
    tokens: int = Field(default=128, ge=1, le=2**20, description="that a request decodes")

    @model_validator(mode="after")
    def _check(self) -> Self:
        sizes = self.sizes
        if self.batch % (self.dp * self.micro_batch):
            raise ConfigError(
                f"batch = {self.batch} is no multiple of dp x micro_batch = "
                f"{self.dp * self.micro_batch}"
            )
        if sizes.layers % self.pp:
            raise ConfigError(f"pp = {self.pp} does not divide the {sizes.layers} layers")
        if sizes.experts % self.ep or self.dp % self.ep:
            raise ConfigError(
                f"ep = {self.ep}; expected a divisor of dp = {self.dp} and of "
                f"{sizes.experts} experts"
            )
        if self.ranks > MOST_RANKS:
            raise ConfigError(f"{self.ranks} ranks; expected at most {MOST_RANKS}")
        return self

    @property
    def sizes(self) -> Transformer:
        """The model with as many layers as asked."""
        if isinstance(self.model, str):
            if self.model not in MODELS:
                raise UnknownNameError("model", self.model, MODELS)
            found = MODELS[self.model]
        else:
            found = self.model
        return found if self.layers is None else found.model_copy(update={"layers": self.layers})

    @property
    def ranks(self) -> int:
        """Ranks of the job, those of storage or decoding included."""
        return self.tp * self.pp * self.dp + self.checkpoint + self.decode * self.tp * self.pp

    @property
    def tokens_at_once(self) -> int:
        """Tokens of a micro-batch."""
        return self.micro_batch * self.sequence

    def bytes(self, elements: float) -> int:
        """Return the bytes of so many elements, scaled."""
        return round(elements * ELEMENT_BYTES * self.scale)

    def ps(self, operations: float) -> int:
        """Return the time of operations that a tensor group shares, scaled."""
        return round(operations / (self.tflops * 1e12 * self.tp) * 1e12 * self.scale)


def read_plan(path: Path) -> JobTable:
    """Return the plan in a TOML file; raise :class:`ConfigError` with file and key."""
    return load_toml(path, JobTable)
