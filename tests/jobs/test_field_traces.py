"""Traces as people have them: exchanges in stream order, roots, groups without a file, gzip."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from making_jobs import (
    attribute,
    collective,
    header,
    message,
    node,
    row,
    simai,
    trace,
    write_traces,
)

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.envs.scenario.jobs.model import MESSAGE
from dcqcn_gym.extras.jobs.chakra import ChakraOptions, read_chakra
from dcqcn_gym.extras.jobs.simai import read_simai

COMPUTE, SEND, RECEIVE = 4, 5, 6


def test_two_ranks_that_send_before_they_receive(tmp_path: Path) -> None:
    def rank(own: int) -> bytes:
        other = 1 - own
        return trace(
            message(1, SEND, own, other, 1000),
            message(2, RECEIVE, other, own, 1000, [1]),
            node(3, COMPUTE, [2], us=5),
        )

    job = read_chakra(write_traces(tmp_path / "t", [rank(0), rank(1)]))
    sends = [i for i, op in enumerate(job.ops) if op.kind == MESSAGE]
    assert [job.ops[i].ranks for i in sends] == [(0, 1), (1, 0)]
    assert all(job.ops[i].after == () for i in sends)  # neither waits for the other
    assert not any("circle" in note for note in job.notes)
    graph_of(job, Algorithms())


@pytest.mark.parametrize("ranks", [3, 8])
def test_a_ring_of_sends_and_receives(tmp_path: Path, ranks: int) -> None:
    """Each step: send, receive, add; the next step's send waits for the addition."""

    def rank(own: int) -> bytes:
        nodes: list[bytes] = []
        last: list[int] = []
        for step in range(ranks - 1):
            a, b, c = 10 * step + 1, 10 * step + 2, 10 * step + 3
            nodes.append(message(a, SEND, own, (own + 1) % ranks, 100, last, step))
            nodes.append(message(b, RECEIVE, (own - 1) % ranks, own, 100, [a], step))
            nodes.append(node(c, COMPUTE, [b], us=1))
            last = [c]
        return trace(*nodes)

    job = read_chakra(write_traces(tmp_path / "t", [rank(r) for r in range(ranks)]))
    assert sum(op.kind == MESSAGE for op in job.ops) == ranks * (ranks - 1)
    graph_of(job, Algorithms())


def test_a_send_behind_a_collective_waits_for_its_own_rank_only(tmp_path: Path) -> None:
    """The receiver computes for long; the message needs the collective at its sender alone."""
    zero = trace(collective(1, 0, 100), message(2, SEND, 0, 1, 50, [1]))
    one = trace(collective(1, 0, 100), node(2, COMPUTE, [1], us=900), message(3, RECEIVE, 0, 1, 50))
    job = read_chakra(write_traces(tmp_path / "t", [zero, one]))
    (send,) = (op for op in job.ops if op.kind == MESSAGE)
    (before,) = send.after
    assert job.ops[before].ranks == (0,)


def test_roots_come_first_and_must_agree(tmp_path: Path) -> None:
    def rank(root: int) -> bytes:
        attributes = [attribute("comm_type", "int64", 5), attribute("comm_size", "int64", 1000)]
        return trace(node(1, 7, (), *attributes, attribute("root_rank", "int64", root)))

    job = read_chakra(write_traces(tmp_path / "t", [rank(3)] * 4))
    assert job.ops[0].ranks == (3, 0, 1, 2)
    with pytest.raises(ConfigError, match="expected the same"):
        read_chakra(write_traces(tmp_path / "u", [rank(3), rank(2), rank(3), rank(3)]))


def test_groups_without_a_file_are_the_ranks_that_name_them(tmp_path: Path) -> None:
    ranks = [trace(collective(1, 0, 1000, group=str(r // 2))) for r in range(4)]
    job = read_chakra(write_traces(tmp_path / "t", ranks))
    assert [op.ranks for op in job.ops] == [(0, 1), (2, 3)]
    assert any("no JSON file describes" in note for note in job.notes)
    described = write_traces(tmp_path / "u", ranks, {"0": [0, 1], "1": [2, 3]})
    assert [op.ranks for op in read_chakra(described).ops] == [(0, 1), (2, 3)]


def test_json_files_of_something_else_are_left_out(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "t", [trace(collective(1, 0, 1000))] * 2)
    (folder / "system.json").write_text('{"scheduling-policy": "LIFO", "active-chunks": 1}')
    assert any("system.json" in note for note in read_chakra(folder).notes)


def test_packed_traces(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "t", [trace(collective(1, 0, 1000))] * 2)
    for path in list(folder.iterdir()):
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert len(read_chakra(folder).ops) == 1


def test_dependencies_that_are_not_there(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "t", [trace(node(1, COMPUTE, ctrl=[0], us=1))])
    with pytest.raises(ConfigError, match="node 0, which is not there"):
        read_chakra(folder)
    job = read_chakra(folder, ChakraOptions(drop_missing=True))
    assert job.notes["dependencies on nodes that are not there, left out"] == 1


def test_the_trace_of_rank_0_alone(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "t", [trace(collective(1, 0, 1000))], {"all": list(range(8))})
    with pytest.raises(ConfigError, match="1 of 8 ranks; those of ranks 1, 2, 3, 4, 5"):
        read_chakra(folder)
    job = read_chakra(folder, ChakraOptions(repeat=8))
    assert job.ops[0].ranks == tuple(range(8))
    sends = write_traces(tmp_path / "u", [trace(message(1, SEND, 0, 1, 10))])
    with pytest.raises(ConfigError, match="on rank 1"):
        read_chakra(sends, ChakraOptions(repeat=2))


def test_simai_says_what_sends_nothing(tmp_path: Path) -> None:
    rows = [row("embedding_layer"), row("moe", (1, "ALLTOALL_EP", 4096))]
    (tmp_path / "a.txt").write_text(simai(rows, header(pp=4, all_gpus=16)))
    notes = read_simai(tmp_path / "a.txt").notes
    assert "pp in the first line without pp_comm: stages send each other nothing" in notes
    assert "all-to-alls over ep groups of one rank, which send nothing" in notes


def test_simai_takes_the_first_layers_of_a_large_file(tmp_path: Path) -> None:
    rows = [row("embedding_layer"), *(row(f"l{i}", (1, "ALLREDUCE", 4096)) for i in range(400))]
    (tmp_path / "a.txt").write_text(simai(rows, header(ga=1, all_gpus=8192)))
    with pytest.raises(ConfigError, match="--layers N takes the first N of 401"):
        read_simai(tmp_path / "a.txt")
    job = read_simai(tmp_path / "a.txt", most_layers=2)
    assert job.notes["layers taken, of 401 (--layers)"] == 2
