"""AICB's logs of calls: groups and bytes by hand, what is left out, and mutants."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.extras.jobs.files import read_job

HEADER = ("comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,"
          "algbw,busbw,count\n")  # fmt: skip


def log(
    folder: Path, *rows: str, ranks: int | None = None
) -> list[tuple[str, tuple[int, ...], int]]:
    path = folder / "log.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    job = read_job(path, ranks)
    assert len(graph_of(job, Algorithms(), 8)) > 0
    return [(op.kind, op.ranks, op.amount) for op in job.ops]


def row(kind: str, group: str, size: int, amount: int, times: str = "1") -> str:
    return f"CommType.{kind},CommGroup.{group},{size},{amount},forward,,,,,,,{times}"


def test_groups_of_tensor_and_data_by_hand(tmp_path: Path) -> None:
    found = log(
        tmp_path, row("all_reduce", "tp_group", 2, 4096), row("all_reduce", "dp_group", 4, 99)
    )
    assert found == [
        *(("all-reduce", (i, i + 1), 4096) for i in (0, 2, 4, 6)),
        ("all-reduce", (0, 2, 4, 6), 99), ("all-reduce", (1, 3, 5, 7), 99),
    ]  # fmt: skip


def test_sizes_of_a_gather_are_the_groups_whole(tmp_path: Path) -> None:
    found = log(
        tmp_path, row("all_gather", "tp_group", 4, 100), row("reduce_scatter", "tp_group", 4, 7)
    )
    assert [amount for _, _, amount in found] == [100, 7]


def test_stages_send_to_the_next_and_receives_are_counted(tmp_path: Path) -> None:
    found = log(tmp_path, row("isend", "pp_group", 3, 50), row("irecv", "pp_group", 3, 50),
                row("all_reduce", "tp_group", 2, 8))  # fmt: skip
    assert [op for op in found if op[0] == "message"] == [
        ("message", (0, 2), 50), ("message", (2, 4), 50),
        ("message", (1, 3), 50), ("message", (3, 5), 50),
    ]  # fmt: skip


def test_gradients_go_back_through_the_stages(tmp_path: Path) -> None:
    found = log(tmp_path, row("isend", "pp_group", 3, 50).replace("forward,,,", "b,,,send_prev"))
    assert [ranks for _, ranks, _ in found] == [(2, 1), (1, 0)]


def test_experts_are_neighbours_within_the_data_parallel_group(tmp_path: Path) -> None:
    found = log(tmp_path, row("all_to_all", "ep_group", 2, 64), row("all_reduce", "dp_group", 4, 8))
    assert [ranks for kind, ranks, _ in found if kind == "all-to-all"] == [(0, 1), (2, 3)]


def test_more_ranks_are_more_groups_and_repeats_are_calls(tmp_path: Path) -> None:
    found = log(tmp_path, row("all_reduce", "tp_group", 2, 8, "3"), ranks=4)
    assert [ranks for _, ranks, _ in found] == [(0, 1), (2, 3)] * 3
    with pytest.raises(ConfigError, match="multiple of 2"):
        log(tmp_path, row("all_reduce", "tp_group", 2, 8), ranks=3)


def test_what_is_left_out_has_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + "\n".join([
        row("all_reduce", "tp_group", 2, 8), row("computation", "tp_group", 2, 8),
        row("all_reduce", "embedding_group", 2, 8), row("all_reduce", "dp_group", 1, 8),
        "CommType.all_reduce,CommGroup.tp_group,many,8,,,,,,,,",
    ]) + "\n")  # fmt: skip
    notes = " ".join(read_job(path).notes)
    assert "of 5 rows 1 were taken and 4 left out" in notes
    assert "no call that is simulated, for example 'line 3 computation'" in notes


def test_a_group_of_two_sizes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one size of each group"):
        log(tmp_path, row("all_reduce", "tp_group", 2, 8), row("all_reduce", "tp_group", 4, 8))


def test_another_csv_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="comm_type,comm_group"):
        read_job(tmp_path / "x.csv")
