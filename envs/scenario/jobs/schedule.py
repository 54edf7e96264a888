"""Layers of a model on tensor, expert, data and pipeline groups, as operations of ranks.

Ranks are numbered with tensor-parallel neighbours first, then data parallelism, then the stages of
the pipeline (Megatron-LM). The ``expert`` neighbours within a data-parallel group form an expert
group. Micro-batches run in the order 1F1B of PipeDream-Flush (Narayanan et al., ICML 2021).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.jobs.model import COMPUTE, MESSAGE, MOST_OPS, MOST_RANKS, Job


class Step(NamedTuple):
    """A computation and the collective behind it; ``kind`` is empty where there is none."""

    ps: int = 0
    kind: str = ""
    bytes: int = 0
    group: str = "tp"
    """``tp``, ``ep``, ``dp`` or ``dp_ep`` (the data-parallel group of an expert)."""


class Layer(NamedTuple):
    """One layer: forward, gradient of its input, gradient of its weights, update.

    Collectives of the first two stop the rank's computation until they are over; the one of the
    weights goes on beside it, and the update waits for it. ``gather`` are bytes of weights that the
    data-parallel group gathers before the layer runs (ZeRO-3), while the layer before computes.
    """

    name: str
    forward: Step = Step()
    input: Step = Step()
    weight: Step = Step()
    update_ps: int = 0
    gather: int = 0


@dataclass(frozen=True)
class Layout:
    """How a job is laid out: sizes of the groups, what runs in each micro-batch."""

    tensor: int
    data: int
    stages: int = 1
    expert: int = 1
    micro_batches: Sequence[Sequence[Layer]] = ()
    """The layers of one stage for each micro-batch; every stage runs the same ones."""
    once: Sequence[Layer] = ()
    """Layers that run once: forward before all micro-batches, backward after them."""
    stage_bytes: int = 0
    """What a rank sends to the next stage, and back, for a micro-batch."""
    recompute: Sequence[tuple[int, int]] = ()
    """(first, last) layers whose forward is repeated before the backward of the last."""
    every_weight: bool = True
    """Whether each micro-batch reduces its weights' gradients; else only the last one does."""

    def check(self) -> None:
        """Raise ConfigError for groups that do not fit each other."""
        ranks = self.tensor * self.data * self.stages
        if min(self.tensor, self.data, self.stages, self.expert) < 1 or ranks > MOST_RANKS:
            raise ConfigError(
                f"tp {self.tensor} x dp {self.data} x pp {self.stages} with ep {self.expert}; "
                f"expected 1 or more of each and at most {MOST_RANKS} ranks"
            )
        if self.data % self.expert:
            raise ConfigError(
                f"ep = {self.expert} does not divide the {self.data} ranks of a data-parallel group"
            )
        runs = Counter(id(batch) for batch in self.micro_batches)
        each = {id(batch): self._operations(batch) for batch in self.micro_batches}
        total = self.stages * count(each[one] * times for one, times in runs.items())
        if total > MOST_OPS:
            raise ConfigError(
                f"about {total} operations; expected at most {MOST_OPS}: fewer layers, "
                "micro-batches or ranks"
            )

    def _operations(self, layers: Sequence[Layer]) -> int:
        """Return how many operations layers are on one stage, weights' collectives left out."""
        lanes = self.tensor * self.data // self.expert
        groups = {"tp": self.data, "ep": lanes}
        return count(
            (step.ps > 0) * self.data + (step.bytes > 0) * groups.get(step.group, 0)
            for layer in layers
            for step in (layer.forward, layer.input, layer.weight)
        )


def job_of(plan: Layout) -> Job:
    """Return the operations of one iteration."""
    plan.check()
    job = Job(plan.tensor * plan.data * plan.stages)
    runs = [_Stage(plan, job, p) for p in range(plan.stages)]
    for one in runs:
        for layer in plan.once:
            one.forward(layer)
    waiting = [list(_one_f_one_b(plan, p)) for p in range(plan.stages)]
    while any(waiting):  # each round takes what has its input: a topological order
        for p, turns in enumerate(waiting):
            while turns and _ready(runs, p, *turns[0]):
                _turn(plan, runs, p, *turns.pop(0))
    for one in runs:
        for layer in reversed(plan.once):
            one.backward(layer, weights=True)
        one.finish()
    return job


def _one_f_one_b(plan: Layout, p: int) -> Iterator[tuple[bool, int]]:
    """Yield (is forward, micro-batch) in the order of stage ``p``."""
    batches = len(plan.micro_batches)
    warm = min(batches, plan.stages - p - 1)
    yield from ((True, m) for m in range(warm))
    for m in range(batches - warm):
        yield True, warm + m
        yield False, m
    yield from ((False, m) for m in range(batches - warm, batches))


def _ready(runs: Sequence[_Stage], p: int, is_forward: bool, m: int) -> bool:
    if is_forward:
        return p == 0 or m in runs[p - 1].sent[0]
    return p == len(runs) - 1 or m in runs[p + 1].sent[1]


def _turn(plan: Layout, runs: Sequence[_Stage], p: int, is_forward: bool, m: int) -> None:
    """Run a micro-batch through a stage, from the message that brings it to the next one."""
    one, layers = runs[p], plan.micro_batches[m]
    source = p - 1 if is_forward else p + 1
    if 0 <= source < plan.stages:
        one.receive(runs[source].sent[0 if is_forward else 1][m])
    if is_forward:
        for layer in layers:
            one.forward(layer)
    else:
        last = m == len(plan.micro_batches) - 1
        one.backward_of(layers, weights=plan.every_weight or last)
    target = p + 1 if is_forward else p - 1
    if 0 <= target < plan.stages:
        one.send(target, 0 if is_forward else 1, m)


@dataclass
class _Stage:
    """What one stage of the pipeline has done so far: the last operations of its ranks."""

    plan: Layout
    job: Job
    number: int
    head: list[tuple[int, ...]] = field(init=False)
    """Of each tensor group: what its next computation waits for."""
    before: list[tuple[int, ...]] = field(init=False)
    """What the last computation waited for: from then on weights are gathered ahead."""
    beside: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Of each group that reduces gradients: its last collective; one after the other."""
    sent: tuple[dict[int, list[list[int]]], dict[int, list[list[int]]]] = field(
        default_factory=lambda: ({}, {})
    )
    """Forward and backward: micro-batch -> messages by tensor group."""
    updates: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        t, d, p = self.plan.tensor, self.plan.data, self.number
        first = p * t * d
        self.groups = [tuple(range(first + i * t, first + (i + 1) * t)) for i in range(d)]
        self.head = [() for _ in range(d)]
        self.before = [() for _ in range(d)]

    def _members(self, group: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return (ranks, tensor groups among them) of every group of a kind."""
        t, d, e = self.plan.tensor, self.plan.data, self.plan.expert
        if group == "tp":
            return [(ranks, (i,)) for i, ranks in enumerate(self.groups)]
        sets = {
            "dp": [range(d)],
            "ep": [range(i, i + e) for i in range(0, d, e)],
            "dp_ep": [range(i, d, e) for i in range(e)],
        }[group]
        return [
            (tuple(self.groups[i][lane] for i in one), tuple(one))
            for one in sets for lane in range(t)
        ]  # fmt: skip

    def _compute(self, ps: int, name: str) -> None:
        self.before = list(self.head)
        if ps:
            self.head = [
                (self.job.add(COMPUTE, ranks, ps, self.head[i], name),)
                for i, ranks in enumerate(self.groups)
            ]

    def _collective(self, step: Step, name: str) -> list[tuple[int, ...]]:
        """Start a collective after the last computation; return its operations by tensor group."""
        done: list[list[int]] = [[] for _ in self.groups]
        for ranks, among in self._members(step.group):
            if step.kind and step.bytes and len(ranks) > 1:
                after = [op for i in among for op in self.head[i]]
                number = self.job.add(step.kind, ranks, step.bytes, after, name)
                for i in among:
                    done[i].append(number)
        return [tuple(d) or self.head[i] for i, d in enumerate(done)]

    def _blocking(self, step: Step, name: str) -> None:
        self._compute(step.ps, name)
        self.head = self._collective(step, name)

    def _gather(self, layer: Layer) -> None:
        """Gather a layer's weights; it may begin with the computation before."""
        if not layer.gather or self.plan.data == 1:
            return
        arrived: list[list[int]] = [[] for _ in self.groups]
        for ranks, among in self._members("dp"):
            after = [op for i in among for op in self.before[i]]
            number = self._in_turn("all-gather", ranks, layer.gather, after, layer.name)
            for i in among:
                arrived[i].append(number)
        self.head = [(*self.head[i], *new) for i, new in enumerate(arrived)]

    def _in_turn(
        self, kind: str, ranks: tuple[int, ...], amount: int, after: list[int], name: str
    ) -> int:
        """Add a collective beside the computation, after the last such one of its group."""
        last = [self.beside[ranks]] if ranks in self.beside else []
        self.beside[ranks] = self.job.add(kind, ranks, amount, [*after, *last], name)
        return self.beside[ranks]

    def forward(self, layer: Layer) -> None:
        """Run a layer forward."""
        self._gather(layer)
        self._blocking(layer.forward, layer.name)

    def backward_of(self, layers: Sequence[Layer], *, weights: bool) -> None:
        """Run layers backward, repeating the forward of those that were not stored."""
        again = {last: first for first, last in self.plan.recompute}
        for i in range(len(layers) - 1, -1, -1):
            for layer in layers[again[i] : i + 1] if i in again else ():
                self.forward(layer)
            self.backward(layers[i], weights=weights)

    def backward(self, layer: Layer, *, weights: bool) -> None:
        """Run a layer backward; with ``weights`` reduce the gradients of its weights."""
        self._gather(layer)
        self._blocking(layer.input, layer.name)
        step = layer.weight
        self._compute(step.ps, layer.name)
        if not weights:
            return
        waits = [list(h) for h in self.head]
        for ranks, among in self._members(step.group):
            if step.kind and step.bytes and len(ranks) > 1:
                after = [op for i in among for op in self.head[i]]
                number = self._in_turn(step.kind, ranks, step.bytes, after, layer.name)
                for i in among:
                    waits[i].append(number)
        if layer.update_ps:
            self.updates += [(layer.update_ps, tuple(w)) for w in waits]

    def finish(self) -> None:
        """Update the weights, each layer's when its gradients are there."""
        count = len(self.groups)
        for n, (ps, waits) in enumerate(self.updates):
            i = n % count
            after = (*self.head[i], *waits)
            self.head[i] = (self.job.add(COMPUTE, self.groups[i], ps, after, "update"),)

    def send(self, target: int, way: int, m: int) -> None:
        """Send a micro-batch's activations, or their gradients, to the ranks of another stage."""
        shift = (target - self.number) * self.plan.tensor * self.plan.data
        self.sent[way][m] = [
            [
                self.job.add(MESSAGE, (r, r + shift), self.plan.stage_bytes, self.head[i], "stage")
                for r in ranks
            ]
            for i, ranks in enumerate(self.groups)
        ]

    def receive(self, messages: list[list[int]]) -> None:
        """Make the next computation wait for messages, given by tensor group."""
        self.head = [(*h, *messages[i]) for i, h in enumerate(self.head)]
