"""Files of jobs, made by an encoder of their own, as operations."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import making_jobs as making
from making_jobs import (
    COMPUTE,
    LOAD,
    METADATA,
    RECEIVE,
    SEND,
    attribute,
    collective,
    node,
    row,
    trace,
)

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.jobs import lowering
from dcqcn_gym.envs.scenario.jobs.collectives import Done
from dcqcn_gym.envs.scenario.jobs.links import Algorithms, Links
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.envs.scenario.jobs.model import Job, Op
from dcqcn_gym.envs.scenario.jobs.transformer import JobTable
from dcqcn_gym.envs.scenario.jobs.transformer_job import job_of_plan
from dcqcn_gym.extras.jobs.chakra import read_chakra
from dcqcn_gym.extras.jobs.chakra_format import messages, value_of
from dcqcn_gym.extras.jobs.simai import POLICIES, read_simai

VALUES = {
    "double": -2.5, "float": 0.5, "int32": -7, "int64": -(2**40), "uint32": 2**31, "uint64": 2**63,
    "sint32": -3, "sint64": -(2**35), "fixed32": 2**31, "fixed64": 2**62, "sfixed32": -5,
    "sfixed64": -(2**50), "bool": True, "string": "ä", "bytes": b"\xff\x00",
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("packed", [True, False])
def test_every_type_of_attribute(kind: str, packed: bool) -> None:
    for value in (VALUES[kind], [VALUES[kind]] * 3, []):
        found = messages()["Attribute"]()
        found.ParseFromString(attribute("x", kind, value, packed=packed))
        assert (found.name, value_of(found)) == ("x", value)


def kinds(job: Job) -> Counter[tuple[str, tuple[int, ...], int]]:
    return Counter((op.kind, op.ranks, op.amount) for op in job.ops)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("version", "schema"), [("0.0.4", ""), ("", "1.0.2-chakra.0.0.4"), ("9", "")]
)
def test_a_trace_of_two_ranks(tmp_path: Path, packed: bool, version: str, schema: str) -> None:
    unknown = making.field(77, 0, making.varint(5)) + making.chunk(99, b"later")
    ranks = [
        trace(
            node(10, METADATA),
            node(11, COMPUTE, [10], us=5 + rank, ctrl=[10], packed=packed, more=unknown),
            collective(12, 0, 4096, [11], integers="uint32"),
            making.message(13, SEND if rank == 0 else RECEIVE, 0, 1, 999, [12], tag=3),
            node(14, COMPUTE, [13], attribute("num_ops", "int64", 4 * 10**9)),
            node(15, LOAD, [14]),
            version=version,
            schema=schema,
        )
        for rank in range(2)
    ]
    job = read_chakra(making.write_traces(tmp_path / "t", ranks))
    found = kinds(job)
    assert found["compute", (0,), 5_000_000] == found["compute", (1,), 6_000_000] == 1
    assert found["all-reduce", (0, 1), 4096] == found["message", (0, 1), 999] == 1
    assert found["compute", (0,), 10_000_000] == 1  # 4e9 operations at 400e12 a second
    assert job.notes["memory loads without a duration, which take no time"] == 2
    assert job.notes["messages with fields that Chakra 0.0.4 does not have"] == 2
    assert ("version" in str(job.notes)) == (version == "9")
    meeting = next(op for op in job.ops if op.kind == "all-reduce")
    assert {job.ops[i].amount for i in meeting.after} == {5_000_000, 6_000_000}


@pytest.mark.parametrize("kind", [k for k in VALUES if k not in ("bool", "string", "bytes")])
def test_numbers_of_any_type(tmp_path: Path, kind: str) -> None:
    def words(**values: int) -> list[bytes]:
        return [attribute(name, kind, value) for name, value in values.items()]

    ranks = [
        trace(
            node(1, COMPUTE, (), *words(num_ops=4 * 10**6, tensor_size=0)),
            node(2, making.COLLECTIVE, [1], *words(comm_type=7, comm_size=4096)),
            node(3, what, [2], *words(comm_src=0, comm_dst=1, comm_tag=5, comm_size=999)),
        )
        for what in (SEND, RECEIVE)
    ]
    found = kinds(read_chakra(making.write_traces(tmp_path / "t", ranks)))
    assert found == {
        ("compute", (0,), 10_000): 1, ("compute", (1,), 10_000): 1,
        ("reduce-scatter", (0, 1), 4096): 1, ("message", (0, 1), 999): 1,
        # the sender's part of the collective, and the receive's own dependencies
        ("compute", (0,), 0): 1, ("compute", (1,), 0): 1,
    }  # fmt: skip


def test_groups_parts_and_order(tmp_path: Path) -> None:
    groups = {"0": [0, 2], "1": [1, 3]}
    folder = making.write_traces(tmp_path / "t", [], groups)
    for rank in range(4):
        first = trace(node(1, COMPUTE, us=9, start=5), node(2, COMPUTE, us=3, start=1))
        second = trace(collective(3, 7, 64, [1], str(rank % 2)))
        (folder / f"t.{rank}.0.et").write_bytes(first)
        (folder / f"t.{rank}.1.et").write_bytes(second)
    job = read_chakra(folder)
    assert {op.ranks for op in job.ops if op.kind == "reduce-scatter"} == {(0, 2), (1, 3)}
    by_amount = {(op.ranks[0], op.amount): i for i, op in enumerate(job.ops)}
    later = job.ops[by_amount[0, 9_000_000]]
    assert later.after == (by_amount[0, 3_000_000],)  # one at a time, the earlier start first


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        ([trace(node(1, COMPUTE, [1]))], "circle"),
        ([trace(node(1, COMPUTE, [2]), node(2, COMPUTE, [1]))], "circle"),
        ([trace(node(1, COMPUTE, [9]))], "waits for node 9"),
        ([trace(node(1, COMPUTE), node(1, COMPUTE))], "there twice"),
        ([trace(collective(1, 0, 8)), trace()], "as many on each"),
        ([trace(collective(1, 0, 8)), trace(collective(1, 0, 9))], "expected the same"),
        ([trace(collective(1, 0, 8)), trace(collective(1, 2, 8))], "expected the same"),
        ([trace(making.message(1, SEND, 0, 1, 8)), trace()], "as many of both"),
        ([trace(making.message(1, SEND, 0, 0, 8))], "expected its rank and another"),
        ([trace(collective(1, 44, 8))], "comm_type 44"),
        ([trace(collective(1, 0, -8))], "comm_size is -8"),
        ([trace(collective(1, 0, 8))[:-3]], "it is cut"),
        ([b"\xff\xff\xff\xff\x7f" + bytes(40)], "broken"),
        ([b"\x80" * 40], "cut or too long"),
        ([b"PK\x03\x04 this is a zip file"], "it is cut"),
        ([b"\x05hello"], "expected a Chakra trace"),
        (
            [
                trace(collective(1, 0, 8, [], "a"), collective(2, 0, 8, [1], "b")),
                trace(collective(2, 0, 8, [], "b"), collective(1, 0, 8, [2], "a")),
            ],
            "circle",
        ),
    ],
)
def test_broken_traces_are_one_sentence(tmp_path: Path, traces: list[bytes], words: str) -> None:
    folder = making.write_traces(tmp_path / "t", traces, {"a": [0, 1], "b": [0, 1]}
                                 if len(traces) == 2 and words == "circle" else None)  # fmt: skip
    with pytest.raises(ConfigError, match=words):
        read_chakra(folder)


def test_a_ring_that_only_taking_turns_would_close(tmp_path: Path) -> None:
    """Each rank computes between two collectives; in turn the ranks would wait for each other."""
    ranks = []
    for first, second in (("a", "b"), ("b", "a")):
        ranks.append(
            trace(
                node(1, COMPUTE, us=1, start=1), collective(2, 0, 8, [1], first),
                node(3, COMPUTE, [2], us=1, start=2),
                node(4, COMPUTE, us=1, start=3), collective(5, 0, 8, [4], second),
            )
        )  # fmt: skip
    job = read_chakra(making.write_traces(tmp_path / "t", ranks, {"a": [0, 1], "b": [0, 1]}))
    assert any("several things at once" in note for note in job.notes)
    assert len(job.ops) == 8


@pytest.mark.parametrize("tab", ["\t", "   ", " \t "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_simai_with_tabs_and_blanks(tmp_path: Path, tab: str, end: str) -> None:
    rows = [row("embedding_layer", (7, "ALLREDUCE", 4096), update=3)]
    path = tmp_path / "w.txt"
    path.write_text(making.simai(rows, making.header(), tab, end), newline="")
    job = read_simai(path)
    assert kinds(job)["all-reduce", (2, 3), 4096] == 1
    assert kinds(job)["compute", (6, 7), 7000] == 1
    assert job.ranks == 8


def test_simai_of_older_headers_needs_ranks(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    old = making.header(ep=None, pp=None, vpp=None, ga=None, all_gpus=None)
    path.write_text(making.simai([row("x", weight=(1, "ALLREDUCE", 64))], old))
    with pytest.raises(ConfigError, match="--ranks"):
        read_simai(path)
    assert kinds(read_simai(path, 4))["all-reduce", (0, 2), 64] == 1
    path.write_text(making.simai([row("x", (1, "ALLTOALL", 64))], "MICRO"))
    job = read_simai(path, 4)
    assert kinds(job)["all-to-all", (0, 1, 2, 3), 64] == 1
    assert len(job.ops) == 2  # forward alone


@pytest.mark.parametrize("policy", POLICIES)
def test_simai_policies(tmp_path: Path, policy: str) -> None:
    """Which ranks a layer's collectives join, and whether gradients are run."""
    rows = [row("x", *[(1, "ALLREDUCE", n) for n in (64, 65, 66)])]  # type: ignore[arg-type]
    path = tmp_path / "w.txt"
    path.write_text(making.simai(rows, making.header(policy)))
    everyone = [tuple(range(8))]
    pairs, quads = [(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 2, 4, 6), (1, 3, 5, 7)]
    tensor, data = {
        "DATA": ([], everyone), "MODEL": (everyone, []), "MICRO": (everyone, []),
    }.get(policy, (pairs, quads))  # fmt: skip
    forward = policy in ("MICRO", "DISTRIBUTED_INFERENCE")
    wanted = {(64, ranks) for ranks in tensor}
    if not forward:
        wanted |= {(65, ranks) for ranks in tensor} | {(66, ranks) for ranks in data}
    job = read_simai(path)
    assert {(size, ranks) for kind, ranks, size in kinds(job) if kind == "all-reduce"} == wanted
    assert ("columns of gradients are not run" in str(job.notes)) == forward


def test_simai_says_what_it_does_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text(
        making.simai([row("x")], making.header(ep=8, pp=2, vpp=4, all_gpus=16) + " pp_comm 5")
    )
    assert [note.split(":")[0] for note in read_simai(path).notes] == [
        "ep in the first line",
        "vpp in the first line",
    ]


def test_simai_pipeline_is_1f1b(tmp_path: Path) -> None:
    rows = [
        row("grad_gather", weight=(1, "ALLGATHER", 640)),
        *[row("embedding_layer", (50, "NONE", 0), (70, "NONE", 0), (0, "NONE", 0))] * 4,
    ]
    path = tmp_path / "w.txt"
    path.write_text(
        making.simai(rows, making.header(pp=2, ga=4, model_parallel_NPU_group=1, all_gpus=4)
                     + " pp_comm 8388608.0")
    )  # fmt: skip
    job = read_simai(path)
    assert kinds(job)["message", (0, 2), 8388608] == kinds(job)["message", (2, 0), 8388608] == 4
    assert kinds(job)["all-gather", (0, 1), 640] == kinds(job)["all-gather", (2, 3), 640] == 1
    stages = [
        "".join({50_000: "F", 70_000: "B"}.get(op.amount, "") for op in job.ops if op.ranks == (r,))
        for r in (0, 2)
    ]
    assert stages == ["FFBFBFBB", "FBFBFBFB"]


def test_simai_groups_of_experts(tmp_path: Path) -> None:
    rows = [row("m", (1, "ALLTOALL_EP", 64), weight=(1, "ALLREDUCE_DP_EP", 32))]
    path = tmp_path / "w.txt"
    path.write_text(making.simai(rows, making.header(ep=2, all_gpus=16)))
    found = kinds(read_simai(path))
    assert {r for k, r, _ in found if k == "all-to-all"} == {
        (a + t, a + 2 + t) for a in (0, 4, 8, 12) for t in (0, 1)
    }
    assert found["all-reduce", (0, 4, 8, 12), 32] == found["all-reduce", (3, 7, 11, 15), 32] == 1


def test_simai_recomputes_from_checkpoints(tmp_path: Path) -> None:
    rows = [row(str(i), (10 + i, "NONE", 0), (0, "NONE", 0), (0, "NONE", 0)) for i in range(4)]
    path = tmp_path / "w.txt"
    head = making.header(checkpoints="2 0 2", checkpoint_initiates="2 3 1", all_gpus=2)
    path.write_text(making.simai(rows, head))
    assert [op.name for op in read_simai(path).ops] == [*"0123", *"23", *"01"]


def test_simai_of_1800_layers(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text(
        making.simai([row("x", (1, "REDUCESCATTER", 38 * 10**9))] * 1800, making.header())
    )
    assert kinds(read_simai(path))["reduce-scatter", (0, 1), 38 * 10**9] == 1800


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a first line"),
        ("HYBRID_TRANSFORMR\n0\n", "did you mean 'HYBRID_TRANSFORMER'"),
        (making.header() + "\n2\n" + " ".join(map(str, row("x"))), "says 2 layers and 1"),
        (making.header(tp=3) + "\n0\n", "unknown key of the first line 'tp'"),
        (making.simai([row("x", (1, "ALREDUCE", 5))], making.header()), "did you mean 'ALLREDUCE'"),
        (making.simai([row("x", (-1, "NONE", 5))], making.header()), "line 3 column 3 is '-1'"),
        (making.simai([row("x")[:-1]], making.header()), "11 columns; expected 12"),
        (making.simai([row("x")], making.header(all_gpus=7)), "no multiple"),
        (making.simai([row("x")], making.header(ep=3)), "ep = 3 does not divide"),
    ],
)
def test_broken_simai_files_are_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "w.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as found:
        read_simai(path)
    assert str(found.value).startswith(str(path))


def test_a_graph_too_large_is_known_from_one_operation_of_a_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, add = [], lowering._add

    def counted(links: Links, op: Op, after: Iterable[int]) -> Done:
        made.append(op.kind)
        return add(links, op, after)

    monkeypatch.setattr(lowering, "_add", counted)
    path = tmp_path / "w.txt"
    rows = [row("x", (1, "ALLTOALL_EP", 64 * 512))] * 50
    path.write_text(
        making.simai(rows, making.header(all_gpus=512, model_parallel_NPU_group=1, ep=512))
    )
    nodes = 50 * (512 * 511 + 512 + 3 * 512)  # messages, joins, computation
    with pytest.raises(ConfigError, match=f"a graph of about {nodes} nodes or more; expected"):
        graph_of(read_simai(path), Algorithms(), 8)
    assert made == ["compute", "all-to-all"]


def test_what_a_plan_computes() -> None:
    """LLaMA-7B as its paper has it: per layer 4 h^2 + 3 h f weights; two tokens' worth by hand."""
    plan = JobTable(model="llama-7b", layers=1, tp=2, dp=2, batch=2, sequence=2, tflops=1)
    found = kinds(job_of_plan(plan))
    h, f, tokens = 4096, 11008, 2
    attention = 2 * tokens * 4 * h * h + 2 * tokens * h * 2
    assert found["compute", (0, 1), attention // 2] == 3  # forward and two gradients, two GPUs
    assert found["compute", (2, 3), 2 * tokens * 3 * h * f // 2] == 3
    assert found["all-reduce", (0, 1), tokens * h * 2] == 4
    assert found["all-reduce", (0, 2), 4 * h * h] == 1  # 2 bytes, half of the weights
    assert found["all-reduce", (1, 3), 3 * h * f] == 1


def test_one_collective_too_large_is_refused_before_it_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lowering, "MOST_NODES", 1000)
    job = Job(60_000)
    job.add("all-reduce", range(60_000), 10**9)  # a ring of 7.2 G transfers
    with pytest.raises(ConfigError, match="a graph of more than 1000 nodes"):
        graph_of(job, Algorithms())
