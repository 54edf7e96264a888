"""How data goes onto connections: channels, chunks, NCCL's protocols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.envs.scenario.job_graph import JobGraphBuilder

Protocol = Literal["simple", "ll", "ll128"]
PROTOCOLS: dict[Protocol, tuple[int, int, int]] = {
    "simple": (524_288, 1, 1), "ll": (32_768, 2, 1), "ll128": (576_000, 16, 15),
}  # fmt: skip
"""Payload of a slot in bytes, and bytes sent per bytes of payload (a numerator, a denominator).

NCCL's buffers have 8 slots: 4 MiB of them in Simple; LL sends a flag of 4 bytes with every 4 bytes;
LL128 one of 8 bytes in every 128 (NCCL 2.2x, device/prims_*.h, and NCCL_BUFFSIZE in its manual).
"""


class Algorithms(StrictModel):
    """Which algorithms a job's collectives use, and how they send."""

    all_reduce: Literal["auto", "ring", "tree", "halving-doubling", "hierarchical"] = Field(
        default="auto",
        description="auto: hierarchical where servers have several ranks of the group, else ring",
    )
    all_to_all: Literal["direct", "pxn"] = Field(
        default="direct", description="pxn: through the GPU of the own server on the target's rail"
    )
    channels: int = Field(default=1, ge=1, le=32, description="of a ring or tree, with own QPs")
    chunks: bool = Field(
        default=False, description="send in chunks of a slot of NCCL's buffers, pipelined"
    )
    protocol: Protocol = Field(default="simple", description="NCCL's: bytes sent and chunks")


@dataclass
class Links:
    """Sends between ranks into a graph that is being built; ``server`` ranks share a server."""

    builder: JobGraphBuilder
    how: Algorithms
    server: int = 1
    label: int = 0

    def server_of(self, rank: int) -> int:
        """Return the server of a rank."""
        return rank // self.server

    def by_server(self, ranks: Sequence[int]) -> list[list[int]]:
        """Return the ranks of each server, in the order of their first ones."""
        found: dict[int, list[int]] = {}
        for rank in ranks:
            found.setdefault(self.server_of(rank), []).append(rank)
        return list(found.values())

    def parts(self, size: int) -> list[int]:
        """Return the bytes of the chunks of a message, whole without ``chunks``."""
        slot = PROTOCOLS[self.how.protocol][0]
        if not self.how.chunks or size <= slot:
            return [size]
        whole, rest = divmod(size, slot)
        return [slot] * whole + ([rest] if rest else [])

    def send(self, src: int, dst: int, size: int, after: Iterable[int], channel: int = 0) -> int:
        """Add a message, which is over when all of it has arrived; return its id."""
        if size == 0 or src == dst:
            return self.join(after, dst)
        if self.server_of(src) == self.server_of(dst):
            return self.builder.local(src, dst, size, after, label=self.label)
        _, more, per = PROTOCOLS[self.how.protocol]
        sent = -(-size * more // per)
        return self.builder.transfer(src, dst, sent, after, connection=channel, label=self.label)

    def join(self, after: Iterable[int], rank: int) -> int:
        """Return a node at a rank that comes after all of these: a join, or the only one."""
        after = tuple(dict.fromkeys(after))
        return after[0] if len(after) == 1 else self.builder.join(after, rank)
