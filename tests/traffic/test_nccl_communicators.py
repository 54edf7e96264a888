"""Logs of NCCL: which ranks are together, and what Sends are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.traffic.nccl import read_nccl
from dcqcn_gym.extras.traffic.scenario import collective_workloads

BASE = load_scenario("fb-hadoop")


def line(node: int, device: int, name: str, ranks: int, comm: int = 0, number: int = 0) -> str:
    return (
        f"node{node}:{100 + device}:{200 + device} [{device}] NCCL INFO {name}: opCount {number:x} "
        f"sendbuff 0x7f recvbuff 0x7f count 1024 datatype 7 op 0 root 0 comm {comm:#x} "
        f"[nranks={ranks}] stream 0x5\n"
    )


def workloads(path: Path, text: str) -> list[dict[str, object]]:
    path.write_text(text)
    return collective_workloads(read_nccl(path, Tally()), BASE)[0]


@pytest.mark.parametrize("shared", [True, False])
def test_communicators_are_at_work_at_once(tmp_path: Path, shared: bool) -> None:
    """By their address where it is shared, else by device: addresses are a process's own."""
    text = "".join(
        line(node, device, "AllReduce", 4, 0x100 + device if shared else 64 * node + device)
        for node in range(4)
        for device in range(8)
    )
    found = workloads(tmp_path / "log", text)
    assert [one["hosts"] for one in found] == [[d, d + 8, d + 16, d + 24] for d in range(8)]
    assert {one["bytes"] for one in found} == {4096}


def test_ranks_of_a_node_are_together_where_their_communicator_says_so(tmp_path: Path) -> None:
    text = "".join(
        line(node, device, "AllReduce", 4, 0x100 + node) for node in range(3) for device in range(4)
    )
    found = workloads(tmp_path / "log", text)
    assert [one["hosts"] for one in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_sends_to_every_peer_are_an_all_to_all(tmp_path: Path) -> None:
    text = "".join(line(0, d, name, 4) * 3 for d in range(4) for name in ("Send", "Recv"))
    assert workloads(tmp_path / "log", text) == [
        {"kind": "alltoall", "bytes": 4096, "off_us": 0.0, "hosts": 4}
    ]


def test_single_sends_are_an_exchange_with_the_next_rank(tmp_path: Path) -> None:
    text = "".join(line(0, d, "Send", 8, number=i) for d in range(8) for i in range(4))
    (found,) = workloads(tmp_path / "log", text)
    assert (found["kind"], found["bytes"]) == ("ring", 8 * 4096)


def test_a_line_made_to_be_slow_is_left_out_at_once(tmp_path: Path) -> None:
    long = "x NCCL INFO A: opCount 0 " + "a:1" * 20_000 + " count 1" + "A" * 60_000 + "\n"
    (tmp_path / "log").write_text(long * 50 + line(0, 0, "AllReduce", 2))
    tally = Tally()
    begin = time.process_time()
    read_nccl(tmp_path / "log", tally)
    assert time.process_time() - begin < 5  # 23 s for one such line before
    assert tally.of("lines on collectives").left_out.total() == 50


def test_what_moves_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Barrier"):
        workloads(tmp_path / "log", line(0, 0, "Barrier", 8))


def test_a_scenario_of_less_than_half_of_the_bytes_is_refused(tmp_path: Path) -> None:
    calls = [line(0, d, name, 8, number=i) for i, name in enumerate(
        ("AllReduce", "AllGather", "ReduceScatter")) for d in range(8)]  # fmt: skip
    with pytest.raises(ConfigError, match=r"have 33% of the log's bytes.*`dcqcn-gym jobs`"):
        workloads(tmp_path / "log", "".join(calls))


def test_communicators_that_the_fabric_has_no_hosts_for_are_said(tmp_path: Path) -> None:
    text = "".join(line(n, d, "AllReduce", 8, 0x100 + d) for n in range(8) for d in range(8))
    (tmp_path / "log").write_text(text)
    small = load_scenario("mini-fb-hadoop")
    found, _, left = collective_workloads(read_nccl(tmp_path / "log", Tally()), small)
    assert len(found) == 1
    assert any("8 communicators are at work at once, on 64 ranks" in said for said in left)
