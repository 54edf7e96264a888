"""CSV of any columns, nfdump's among it, files of names, and NCCL's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.extras.traffic.hosts import number_hosts, read_hosts
from dcqcn_gym.extras.traffic.nccl import LINES, Calls, read_nccl
from dcqcn_gym.extras.traffic.reading import form_of
from dcqcn_gym.extras.traffic.records import RECORDS, Record, Tally
from dcqcn_gym.extras.traffic.tables import read_table

NFDUMP = """ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt
2026-01-31 12:00:00.250,2026-01-31 12:00:01.000,0.750,10.0.0.1,10.0.0.2,5,4791,UDP,..,0,0,9,9000,0,0
Summary
flows,bytes,packets,avg_bps,avg_pps,avg_bpp
1,9000,9,1,1,1
"""
NOON_NS = 1_769_860_800 * 10**9
"""2026-01-31 12:00:00 UTC."""


def table(path: Path, text: str, columns: str | None = None) -> tuple[list[Record], Tally]:
    path.write_text(text)
    tally = Tally()
    return list(read_table(path, columns, tally)), tally


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("src,dst,bytes,start_ns\na,b,10,1500\n", None),
        ("# from;to;octets;time_us\n\na;b;10;1.5\n", None),
        ("start_s\tsource\tdestination\tsize\n0.0000015\ta\tb\t1e1\n", None),
        ('"when","x","y","n"\n"1.5","a","b","10"\n', "src=x,dst=y,bytes=n,start=when:us"),
        ("src,dst,bytes,start\na,b,10,0.0000015\n", None),
    ],
)
def test_columns_are_found_or_named(tmp_path: Path, text: str, columns: str | None) -> None:
    found, tally = table(tmp_path / "a.csv", text, columns)
    assert [record[:4] for record in found] == [("a", "b", 10, 1500)]
    assert (tally.of(RECORDS).came, tally.lines()) == (1, [])


def test_nfdump_writes_dates_and_ends_with_a_summary(tmp_path: Path) -> None:
    found, tally = table(tmp_path / "a.csv", NFDUMP)
    assert [record[:4] for record in found] == [
        ("10.0.0.1", "10.0.0.2", 9000 - 9 * 44, NOON_NS + 250_000_000)
    ]
    assert tally.of(RECORDS).came == 1


@pytest.mark.parametrize(
    "when", ["2026-01-31T12:00:00.5Z", "2026-01-31 13:00:00.5+01:00", "2026-01-31 12:00:00.500000"]
)
def test_dates_have_their_zone(tmp_path: Path, when: str) -> None:
    found, _ = table(tmp_path / "a.csv", f"src,dst,bytes,start\na,b,1,{when}\n")
    assert found[0].start_ns == NOON_NS + 500_000_000


def test_lines_that_are_none_are_counted_with_an_example(tmp_path: Path) -> None:
    text = "src,dst,bytes,start_ns\na,b,many,1\na,b,1.5,1\na,b,1,soon\na,b\na,b,7,7\n"
    found, tally = table(tmp_path / "a.csv", text)
    assert found == [Record("a", "b", 7, 7)]
    assert tally.of(RECORDS).came == 5
    assert tally.lines()[1:] == [
        "2 lines have no whole number of bytes, for example 'many', '1.5'",
        "1 lines have no start time, for example 'soon'",
        "1 lines have too few columns, for example 'a,b'",
    ]


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("", None, "holds no line"),
        ("src,dst,bytes\n", None, "no column is known to be 'start'"),
        ("src,from,dst,bytes,start\n", None, "2 columns may be 'src'"),
        ("src,dst,bytes,start\n", "src=source", "no column 'source'; did you mean 'src'"),
        ("src,dst,bytes,start\n", "source=src", "expected src=NAME"),
        ("src,dst,bytes,start\n", "start=start:min", "expected a unit of ns, us, ms, s"),
    ],
)
def test_a_header_that_does_not_do_is_a_sentence(
    tmp_path: Path, text: str, columns: str | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        table(tmp_path / "a.csv", text, columns)


def test_names_without_a_file_are_numbered_as_people_count() -> None:
    assert number_hosts(["gpu-10", "gpu-2", "gpu-2"]) == {"gpu-2": 0, "gpu-10": 1}


def test_a_file_of_names(tmp_path: Path) -> None:
    file = tmp_path / "hosts.csv"
    file.write_text("name,host\n# two NICs\na0,h3\na1,3\n10.0.0.1,0\n")
    assert read_hosts(file) == {"a0": 3, "a1": 3, "10.0.0.1": 0}
    for text, words in (
        ("a,b\n", "line 1: 'a,b'; expected name,host"),
        ("a,1\na,2\n", "line 2: 'a' is h1 further up"),
        ("\n", "names no host"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=words):
            read_hosts(file)


def nccl(rank: int, name: str, count: int, kind: int, ranks: int) -> str:
    return (
        f"node{rank // 8}:10{rank}:20{rank} [{rank % 8}] NCCL INFO {name}: opCount 1f sendbuff "
        f"0x7f00 recvbuff 0x7f80 count {count} datatype {kind} op 0 root 0 comm 0x55aa "
        f"[nranks={ranks}] stream 0x56\n"
    )


def test_nccl_names_elements_of_a_type(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(
        "node0:1:1 [0] NCCL INFO Bootstrap : Using eth0\n"
        + "".join(nccl(rank, "AllReduce", 1000, 7, 16) for rank in range(16))
        + nccl(3, "AllGather", 10, 9, 8)
        + nccl(3, "AllGather", 10, 77, 8)
    )
    tally = Tally()
    log = read_nccl(file, tally)
    assert log.calls == [Calls("AllReduce", 4000, 16, 16), Calls("AllGather", 20, 8, 1)]
    lines = tally.of(LINES)
    assert (len(log.writers), lines.taken, lines.came, lines.missing) == (16, 17, 18, 0)
    assert form_of(file, None) == "nccl"


def test_a_log_without_collectives_says_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x NCCL INFO NET/IB\n")
    with pytest.raises(ConfigError, match="NCCL_DEBUG_SUBSYS=COLL"):
        read_nccl(tmp_path / "log", Tally())
