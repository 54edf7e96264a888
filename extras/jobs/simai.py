"""Workload files of SimAI and AICB (``.txt``): a line of parallelism, a number, a line per layer.

A file has the layers of one stage of the pipeline. Where the layer ``embedding_layer`` is there
``ga`` times the file has each micro-batch, else one for all of them. Layers before the first such
one run once. Bytes of a collective are the group's whole buffer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.core.files import read_text
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.envs.scenario.jobs.model import MOST_BYTES, MOST_PS, MOST_RANKS, Job
from dcqcn_gym.envs.scenario.jobs.schedule import Layer, Layout, Step, job_of

MOST_FILE = 64 * 2**20
_COLUMNS = 12
_NUMBERS = (2, 4, 5, 7, 8, 10, 11)
_COLLECTIVES = {
    "ALLREDUCE": "all-reduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter",
    "ALLTOALL": "all-to-all",
}  # fmt: skip
_HYBRID = (
    "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "TRANSFORMER",
    "TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA",
)  # fmt: skip
POLICIES = (*_HYBRID, "DATA", "MODEL", "MICRO", "DISTRIBUTED_INFERENCE")
_KEYS = ("model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus", "pp_comm")
_LISTS = ("checkpoints", "checkpoint_initiates")
_FIRST = "embedding_layer"


def read_simai(path: Path, ranks: int | None = None, most_layers: int | None = None) -> Job:
    """Return the job of a file; ``ranks`` is for files whose first line does not say how many.

    ``most_layers``: only the first so many lines of layers; files of thousands of GPUs have more
    operations than can be simulated.

    Raises :class:`ConfigError` with file, line, what was found and expected.
    """
    lines = [line.split() for line in read_text(path, MOST_FILE).splitlines() if line.strip()]
    try:
        if len(lines) < 2:
            raise ConfigError("expected a first line with a policy and a second with a number")
        job = _job(lines, ranks, most_layers)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}{other_use(path)}") from None
    return job


def _job(lines: Sequence[Sequence[str]], ranks: int | None, most_layers: int | None) -> Job:
    policy, values, lists = _header(lines[0])
    stated = _whole(lines[1][0], "the number of layers", MOST_BYTES)
    rows = lines[2:]
    if stated != len(rows):
        raise ConfigError(f"line 2 says {stated} layers and {len(rows)} lines follow")
    layers = [_layer(row, i) for i, row in enumerate(rows, start=3)][:most_layers]
    total = values.get("all_gpus", ranks or 0)
    if not 1 <= total <= MOST_RANKS:
        raise ConfigError(
            f"{total or 'no'} ranks; expected all_gpus in the first line, or --ranks, up to "
            f"{MOST_RANKS}"
        )
    plan, notes = _plan(policy, values, lists, layers, total)
    try:
        job = job_of(plan)
    except ConfigError as error:
        if "operations" not in str(error):
            raise
        raise ConfigError(f"{error}; --layers N takes the first N of {len(layers)}") from None
    job.notes.update(notes)
    if len(layers) < len(rows):
        job.notes[f"layers taken, of {len(rows)} (--layers)"] = len(layers)
    return job


def _plan(
    policy: str, values: Mapping[str, int], lists: Mapping[str, Sequence[int]],
    layers: Sequence[Layer], total: int,
) -> tuple[Layout, dict[str, int]]:  # fmt: skip
    tensor = {"DATA": 1, "MODEL": total, "MICRO": total}.get(
        policy, values.get("model_parallel_NPU_group", total)
    )
    stages = values.get("pp", 1)
    data = total // (max(tensor, 1) * max(stages, 1))
    if tensor * stages * data != total:
        raise ConfigError(
            f"{total} ranks are no multiple of model_parallel_NPU_group {tensor} x pp {stages}"
        )
    notes, expert = {}, min(values.get("ep", 1), data)
    if stages > 1 and not values.get("pp_comm", 0):
        notes["pp in the first line without pp_comm: stages send each other nothing"] = 1
    sizes = {"tp": tensor, "dp": data, "ep": expert, "dp_ep": data // max(expert, 1)}
    for layer in layers:
        for step in (layer.forward, layer.input, layer.weight):
            if step.kind and sizes[step.group] == 1:
                reason = f"{step.kind}s over {step.group} groups of one rank, which send nothing"
                notes[reason] = notes.get(reason, 0) + 1
    if expert < values.get("ep", 1):
        notes[f"ep in the first line: taken as {data}, the ranks of a data-parallel group"] = 1
    if policy in ("MICRO", "DISTRIBUTED_INFERENCE"):
        notes["policy with forward passes only: the columns of gradients are not run"] = 1
        forward = [Layer(layer.name, layer.forward) for layer in layers]
        return Layout(tensor, data, stages, expert, (), forward), notes
    if values.get("vpp", 1) > 1 and stages > 1:
        notes["vpp in the first line: a stage runs its layers in one piece all the same"] = 1
    once, batches, written = _batches(layers, values.get("ga", 1))
    plan = Layout(
        tensor, data, stages, expert, batches, once,
        values.get("pp_comm", 0), _segments(lists, batches, len(once)), written,
    )  # fmt: skip
    return plan, notes


def _batches(
    layers: Sequence[Layer], count: int
) -> tuple[Sequence[Layer], list[Sequence[Layer]], bool]:
    """Return layers that run once, those of each micro-batch, whether the file has each one."""
    if not 1 <= count <= 65_536:
        raise ConfigError(f"ga: {count}; expected 1 to 65536 micro-batches")
    starts = [i for i, layer in enumerate(layers) if layer.name == _FIRST]
    first = starts[0] if starts else 0
    if count > 1 and len(starts) == count:
        ends = [*starts[1:], len(layers)]
        return layers[:first], [layers[a:b] for a, b in zip(starts, ends, strict=True)], True
    return layers[:first], [layers[first:]] * count, count == 1


def _segments(
    lists: Mapping[str, Sequence[int]], batches: Sequence[Sequence[Layer]], once: int
) -> list[tuple[int, int]]:
    """Return (checkpoint, layer that starts from it), counted within a micro-batch."""
    starts, wanted = sorted(lists.get("checkpoints", ())), lists.get("checkpoint_initiates", ())
    if wanted and any(batch is not batches[0] for batch in batches):
        raise ConfigError("line 1: checkpoints in a file that has each micro-batch; expected none")
    found = []
    for last in wanted:
        before = [s for s in starts if s <= last]
        if not before or last >= once + len(batches[0]) or before[-1] < once:
            raise ConfigError(
                f"line 1: checkpoint_initiates names layer {last}; expected a layer of the file "
                "with a checkpoint before it"
            )
        found.append((before[-1] - once, last - once))
    return found


def _header(words: Sequence[str]) -> tuple[str, dict[str, int], dict[str, list[int]]]:
    """Return the policy, the numbers by key, and the lists of layers by key."""
    policy = words[0]
    if policy not in POLICIES:
        raise UnknownNameError("policy", policy, POLICIES)
    values: dict[str, int] = {}
    lists: dict[str, list[int]] = {}
    rest = iter(words[1:])
    for word in rest:
        key, _, glued = word.partition(":")
        if key in _LISTS:
            wanted = _whole(_next(rest, glued, key), key, MOST_BYTES)
            lists[key] = [_whole(_next(rest, "", key), key, MOST_BYTES) for _ in range(wanted)]
        elif key in _KEYS:
            values[key] = _whole(_next(rest, glued, key), key, MOST_BYTES)
        else:
            raise UnknownNameError("key of the first line", key, (*_KEYS, *_LISTS))
    return policy, values, lists


def _next(rest: Iterator[str], glued: str, key: str) -> str:
    found = glued or next(rest, None)
    if found is None:
        raise ConfigError(f"line 1: {key} has no value")
    return found


def _layer(row: Sequence[str], line: int) -> Layer:
    if len(row) != _COLUMNS:
        raise ConfigError(
            f"line {line} has {len(row)} columns; expected {_COLUMNS}: name, dependency, three "
            "times time, collective and bytes, update time"
        )
    numbers = {
        i: _whole(row[i], f"line {line} column {i + 1}", MOST_BYTES if i in (4, 7, 10) else MOST_PS)
        for i in _NUMBERS
    }
    if row[1] != "-1":
        raise ConfigError(f"line {line} depends on {quote(row[1])}; expected -1")
    forward, gradient, weight = (
        Step(_ps(numbers[i], line), *_collective(row[i + 1], numbers[i + 2], line, group))
        for i, group in ((2, "tp"), (5, "tp"), (8, "dp"))
    )
    return Layer(row[0], forward, gradient, weight, _ps(numbers[11], line))


def _collective(word: str, size: int, line: int, group: str) -> tuple[str, int, str]:
    name, _, suffix = word.partition("_")
    if word == "NONE" or (size == 0 and name in _COLLECTIVES):
        return "", 0, group
    groups = {"": group, "EP": "ep", "DP_EP": "dp_ep"}
    if name not in _COLLECTIVES or suffix not in groups:
        known = [f"{c}{s}" for c in _COLLECTIVES for s in ("", "_EP", "_DP_EP")]
        raise ConfigError(f"line {line}: {UnknownNameError('collective', word, ['NONE', *known])}")
    return _COLLECTIVES[name], size, groups[suffix]


def _ps(ns: int, line: int) -> int:
    if ns * 1000 > MOST_PS:
        raise ConfigError(f"line {line}: {ns} ns; expected at most {MOST_PS // 1000}")
    return ns * 1000


def _whole(text: str, what: str, most: int) -> int:
    """Return a whole number; AICB writes some with a fraction, ``8388608.0``."""
    if re.fullmatch(r"\d{1,18}(\.\d{0,18})?", text):
        value = float(text) if "." in text else int(text)
        if value <= most:
            return math.floor(value)
    raise ConfigError(f"{what} is {quote(text)}; expected a whole number, 0 to {most}")
