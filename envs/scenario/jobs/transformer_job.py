"""The operations of a transformer's training or serving, computed from its plan.

Per layer with hidden size h, feed-forward size f, k of H heads for keys: attention has
2 h^2 (1 + k / H) weights, the feed-forward part 3 h f (gated) or 2 h f, times the experts. T tokens
cost 2 T operations a weight that they use and 2 T h x sequence for causal attention forward, and as
much for each of the two gradients. Tensor parallelism all-reduces T h elements after each part,
forward and backward; experts send ``active`` copies of their tokens there and back. Elements,
weights and gradients have 2 bytes, a checkpoint has 14 bytes a weight (weight, master copy, two
moments). A decoded token reads every weight once from memory.
"""

from __future__ import annotations

from dcqcn_gym.envs.scenario.jobs.model import COMPUTE, MESSAGE, ROOFLINE_BYTES, Job
from dcqcn_gym.envs.scenario.jobs.schedule import Layer, Layout, Step, job_of
from dcqcn_gym.envs.scenario.jobs.transformer import ELEMENT_BYTES, JobTable

_CHECKPOINT = 14


def job_of_plan(plan: JobTable) -> Job:
    """Return the operations of one iteration."""
    if plan.decode:
        return _serving(plan)
    layers = [part for _ in range(plan.sizes.layers // plan.pp) for part in _layer(plan)]
    count = plan.batch // (plan.dp * plan.micro_batch)
    moved = plan.bytes(plan.tokens_at_once * plan.sizes.hidden / plan.tp)
    job = job_of(
        Layout(
            plan.tp, plan.dp, plan.pp, plan.ep, [layers] * count, (), moved,
            every_weight=plan.zero == 3,
        )
    )  # fmt: skip
    if plan.checkpoint:
        _checkpoint(plan, job)
    return job


def _layer(plan: JobTable) -> list[Layer]:
    """Return attention and feed-forward part of a layer."""
    m, t = plan.sizes, plan.tokens_at_once
    work = 2 * t * m.attention + 2 * t * m.hidden * plan.sequence
    parts = [_part(plan, "attention", work, m.attention, ("all-reduce", "tp", t * m.hidden))]
    if m.experts == 1:
        work = 2 * t * m.feed_forward
        sent = ("all-reduce", "tp", t * m.hidden)
        return [*parts, _part(plan, "mlp", work, m.feed_forward, sent)]
    there = ("all-to-all", "ep", t * m.hidden * m.active / plan.tp)
    step = Step(0, there[0], plan.bytes(there[2]), "ep")
    work = 2 * t * m.feed_forward * m.active
    weights = m.feed_forward * m.experts / plan.ep
    return [*parts, Layer("dispatch", step, step), _part(plan, "experts", work, weights, there)]


def _part(
    plan: JobTable, name: str, work: float, weights: float, sent: tuple[str, str, float]
) -> Layer:
    kind, group, elements = sent
    ps, step = plan.ps(work), (kind, plan.bytes(elements), group)
    owners = "dp" if group == "tp" else "dp_ep"
    size = plan.bytes(weights / plan.tp)
    reduce = "reduce-scatter" if plan.zero and owners == "dp" else "all-reduce"
    gather = size if plan.zero and owners == "dp" else 0
    return Layer(
        name, Step(ps, *step), Step(ps, *step), Step(ps, reduce, size, owners), gather=gather
    )


def _checkpoint(plan: JobTable, job: Job) -> None:
    """Every rank writes its part of the state to a storage rank when its iteration is over."""
    last: dict[int, int] = {}
    for number, op in enumerate(job.ops):
        last.update(dict.fromkeys(op.ranks, number))
    trained = job.ranks
    size = round(plan.sizes.weights * _CHECKPOINT / trained * plan.scale)
    job.ranks = plan.ranks
    for rank in range(trained):
        target = trained + rank % plan.checkpoint
        job.add(MESSAGE, (rank, target), size, (last[rank],), "checkpoint")


def _serving(plan: JobTable) -> Job:
    """Return requests: prefill on a group, keys and values to another group, decoding there.

    A group has ``tp`` x ``pp`` GPUs that all compute; request k of group g is decoded by group
    (g + k) mod ``decode``. A GPU sends its layers' keys and values to its partner.
    """
    m, width = plan.sizes, plan.tp * plan.pp
    job = Job(plan.ranks)
    flops = 2 * plan.sequence * m.weights + 2 * plan.sequence**2 * m.hidden * m.layers
    prefill = round(flops / (plan.tflops * width) * plan.scale)
    read = plan.tokens * m.weights * ELEMENT_BYTES
    decode = round(read / (ROOFLINE_BYTES * width) * 1e12 * plan.scale)
    cache = plan.bytes(2 * m.layers * m.hidden * m.kv_share * plan.sequence / width)
    last: dict[int, int] = {}
    for k in range(plan.batch // plan.dp):
        for g in range(plan.dp):
            ranks = tuple(range(g * width, (g + 1) * width))
            before = (last[g],) if g in last else ()
            last[g] = job.add(COMPUTE, ranks, prefill, before, "prefill")
            target = (plan.dp + (g + k) % plan.decode) * width
            sent = [
                job.add(MESSAGE, (r, target + i), cache, (last[g],), "keys and values")
                for i, r in enumerate(ranks)
            ]
            job.add(COMPUTE, tuple(range(target, target + width)), decode, sent, "decode")
    return job
