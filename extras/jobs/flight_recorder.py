"""Dumps of PyTorch's flight recorder, a file a rank, as a job: sizes, splits and times of calls.

``TORCH_NCCL_TRACE_BUFFER_SIZE`` makes PyTorch keep the last calls of each rank and write them when
a job hangs or is asked to (torch/csrc/distributed/c10d/FlightRecorder; keys ``pg_config`` and
``entries`` from version 2.0 of the dump on). The files are pickles, or JSON: of a pickle only
plain values are read, never code. A call that a rank's buffer no longer holds, where others have
it, is left out. The time between two calls of a rank, less what the earlier one took, is
computation.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dcqcn_gym.core.errors import ConfigError, in_one_line
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.envs.scenario.jobs.model import BARRIER, COMPUTE, MESSAGE, MOST_RANKS, Job

MOST_FILE = 256 * 2**20
ENTRIES = "entries"
_KINDS = (
    ("allreduce_coalesced", "all-reduce"), ("all_reduce_barrier", BARRIER), ("barrier", BARRIER),
    ("reduce_scatter", "reduce-scatter"), ("all_reduce", "all-reduce"),
    ("all_gather", "all-gather"), ("all_to_all", "all-to-all"), ("broadcast", "broadcast"),
    ("reduce", "reduce"), ("gather", "gather"), ("scatter", "scatter"),
)  # fmt: skip
"""Begin of a name behind ``nccl:`` (and underscores) -> kind; the longer of two comes first."""
_WIDTHS = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "short": 2, "byte": 1,
    "char": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
"""Bytes of an element, by PyTorch's name of its type in lower case."""
_PEERS = re.compile(r"(send|recv) (\d{1,6})(->|<-)(\d{1,6})")


class Call(NamedTuple):
    """A call of one rank: ``key`` is the same at every rank that takes part."""

    kind: str
    ranks: tuple[int, ...]
    amount: int
    key: tuple[Any, ...]
    compute_ps: int
    """Time before it."""
    name: str


class _PlainValues(pickle.Unpickler):
    """Reads lists, dicts, texts and numbers; whatever would be made by a class is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse it."""
        raise pickle.UnpicklingError(f"it holds {module}.{name}; expected plain values")


def is_flight_recorder(path: Path) -> bool:
    """Tell whether a folder has dumps: files that end in a number, JSON or pickles."""
    return any(_rank_of(file) is not None for file in path.iterdir())


def _rank_of(path: Path) -> int | None:
    match = re.search(r"(?:^|[_.-])(\d{1,6})(?:\.(?:json|pkl|pickle))?$", path.name)
    looks = path.is_file() and match and not path.name.endswith((".et", ".et.gz"))
    return int(match[1]) if match and looks else None


def read_flight_recorder(folder: Path) -> Job:
    """Return the job of a folder of dumps; ConfigError with what was found and expected."""
    tally, calls = Tally(), {}
    for path in sorted(folder.iterdir()):
        rank = _rank_of(path)
        if rank is None:
            tally.note("files of the folder are no dumps (their names end in no rank)", path.name)
        elif rank >= MOST_RANKS or rank in calls:
            raise ConfigError(f"{path}: a second file of rank {rank}; expected one a rank, below "
                              f"{MOST_RANKS}")  # fmt: skip
        else:
            calls[rank] = _calls_of(path, rank, tally)
    if not calls:
        raise ConfigError(f"{folder}: no file ends in a rank, as nccl_trace_rank_0 does")
    return _joined(calls, tally)


def _calls_of(path: Path, rank: int, tally: Tally) -> list[Call]:
    whole = _read(path)
    entries = whole.get("entries") if isinstance(whole, dict) else None
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: has no list 'entries'; expected a flight recorder's dump")
    groups = whole.get("pg_config") if isinstance(whole.get("pg_config"), dict) else {}
    found: list[Call] = []
    last_ps: int | None = None
    for place, entry in enumerate(entries):
        tally.came(ENTRIES)
        if not isinstance(entry, dict):
            tally.leave_out(ENTRIES, "entries are no records", f"{path.name} entry {place}")
            continue
        begin_ps = _natural(entry.get("time_created_ns")) * 1000
        gap = max(0, begin_ps - last_ps) if last_ps is not None and begin_ps else 0
        problem, call = _call(entry, rank, groups, gap)
        if call is None:
            tally.leave_out(ENTRIES, problem, f"{path.name} entry {place} "
                            f"{entry.get('profiling_name')}")  # fmt: skip
            continue
        took = entry.get("duration_ms")
        took_ps = round(took * 1e9) if isinstance(took, (int, float)) and 0 < took < 1e9 else 0
        last_ps = begin_ps + took_ps if begin_ps else last_ps
        found.append(call)
    return found


def _read(path: Path) -> Any:
    data = read_file(path, MOST_FILE)
    try:
        if data.lstrip()[:1] == b"{":
            return parse_json(data)
        return _PlainValues(io.BytesIO(data)).load()
    except (ValueError, pickle.UnpicklingError, EOFError, IndexError, KeyError, TypeError,
            AttributeError, OverflowError, MemoryError, ImportError) as error:  # fmt: skip
        raise ConfigError(f"{path}: neither JSON nor a pickle of plain values: "
                          f"{in_one_line(error)}") from None  # fmt: skip


def _natural(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**62 else 0


def _call(
    entry: Mapping[str, Any], rank: int, groups: Mapping[str, Any], compute_ps: int
) -> tuple[str, Call | None]:
    """Return why an entry cannot be used and None, or a call."""
    name = str(entry.get("profiling_name", ""))
    ranks = _ranks(entry, groups)
    if ranks is None:
        return "entries are of a group whose ranks no dump says (pg_config)", None
    sizes = _bytes(entry, "input"), _bytes(entry, "output")
    sequence = entry.get("collective_seq_id", entry.get("seq_id"))
    plain = name.partition(":")[2].lstrip("_")
    if peers := _PEERS.match(plain):
        ends = int(peers[2]), int(peers[4])
        if max(ends) >= len(ranks) or ends[0] == ends[1]:
            return "entries send to a rank that their group has not", None
        own, other = ranks[ends[0]], ranks[ends[1]]
        source, target = (own, other) if peers[1] == "send" else (other, own)
        size = sizes[0] if peers[1] == "send" else sizes[1]
        if size is None:
            return "entries have no sizes or a type of unknown width", None
        call = Call(peers[1], (source, target), size, (source, target), compute_ps, plain)
        return "", call
    kind = next((kind for begin, kind in _KINDS if plain.startswith(begin)), None)
    if kind is None:
        return "entries are of no collective that is known", None
    size = 0 if kind == BARRIER else sizes[1] if kind == "all-gather" else sizes[0]
    if size is None:
        return "entries have no sizes or a type of unknown width", None
    if rank not in ranks:
        return "entries are of a group that their rank is not in", None
    return "", Call(kind, ranks, size, (kind, ranks, sequence), compute_ps, plain)


def _ranks(entry: Mapping[str, Any], groups: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the ranks of an entry's group, which ``pg_config`` has as a text or a list."""
    group = entry.get("process_group")
    keys = [*(group if isinstance(group, (list, tuple)) else [group]), entry.get("pg_id")]
    for key in keys:
        config = groups.get(str(key))
        given = config.get("ranks") if isinstance(config, dict) else None
        if isinstance(given, str):
            numbers: Sequence[Any] = [int(word) for word in re.findall(r"\d{1,6}", given)]
        else:
            numbers = given if isinstance(given, (list, tuple)) else []
        whole = all(type(n) is int and 0 <= n < MOST_RANKS for n in numbers)
        if numbers and whole and len(set(numbers)) == len(numbers) <= MOST_RANKS:
            return tuple(numbers)
    return None


def _bytes(entry: Mapping[str, Any], side: str) -> int | None:
    """Return the bytes of all tensors of a side; None for a shape or a type that is not known."""
    shapes, types = entry.get(f"{side}_sizes"), entry.get(f"{side}_dtypes")
    if not isinstance(shapes, (list, tuple)):
        return None
    names = types if isinstance(types, (list, tuple)) else [types] * len(shapes)
    total = 0
    for i, shape in enumerate(shapes):
        if not isinstance(shape, (list, tuple)) or not names:
            return None
        width = _WIDTHS.get(str(names[min(i, len(names) - 1)]).lower())
        if width is None or not all(type(n) is int and 0 <= n < 2**40 for n in shape[:16]):
            return None
        total += width * math.prod(shape[:16])
    return total if total < 2**50 else None


def _joined(calls: Mapping[int, list[Call]], tally: Tally) -> Job:
    """Return the calls of all ranks as one job, each in the order of its rank."""
    seen: dict[Any, set[int]] = defaultdict(set)
    messages: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for rank, own in calls.items():
        for call in own:
            seen[call.key].add(rank)
            messages[call.kind, call.ranks] += call.kind in ("send", "recv")
    # a buffer that is full has lost its oldest: of a pair the last ones belong together
    surplus = {
        (side, ranks): many - min(many, messages[other, ranks])
        for (side, ranks), many in messages.items()
        for other in ({"send": "recv", "recv": "send"}.get(side, side),)
    }
    for rank in calls:
        calls[rank][:] = _whole(calls[rank], calls, seen, surplus, tally)
    tops = [max(call.ranks) for own in calls.values() for call in own]
    job = Job(1 + max([*calls, *tops]))
    _Merge(job, calls).run()
    missing = job.ranks - len(calls)
    if missing:
        job.notes["ranks without a dump: they take part where others name them"] = missing
    tally.check()
    job.notes.update(dict.fromkeys(tally.lines(), 1))
    return job


def _whole(
    own: list[Call], calls: Mapping[int, list[Call]], seen: Mapping[Any, set[int]],
    surplus: dict[tuple[str, tuple[int, ...]], int], tally: Tally,
) -> Iterator[Call]:  # fmt: skip
    """Yield the calls that every rank of them with a dump still has."""
    for call in own:
        side = call.kind, call.ranks
        if call.kind in ("send", "recv"):
            lost = surplus[side] > 0
            surplus[side] -= lost
        else:
            lost = not seen[call.key] >= {r for r in call.ranks if r in calls}
        if lost:
            tally.leave_out(ENTRIES, "calls are not in every rank's dump", call.name)
        else:
            tally.take(ENTRIES)
            yield call


class _Merge:
    """Takes calls from the heads of all ranks, each when every rank of it has come there."""

    def __init__(self, job: Job, calls: Mapping[int, list[Call]]) -> None:
        self._job = job
        self._calls = calls
        self._next = dict.fromkeys(calls, 0)
        self._last: dict[int, tuple[int, ...]] = defaultdict(tuple)
        self._sent: dict[tuple[int, ...], list[int]] = defaultdict(list)

    def run(self) -> None:
        """Carry on until nothing is left; ConfigError where ranks call in another order."""
        waiting = set(self._calls)
        while waiting:
            moved = [rank for rank in sorted(waiting) if self._step(rank)]
            waiting = {r for r in waiting if self._next[r] < len(self._calls[r])}
            if waiting and not moved:
                rank = min(waiting)
                raise ConfigError(
                    f"rank {rank} calls {self._head(rank).name}, and other ranks wait for "
                    "something else; expected calls in the same order at every rank"
                )

    def _head(self, rank: int) -> Call:
        return self._calls[rank][self._next[rank]]

    def _step(self, rank: int) -> bool:
        if self._next[rank] >= len(self._calls[rank]):
            return False
        call = self._head(rank)
        if call.kind == "send":
            self._compute(rank, call)
            number = self._job.add(MESSAGE, call.ranks, call.amount, self._last[rank], call.name)
            self._sent[call.ranks].append(number)  # the sender goes on, its call does not block
        elif call.kind == "recv":
            if not self._sent[call.ranks]:
                return False
            self._compute(rank, call)
            self._last[rank] = (*self._last[rank], self._sent[call.ranks].pop(0))
        else:
            members = [r for r in call.ranks if r in self._calls]
            if not all(self._at(r, call.key) for r in members):
                return False
            after: list[int] = []
            for member in members:
                self._compute(member, self._head(member))
                after += self._last[member]
            number = self._job.add(call.kind, call.ranks, call.amount, after, call.name)
            for member in call.ranks:
                self._last[member] = (number,)
            for member in members:
                self._next[member] += member != rank
        self._next[rank] += 1
        return True

    def _at(self, rank: int, key: tuple[Any, ...]) -> bool:
        there = self._next[rank] < len(self._calls[rank])
        return there and self._head(rank).key == key

    def _compute(self, rank: int, call: Call) -> None:
        if call.compute_ps:
            number = self._job.add(COMPUTE, (rank,), call.compute_ps, self._last[rank])
            self._last[rank] = (number,)
