"""AICB's logs of calls as CSV (``comm_type,comm_group,comm_group_size,msg_size,...``).

One rank's calls in their order, with the kind and the size of each group; every group of a kind is
taken to make the same call at the same time. Ranks are numbered as in
:mod:`~dcqcn_gym.envs.scenario.jobs.schedule`: tensor-parallel neighbours first, then data, then
stages. ``msg_size`` are bytes, of an all-gather and a reduce-scatter the group's whole, as AICB
replays them (github.com/aliyun/aicb, workload_applyer.py); the time of computation is left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_text
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.envs.scenario.jobs.model import BARRIER, MESSAGE, MOST_BYTES, MOST_RANKS, Job

MOST_FILE = 64 * 2**20
HEADER = "comm_type,comm_group,comm_group_size,msg_size"
ROWS = "rows"
_KINDS = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "all_gather_into_tensor": "all-gather",
    "reduce_scatter": "reduce-scatter", "reduce_scatter_tensor": "reduce-scatter",
    "all_to_all": "all-to-all", "all_to_all_single": "all-to-all", "broadcast": "broadcast",
    "reduce": "reduce", "barrier": BARRIER, "isend": MESSAGE, "send": MESSAGE,
}  # fmt: skip
_GROUPS = ("tp_group", "dp_group", "pp_group", "ep_group", "ep_dp_group", "all")


def read_aicb(path: Path, ranks: int | None = None) -> Job:
    """Return the job of a log; ``ranks``: how many, else the product of its groups' sizes.

    Raises :class:`ConfigError` with file, line, what was found and expected.
    """
    text = read_text(path, MOST_FILE)
    if not text.startswith(HEADER):
        raise ConfigError(f"{path}: begins with {quote(text[:60])}; expected {HEADER},...")
    tally = Tally()
    calls = list(_calls(text, tally))
    sizes = dict.fromkeys(_GROUPS, 1)
    for call in calls:
        if sizes[call.group] not in (1, call.size):
            raise ConfigError(
                f"{path}: {call.group} of {sizes[call.group]} and of {call.size} ranks "
                f"({call.kind}); expected one size of each group"
            )
        sizes[call.group] = call.size
    job = Job(_total(path, sizes, ranks))
    _add(job, sizes, calls)
    tally.check()
    job.notes.update(dict.fromkeys(tally.lines(), 1))
    return job


class Call(NamedTuple):
    """A call of every group of a kind, so many times; ``back``: to the stage before."""

    kind: str
    group: str
    size: int
    amount: int
    times: int
    back: bool


def _calls(text: str, tally: Tally) -> Iterator[Call]:
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        tally.came(ROWS)
        kind = str(row["comm_type"] or "").rpartition(".")[2]
        group = str(row["comm_group"] or "").rpartition(".")[2]
        size, amount, times = (
            _whole(row.get(key)) for key in ("comm_group_size", "msg_size", "count")
        )
        if kind in ("irecv", "recv"):
            tally.leave_out(ROWS, "rows are receives, which their sends bring", f"line {line}")
        elif kind not in _KINDS:
            tally.leave_out(ROWS, "rows are of no call that is simulated", f"line {line} {kind}")
        elif group not in _GROUPS:
            tally.leave_out(ROWS, "rows are of a group that is not known", f"line {line} {group}")
        elif size is None or not 1 <= size <= MOST_RANKS or amount is None or amount > MOST_BYTES:
            tally.leave_out(ROWS, "rows have no size of the group or no bytes", f"line {line}")
        elif times is not None and times > 100_000:
            tally.leave_out(ROWS, "rows are repeated more than 100,000 times", f"line {line}")
        elif size == 1:
            tally.leave_out(ROWS, "rows are of a group of one rank, which sends nothing", line)
        else:
            tally.take(ROWS)
            back = "prev" in str(row.get("additional"))
            yield Call(_KINDS[kind], group, size, amount, times or 1, back)


def _whole(text: str | None) -> int | None:
    """Return a whole number, also of ``8388608.0``; None for another text."""
    number = (text or "").strip().removesuffix(".0")
    return int(number) if number.isdigit() and len(number) < 16 else None


def _total(path: Path, sizes: Mapping[str, int], ranks: int | None) -> int:
    data = max(sizes["dp_group"], sizes["ep_group"] * sizes["ep_dp_group"])
    found = max(sizes["tp_group"] * sizes["pp_group"] * data, sizes["all"])
    if ranks is not None and (ranks < found or ranks % found):
        raise ConfigError(f"{path}: --ranks {ranks}; expected a multiple of {found}, by its groups")
    total = ranks or found
    if total > MOST_RANKS:
        raise ConfigError(f"{path}: {total} ranks; expected at most {MOST_RANKS}")
    return total


def _add(job: Job, sizes: Mapping[str, int], calls: Sequence[Call]) -> None:
    last: dict[int, tuple[int, ...]] = {}
    for call in calls:
        for _ in range(call.times):
            now: dict[int, tuple[int, ...]] = {}
            for members in _members(job.ranks, sizes, call):
                after = [op for rank in members for op in last.get(rank, ())]
                number = job.add(call.kind, members, call.amount, after, call.group)
                for rank in members:
                    now[rank] = (*now.get(rank, ()), number)
            last.update(now)


def _members(ranks: int, sizes: Mapping[str, int], call: Call) -> Iterator[tuple[int, ...]]:
    """Yield the groups that make a call at the same time; of a message each rank and the next."""
    tensor, stages = sizes["tp_group"], sizes["pp_group"]
    stage = ranks // stages  # ranks of a stage
    experts = tensor * sizes["ep_group"]
    within, step = {  # ranks that a group lies within, and from one member to the next
        "all": (ranks, 1), "tp_group": (tensor, 1), "pp_group": (ranks, stage),
        "dp_group": (stage, tensor), "ep_group": (experts, tensor), "ep_dp_group": (stage, experts),
    }[call.group]  # fmt: skip
    for first in range(0, ranks, within):
        for lane in range(step):
            block = tuple(range(first + lane, first + within, step))
            if call.kind != MESSAGE:
                yield block
            else:
                yield from pairwise(block[::-1] if call.back else block)
