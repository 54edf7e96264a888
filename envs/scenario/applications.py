"""Workloads of applications in a closed loop: storage, and training with a parameter server.

Both react: a host sends because something has come, so their figures (IOPS, iterations/s) follow
from what the network does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.applications import Application
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.hosts import Bytes, HostNumber, HostSet, Timed, TimeUs, select_hosts
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.tables import Cdf
from dcqcn_gym.envs.scenario.workload import items, listed, stop_ps

Block = Annotated[int, Field(ge=1, le=2**40, description="bytes")]

PatternName = Literal["oltp", "olap", "vdi", "exchange-server", "video-streaming", "file-backup"]

STORAGE_PATTERNS: Mapping[PatternName, tuple[float, tuple[int, int]]] = {
    "oltp": (0.5, (512, 64 * 1024)),
    "olap": (0.5, (256 * 1024, 4 * 1024 * 1024)),
    "vdi": (0.2, (1024, 64 * 1024)),
    "exchange-server": (0.6, (32 * 1024, 512 * 1024)),
    "video-streaming": (0.2, (64 * 1024, 64 * 1024)),
    "file-backup": (0.4, (16 * 1024, 64 * 1024)),
}
"""Share of reads, smallest and largest block in bytes (ACC, SIGCOMM 2021, table 1)."""

GRADIENT_BYTES: Mapping[Literal["alexnet", "resnet-50"], int] = {
    "alexnet": 4 * 61_100_840,
    "resnet-50": 4 * 25_557_032,
}
"""Parameters of the models as torchvision has them, 4 bytes each."""


class Storage(Timed):
    """Computing hosts keep ``depth`` IOs outstanding each, reads and writes of blocks.

    A read is a request of ``message_bytes`` and the block that comes back. A write is the block,
    a copy of it from its node to each of ``copies`` others, their replies, and the reply to the
    host. Give ``pattern`` (a row of ACC's table 1), or ``read_share`` and ``block_bytes`` =
    [smallest, largest]: a block is a multiple of the smallest, each as likely. Without ``compute``
    and ``storage`` every fourth host is a storage node (3:1). ``ios`` per host, 0: no end.
    """

    kind: Literal["storage"] = "storage"
    pattern: PatternName | None = None
    read_share: float | None = Field(default=None, ge=0, le=1, description="reads among the IOs")
    block_bytes: tuple[Block, Block] | None = Field(
        default=None, description="[smallest, largest] block, the largest a multiple of the other"
    )
    depth: int = Field(default=16, ge=1, le=4096, description="IOs of a host at a time")
    copies: int = Field(default=2, ge=0, le=65535, description="copies of a written block")
    message_bytes: Bytes = 64
    compute: HostSet | None = None
    storage: HostSet | None = None
    ios: int = Field(default=0, ge=0, le=2**53, description="IOs of a host, 0 for no end")

    @model_validator(mode="after")
    def _check(self) -> Self:
        own = (self.read_share is not None, self.block_bytes is not None)
        if any(own) if self.pattern else not all(own):
            raise ConfigError("give either 'pattern', or 'read_share' and 'block_bytes'")
        if (self.compute is None) != (self.storage is None):
            raise ConfigError("give both 'compute' and 'storage', or neither")
        low, high = self.blocks
        if high < low or high % low or high // low >= 2**32:
            raise ConfigError(
                f"block_bytes = [{low}, {high}]; expected the largest to be a multiple of the "
                "smallest"
            )
        if low <= self.message_bytes:
            raise ConfigError(
                f"message_bytes = {self.message_bytes}; expected less than the smallest block, "
                f"{low}, by which a read is distinguished from a reply"
            )
        return self

    @property
    def blocks(self) -> tuple[int, int]:
        """Smallest and largest block in bytes."""
        if self.pattern is not None:
            return STORAGE_PATTERNS[self.pattern][1]
        return self.block_bytes or (1, 1)

    @property
    def reads(self) -> float:
        """Share of reads among the IOs."""
        return STORAGE_PATTERNS[self.pattern][0] if self.pattern else self.read_share or 0.0

    def resolve(self, net: Fabric) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the computing hosts and the storage nodes."""
        if self.compute is None or self.storage is None:
            compute = tuple(h for h in range(net.n_hosts) if h % 4 != 3)
            storage = tuple(h for h in range(net.n_hosts) if h % 4 == 3)
        else:
            compute = select_hosts(net, self.compute)
            storage = select_hosts(net, self.storage)
        both = set(compute) & set(storage)
        if both:
            raise ConfigError(f"host {min(both)} is in 'compute' and in 'storage'; expected in one")
        if not compute or len(storage) <= self.copies:
            raise ConfigError(
                f"{len(compute)} computing hosts and {len(storage)} storage nodes with copies = "
                f"{self.copies}; expected a host and more nodes than copies"
            )
        return compute, storage

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        compute, storage = self.resolve(net)
        low, high = self.blocks
        yield "workload storage " + items(
            hosts=listed(compute),
            dsts=listed(storage),
            depth=self.depth,
            copies=self.copies,
            read_share=repr(self.reads),
            block_min=low,
            block_max=high,
            bytes=self.message_bytes,
            start_ps=us_to_ps(self.start_us),
            stop_ps=stop_ps(self.stop_us),
            rounds=self.ios,
            priority=self.priority,
        )

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the largest block, or the message if that is larger."""
        return max(self.message_bytes, *self.blocks), 1

    @property
    def endless(self) -> bool:
        """Whether neither a time nor a number of IOs ends it."""
        return self.stop_us is None and self.ios == 0

    def as_application(self, net: Fabric, number: int) -> Application:
        """Return how IOs are recognised: of computing hosts, by the smallest block."""
        compute, _ = self.resolve(net)
        start = us_to_ps(self.start_us)
        return Application(number, self.kind, compute, 1, start, self.blocks[0])


class ParameterServer(Timed):
    """Workers push a gradient to ``server``, which answers all of them when it has all.

    A worker that has its answer computes for ``compute_us`` and pushes the next one. Give ``bytes``
    or ``model``, whose parameters have 4 bytes each. ``iterations = 0``: no end.
    """

    kind: Literal["parameter-server"] = "parameter-server"
    bytes: Bytes | None = None
    model: Literal["alexnet", "resnet-50"] | None = None
    server: HostNumber = 0
    workers: HostSet = "all"
    compute_us: TimeUs = 0.0
    iterations: int = Field(default=0, ge=0, le=2**53, description="0 for no end")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.bytes is None) == (self.model is None):
            raise ConfigError("give either 'bytes' or 'model'")
        return self

    @property
    def gradient_bytes(self) -> int:
        """What one worker sends and gets in an iteration."""
        return GRADIENT_BYTES[self.model] if self.model else self.bytes or 0

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        """Return the workers."""
        if self.server >= net.n_hosts:
            raise ConfigError(
                f"server = {self.server} does not exist in this topology; expected 0 to "
                f"{net.n_hosts - 1}"
            )
        workers = select_hosts(net, self.workers, without=self.server)
        if self.server in workers or not workers:
            raise ConfigError(
                f"workers = {list(workers)}; expected hosts other than server {self.server}"
            )
        return workers

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        yield "workload parameter-server " + items(
            hosts=listed(self.resolve(net)),
            dst=self.server,
            bytes=self.gradient_bytes,
            off_ps=us_to_ps(self.compute_us),
            start_ps=us_to_ps(self.start_us),
            stop_ps=stop_ps(self.stop_us),
            rounds=self.iterations,
            priority=self.priority,
        )

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of a gradient."""
        return self.gradient_bytes, 1

    @property
    def endless(self) -> bool:
        """Whether neither a time nor a number of iterations ends it."""
        return self.stop_us is None and self.iterations == 0

    def as_application(self, net: Fabric, number: int) -> Application:
        """Return how iterations are recognised: all workers' together."""
        workers = self.resolve(net)
        return Application(number, self.kind, workers, len(workers), us_to_ps(self.start_us))
