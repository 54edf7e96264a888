"""CSV of any columns, nfdump's among it, files of names, and NCCL's log."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.extras.traffic.device_state import read_device_state
from dcqcn_gym.extras.traffic.hosts import number_hosts, read_hosts
from dcqcn_gym.extras.traffic.importing import Source, import_flows
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


NFDUMP_JSON = """[
{
	"type" : "FLOW",
	"first" : "2026-01-31T12:00:00.250",
	"last" : "2026-01-31T12:00:01.000",
	"in_packets" : 9,
	"in_bytes" : 9000,
	"proto" : 17,
	"src4_addr" : "10.0.0.1",
	"dst4_addr" : "10.0.0.2",
	"src_port" : 5,
	"dst_port" : 4791
}
,
{ "type" : "STAT" }
]
"""
GOFLOW = (
    '{"type":"IPFIX","time_flow_start_ns":1769860800250000000,"bytes":9000,"packets":9,"sampling_rate":1,'
    '"src_addr":"10.0.0.1","dst_addr":"10.0.0.2","proto":"UDP","src_port":5,"dst_port":4791}'
)
CLOUD = (
    "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start "
    f"end action\n2 1 eni-1 10.0.0.1 10.0.0.2 5 4791 17 9 9000 {NOON_NS // 10**9}.25 9 ACCEPT\n"
)
PMACCT = (
    '{"ip_src": "10.0.0.1", "ip_dst": "10.0.0.2", "port_src": 5, "port_dst": 4791, "ip_proto": '
    '"udp", "timestamp_start": "2026-01-31 12:00:00.250000", "packets": 9, "bytes": 9000}'
)


@pytest.mark.parametrize(
    "text",
    [NFDUMP_JSON, GOFLOW, f"[{GOFLOW},{GOFLOW}]".replace(f",{GOFLOW}]", "]"), CLOUD, PMACCT,
     "SrcAddr,DstAddr,Bytes,Packets,Proto,SrcPort,DstPort,TimeFlowStartNs\n10.0.0.1,10.0.0.2,9000,"
     f"9,17,5,4791,{NOON_NS + 250_000_000}\n",
     "sIP|dIP|sPort|dPort|pro|packets|bytes|sTime|\n 10.0.0.1|10.0.0.2|5|4791|17|9|9000|"
     "2026-01-31T12:00:00.250|\n"],
    ids=["nfdump's list", "goflow2", "a list in a line", "a cloud's log", "pmacct", "akvorado",
         "SiLK"],
)  # fmt: skip
def test_the_same_record_as_other_tools_write_it(tmp_path: Path, text: str) -> None:
    found, tally = table(tmp_path / "a", text)
    assert [record[:4] for record in found] == [
        ("10.0.0.1", "10.0.0.2", 9000 - 9 * 44, NOON_NS + 250_000_000)
    ]
    tally.take(RECORDS, len(found))
    tally.check()


def test_what_powershell_writes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("src,dst,bytes,start_ns\na,b,10,1500\n".encode("utf-16"))
    found = list(read_table(tmp_path / "a.csv", None, Tally()))
    assert [record[:4] for record in found] == [("a", "b", 10, 1500)]
    (tmp_path / "query.txt").write_bytes("DcQcnAIRate : 7\nRPG_GD_P1  10\n".encode("utf-16"))
    state = read_device_state([tmp_path / "query.txt"])
    assert state.tables()["initial"] == {"rp_ai_rate": 7, "rp_gd": 10}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flows.csv", "src,dst,bytes,start_ns\n6,0,10,5\n2,5,20,7\n"),
        ("flow.txt", "2\n6 0 3 100 10 2.000000005\n2 5 3 100 20 2.000000007\n"),
        ("a.cm", "Nodes 8\nConnections 2\n6->0 start 5000 size 10\n2->5 start 7000 size 20\n"),
    ],
)
def test_hosts_that_have_numbers_keep_them(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    source = Source(tmp_path / name, form_of(tmp_path / name, None))
    import_flows(source, tmp_path / "out", lambda *_: None)
    lines = (tmp_path / "out/flows.csv").read_text().splitlines()[1:]
    assert sorted(lines) == ["2,5,20,2", "6,0,10,0"]
    assert (tmp_path / "out/hosts.csv").read_text().splitlines()[-1].endswith("6,h6")
    again = Source(tmp_path / "out/flows.csv", form_of(tmp_path / "out/flows.csv", None))
    import_flows(again, tmp_path / "again", lambda *_: None)
    assert (tmp_path / "again/flows.csv").read_text().splitlines()[1:] == lines


OTHERS: dict[str, tuple[str, str]] = {
    "a log of NCCL": ("gpu:1:2 [0] NCCL INFO AllReduce: opCount 0\n", "--fit"),
    "nccl-tests": ("# nThread 1 nGpus 8 minBytes 8\n", "calibrate"),
    "perftest": ("RDMA_Write BW Test\n", "calibrate"),
    "Prometheus": ('{"data": {"resultType": "matrix", "result": []}}', "calibrate"),
    "config_db.json": ('{"WRED_PROFILE": {}, "x": 1}', "settings import"),
    "lldpctl": ('{"lldp": {"interface": []}}', "network import"),
    "a device's setting": ("RPG_AI_RATE_P1  5\n", "settings import"),
    "counters of a device": ("NIC statistics:\n  rx_prio3_pause: 5\n", "settings check"),
    "a workload file": ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4\n2\n",
                        "dcqcn-gym jobs"),
    "config.txt": ("ENABLE_QCN 1\nCC_MODE 1\n", "network import"),
    "fct.txt": ("0b000001 0b000101 10000 100 1000 2000000000 5000 4800\n", "network import"),
    "FlowMonitor": ('<?xml version="1.0" ?>\n<FlowMonitor>\n</FlowMonitor>\n', "traffic import"),
    "a description of a network": ("<DeviceMiniGraph></DeviceMiniGraph>", "network import"),
    "a scenario": ('[topology]\nkind = "graph"\n', "--scenario"),
    "a trace of a profiler": ('{"traceEvents": []}', "dcqcn-gym jobs"),
    "flight recorder": ('{"version": "2", "pg_config": {}}', "dcqcn-gym jobs FOLDER"),
    "a capture": ("\n\r\r\n....", "traffic import"),
    "a record, not the names": ("2026-01-31 12:00:00.250 ... UDP 10.0.0.1:5 -> 10.0.0.2:4791\n",
                                "-o csv"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_for_another_command_says_which(kind: str, tmp_path: Path) -> None:
    text, command = OTHERS[kind]
    path = tmp_path / "file"
    path.write_bytes(text.encode())
    said = other_use(path)
    assert kind in said
    assert command in said
    refused = 0
    for words in (
        ["traffic", "import", str(path), "--out", str(tmp_path / "o")],
        ["network", "import", str(path), "--out", str(tmp_path / "o")],
        ["settings", "import", str(path)],
        ["settings", "check", str(path)],
        [
            "calibrate",
            "-s",
            "mini-fb-hadoop",
            "--measured",
            str(path),
            "--out",
            str(tmp_path / "c"),
        ],
        ["jobs", str(path)],
    ):
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, ConfigError | SystemExit | type(None)), words
        refused += isinstance(done.exception, ConfigError) and said in str(done.exception)
    assert refused >= 2


def test_a_file_that_nobody_knows_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello world\n")
    assert other_use(tmp_path / "x") == other_use(tmp_path / "none") == ""
