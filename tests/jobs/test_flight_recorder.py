"""PyTorch's flight recorder: sizes and order by hand, cut buffers, and files that harm."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.envs.scenario.jobs.model import COMPUTE, MESSAGE, Job
from dcqcn_gym.extras.jobs.files import read_job

GROUPS = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
          "1": {"name": "1", "desc": "mesh_tp", "ranks": "[2, 3]"}}  # fmt: skip


def entry(
    name: str, sizes: Any, out: Any = None, *, at_us: int = 0, seq: int = 1,
    group: str = "0", dtype: str = "BFloat16", ms: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "record_id": seq, "pg_id": int(group), "process_group": [group, "x"],
        "collective_seq_id": seq, "profiling_name": f"nccl:{name}",
        "time_created_ns": 1_700_000_000_000_000_000 + at_us * 1000,
        "input_sizes": sizes, "input_dtypes": [dtype] * len(sizes),
        "output_sizes": out or sizes, "output_dtypes": [dtype] * len(out or sizes),
        "state": "completed", **({} if ms is None else {"duration_ms": ms}),
    }  # fmt: skip


def dump(folder: Path, ranks: dict[int, list[dict[str, Any]]], *, as_json: bool = True) -> Path:
    for rank, entries in ranks.items():
        whole = {"version": "2.5", "pg_config": GROUPS, "entries": entries}
        path = folder / f"nccl_trace_rank_{rank}"
        path.write_bytes(json.dumps(whole).encode() if as_json else pickle.dumps(whole))
    return folder


def communication(job: Job) -> list[tuple[str, tuple[int, ...], int]]:
    return [(op.kind, op.ranks, op.amount) for op in job.ops if op.kind != COMPUTE]


@pytest.mark.parametrize("as_json", [True, False])
def test_bytes_of_each_kind_by_hand(tmp_path: Path, as_json: bool) -> None:
    calls = [
        entry("all_reduce", [[1024, 8]], seq=1),
        entry("_all_gather_base", [[256]], [[1024]], seq=2, dtype="Float"),
        entry("_reduce_scatter_base", [[1024]], [[256]], seq=3, dtype="Float"),
        entry("all_to_allv", [[640]], seq=4, dtype="Half"),
        entry("all_reduce_barrier", [[1]], seq=5),
    ]
    job = read_job(dump(tmp_path, dict.fromkeys(range(4), calls), as_json=as_json))
    everyone = (0, 1, 2, 3)
    assert communication(job) == [
        ("all-reduce", everyone, 16384), ("all-gather", everyone, 4096),
        ("reduce-scatter", everyone, 4096), ("all-to-all", everyone, 1280),
        ("barrier", everyone, 0),
    ]  # fmt: skip
    assert len(graph_of(job, Algorithms(), 8)) > 0


def test_time_between_calls_is_computation_less_what_the_call_took(tmp_path: Path) -> None:
    calls = [entry("all_reduce", [[8]], at_us=0, seq=1, ms=0.25),
             entry("all_reduce", [[8]], at_us=1000, seq=2)]  # fmt: skip
    job = read_job(dump(tmp_path, dict.fromkeys(range(4), calls)))
    compute = [op for op in job.ops if op.kind == COMPUTE]
    assert [(op.ranks, op.amount) for op in compute] == [((r,), 750_000_000) for r in range(4)]
    assert all(op.after == (0,) for op in compute)
    assert job.ops[-1].after == tuple(range(1, 5))


def test_groups_are_those_of_the_dump_and_run_side_by_side(tmp_path: Path) -> None:
    tp = [entry("all_reduce", [[4]], group="1", seq=9)]
    everyone = [entry("all_reduce", [[4]], seq=1)]
    ranks = {0: everyone, 1: everyone, 2: tp + everyone, 3: tp + everyone}
    assert communication(read_job(dump(tmp_path, ranks))) == [
        ("all-reduce", (2, 3), 8), ("all-reduce", (0, 1, 2, 3), 8),
    ]  # fmt: skip


def test_ranks_that_send_before_they_receive_do_not_wait_for_each_other(tmp_path: Path) -> None:
    # ranks in a name are those of the group: 0 and 1 of mesh_tp are 2 and 3
    ranks = {
        2: [entry("send 0->1", [[4]], group="1"), entry("recv 0<-1", [[6]], group="1")],
        3: [entry("send 1->0", [[6]], group="1"), entry("recv 1<-0", [[4]], group="1")],
    }
    job = read_job(dump(tmp_path, ranks))
    assert communication(job) == [(MESSAGE, (2, 3), 8), (MESSAGE, (3, 2), 12)]
    assert all(op.after == () for op in job.ops)


def test_what_a_full_buffer_lost_is_left_out_and_counted(tmp_path: Path) -> None:
    calls = [entry("all_reduce", [[n]], seq=n) for n in range(1, 6)]
    ranks = {0: calls, 1: calls[2:], 2: calls, 3: calls[1:]}
    job = read_job(dump(tmp_path, ranks))
    assert [amount for _, _, amount in communication(job)] == [6, 8, 10]
    said = " ".join(job.notes)
    assert "of 17 entries 12 were taken and 5 left out" in said
    assert "not in every rank's dump" in said


def test_other_orders_are_refused(tmp_path: Path) -> None:
    one, two = (entry("all_reduce", [[4]], seq=n) for n in (1, 2))
    with pytest.raises(ConfigError, match="same order at every rank"):
        read_job(dump(tmp_path, {0: [one, two], 1: [two, one], 2: [one, two], 3: [one, two]}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"profiling_name": "nccl:new_thing"}, "no collective that is known"),
        ({"input_dtypes": ["Quantum"]}, "unknown width"),
        ({"process_group": ["7", "x"], "pg_id": 7}, "whose ranks no dump says"),
        ({"input_sizes": None}, "no sizes"),
    ],
)
def test_what_is_not_known_is_a_reason_with_an_example(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    good, odd = entry("all_reduce", [[4]], seq=1), entry("all_reduce", [[4]], seq=2) | change
    job = read_job(dump(tmp_path, {rank: [good, odd] for rank in range(4)}))
    assert len(communication(job)) == 1
    assert any(words in note and "nccl_trace_rank_0 entry 1" in note for note in job.notes)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "harmed"),)

    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps({"entries": [Harm()]}))
    with pytest.raises(ConfigError, match="plain values"):
        read_job(tmp_path)
    assert not (tmp_path / "harmed").exists()
