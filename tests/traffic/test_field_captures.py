"""Captures and exports as NICs and switches make them: nothing is lost without a reason."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest
from making import START_S, pcap, roce, udp

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.tally import BalanceError, Tally
from dcqcn_gym.extras.traffic.captures import Sampling
from dcqcn_gym.extras.traffic.importing import Source, Span, flows_of, import_flows, span_of
from dcqcn_gym.extras.traffic.messages import MISSING, REUSED
from dcqcn_gym.extras.traffic.reading import form_of

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def imported(
    path: Path, data: bytes, given: int | None = None
) -> tuple[list[tuple[int, int, int, int]], Span]:
    """Return flows and what was read; the balance was checked on the way."""
    path.write_bytes(data)
    source = Source(path, form_of(path, None), sampling=Sampling(given))
    span = span_of(source, lambda *_: None)
    return list(flows_of(source, span, lambda *_: None)), span


def write_of(packets: int, first: int = 100, pair: int = 7) -> list[bytes]:
    """The packets of one RDMA WRITE of 1,024 bytes each."""
    kinds = [0x06, *[0x07] * (packets - 2), 0x08]
    return [roce(A, B, kind, first + i, 1024, pair) for i, kind in enumerate(kinds)]


def moved(frame: bytes, port: int) -> bytes:
    """The same packet from another UDP source port."""
    return frame[:34] + struct.pack(">H", port) + frame[36:]


@pytest.mark.parametrize("seed", range(5))
def test_any_order_any_repeat_and_any_port_give_the_message(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    frames = write_of(64)
    frames += rng.choices(frames, k=20)
    rng.shuffle(frames)
    frames = [moved(frame, rng.choice([50_001, 50_002, 50_003])) for frame in frames]
    flows, span = imported(tmp_path / "a.pcap", pcap(list(enumerate(frames))))
    assert [flow[:3] for flow in flows] == [(0, 1, 65_536)]
    assert not span.tally.notes
    assert span.tally.of("frames").left_out.total() == 20


def test_lost_packets_are_missing_and_repeated_ones_are_not(tmp_path: Path) -> None:
    frames = write_of(64)
    del frames[10:13]
    flows, span = imported(tmp_path / "a.pcap", pcap(list(enumerate(frames))))
    assert flows == [(0, 1, 61 * 1024, 0)]
    assert span.tally.notes == {MISSING: 3}


@pytest.mark.parametrize("first", [100, 101, 120, 5_000_000])
def test_a_queue_pair_used_again_is_another_connection(tmp_path: Path, first: int) -> None:
    frames = [*write_of(64), *write_of(32, first)]
    flows, span = imported(tmp_path / "a.pcap", pcap(list(enumerate(frames))))
    if first == 100:  # the same numbers, packet by packet: sent again
        assert [flow[2] for flow in flows] == [65_536]
    else:
        assert sorted(flow[2] for flow in flows) == [32_768, 65_536]
        assert span.tally.notes[REUSED] == 1


def test_transports_beside_reliable_connections(tmp_path: Path) -> None:
    sizes = [(0x06, 1024 + 16), (0x07, 1024), (0x08, 1024)]  # the first has an RETH
    unreliable = [roce(A, C, 0x20 | kind, i, size, 9) for i, (kind, size) in enumerate(sizes)]
    datagram = roce(B, C, 0x64, 5, 1024 + 8, 11)  # with its own header of 8 bytes
    extended = roce(C, A, 0xA4, 6, 512 + 4, 12)
    frames = [*unreliable, datagram, extended, roce(A, B, 0x11, 1, 0), roce(A, B, 0xC4, 1, 64)]
    flows, span = imported(tmp_path / "a.pcap", pcap(list(enumerate(frames))))
    assert sorted(flow[2] for flow in flows) == [512, 1024, 3072]
    assert dict(span.tally.of("frames").left_out) == {
        "ACKs": 1, "packets of opcode 0xc4, which is its maker's own": 1,
    }  # fmt: skip


def ipv4(body: bytes, protocol: int) -> bytes:
    head = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(body), 0, 64, protocol, 0)
    return bytes(12) + b"\x08\x00" + head + bytes([192, 0, 2, 1, 192, 0, 2, 2]) + body


INNER = roce(A, B, 0x0A, 1, 4096)
WRAPPED = {
    "VLAN": INNER[:12] + b"\x81\x00\x00\x05" + INNER[12:],
    "0x9100": INNER[:12] + b"\x91\x00\x00\x05" + INNER[12:],
    "VXLAN": udp("192.0.2.1", "192.0.2.2", 5, 4789, b"\x08" + bytes(7) + INNER),
    "GRE with Ethernet": ipv4(struct.pack(">HH", 0, 0x6558) + INNER, 47),
    "GRE with IP and a key": ipv4(struct.pack(">HHI", 0x2000, 0x0800, 7) + INNER[14:], 47),
    "ERSPAN II": ipv4(struct.pack(">HHIII", 0x1000, 0x88BE, 1, 0, 0) + INNER, 47),
    "ERSPAN III": ipv4(struct.pack(">HHIIII", 0x1000, 0x22EB, 1, 0, 0, 0) + INNER, 47),
    "Geneve": udp(
        "192.0.2.1", "192.0.2.2", 5, 6081, b"\x01\0\x65\x58" + bytes(4) + bytes(4) + INNER
    ),
    "Geneve with IP": udp("192.0.2.1", "192.0.2.2", 5, 6081, b"\0\0\x08\0" + bytes(4) + INNER[14:]),
    "IP in IP": ipv4(INNER[14:], 4),
    "MPLS": INNER[:12] + b"\x88\x47" + struct.pack(">II", 5 << 12, 6 << 12 | 1 << 8) + INNER[14:],
    "length 0": INNER[:16] + b"\0\0" + INNER[18:],
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_mirrors_and_tags_are_looked_into(tmp_path: Path, kind: str) -> None:
    flows, _ = imported(tmp_path / "a.pcap", pcap([(0, WRAPPED[kind])]))
    assert flows == [(0, 1, 4096, 0)]


@pytest.mark.parametrize(
    ("link", "head"),
    [(113, bytes(14) + b"\x08\x00"), (276, b"\x08\x00" + bytes(18)), (101, b""), (228, b"")],
)
def test_links_that_are_not_ethernet(tmp_path: Path, link: int, head: bytes) -> None:
    flows, _ = imported(tmp_path / "a.pcap", pcap([(0, head + INNER[14:])], link=link))
    assert flows == [(0, 1, 4096, 0)]


def test_ipv6_with_extension_headers(tmp_path: Path) -> None:
    body = INNER[34:]
    options = struct.pack(">BBHI", 60, 0, 0, 0) + struct.pack(">BBHI", 17, 0, 0, 0)
    head = struct.pack(">IHBB", 6 << 28, len(options) + len(body), 0, 64)
    ends = bytes(15) + b"\1" + bytes(15) + b"\2"
    frame = bytes(12) + b"\x86\xdd" + head + ends + options + body
    flows, _ = imported(tmp_path / "a.pcap", pcap([(0, frame)]))
    assert flows == [(0, 1, 4096, 0)]


def block(kind: int, body: bytes, order: str) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_with_two_interfaces_and_two_sections(tmp_path: Path, order: str) -> None:
    def section(mark: str) -> bytes:
        return block(0x0A0D0D0A, struct.pack(mark + "IHHq", 0x1A2B3C4D, 1, 0, -1), mark)

    def interface(link: int, resolution: int, mark: str) -> bytes:
        options = struct.pack(mark + "HHBxxx", 9, 1, resolution) + bytes(4)
        return block(1, struct.pack(mark + "HHI", link, 0, 0) + options, mark)

    def packet(number: int, ticks: int, frame: bytes, mark: str) -> bytes:
        head = struct.pack(
            mark + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, *[len(frame)] * 2
        )
        return block(6, head + frame, mark)

    at = START_S
    other, last = roce(B, C, 0x0A, 1, 512), roce(C, A, 0x0A, 1, 8)
    data = (
        section(order) + interface(1, 9, order) + interface(101, 0x80 | 20, order)
        + packet(0, at * 10**9 + 5, INNER, order)
        + packet(1, (at << 20) + (1 << 19), other[14:], order)
        + section("<") + interface(1, 3, "<") + packet(0, at * 1000 + 750, last, "<")
    )  # fmt: skip
    flows, _ = imported(tmp_path / "a.pcapng", data)
    assert flows == [(0, 1, 4096, 0), (1, 2, 512, 499_999_995), (2, 0, 8, 749_999_995)]


def message(*sets: tuple[int, bytes], domain: int = 1) -> bytes:
    """An IPFIX message of these sets."""
    body = b"".join(struct.pack(">HH", number, 4 + len(data)) + data for number, data in sets)
    return struct.pack(">HHIII", 10, 16 + len(body), START_S + 10, 0, domain) + body


def template(number: int, *fields: tuple[int, int], scopes: int | None = None) -> bytes:
    head = struct.pack(">HH", number, len(fields))
    head += b"" if scopes is None else struct.pack(">H", scopes)
    return head + b"".join(struct.pack(">HH", *field) for field in fields)


FLOW = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 8), (2, 8), (152, 8))


def flow(octets: int, packets: int, start_ms: int = 0, source: int = 1) -> bytes:
    ends = bytes([10, 0, 0, source, 10, 0, 0, 9])
    return ends + struct.pack(
        ">HHBQQQ", 50_000, 4791, 17, octets, packets, START_S * 1000 + start_ms
    )


def exported(*messages: bytes, exporter: str = "192.0.2.1") -> bytes:
    return pcap([(i, udp(exporter, "192.0.2.9", 1, 2055, m)) for i, m in enumerate(messages)])


@pytest.mark.parametrize(
    ("fields", "values", "rate"),
    [
        (((149, 4), (34, 4)), struct.pack(">II", 1, 1000), 1000),
        (((149, 4), (302, 4), (305, 4), (306, 4)), struct.pack(">IIII", 1, 7, 10, 990), 100),
        (((149, 4), (50, 4)), struct.pack(">II", 1, 64), 64),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_sampling_announced_in_options(
    tmp_path: Path, fields: tuple[tuple[int, int], ...], values: bytes, rate: int, late: bool
) -> None:
    options = message((3, template(300, *fields, scopes=1)), (300, values))
    records = message((2, template(256, *FLOW)), (256, flow(10_440, 10)))
    flows, _ = imported(
        tmp_path / "a.pcap", exported(*([records, options] if late else [options, records]))
    )
    assert flows == [(0, 1, 10_000 * rate, 0)]


def test_sampling_by_option_where_nothing_announces_it(tmp_path: Path) -> None:
    records = message((2, template(256, *FLOW)), (256, flow(10_440, 10)))
    flows, span = imported(tmp_path / "a.pcap", exported(records), given=500)
    assert flows == [(0, 1, 5_000_000, 0)]
    assert not span.tally.notes


def test_templates_may_come_last(tmp_path: Path) -> None:
    flows, span = imported(
        tmp_path / "a.pcap",
        exported(message((256, flow(10_440, 10))), message((2, template(256, *FLOW)))),
    )
    assert flows == [(0, 1, 10_000, 0)]
    flows, span = imported(
        tmp_path / "b.pcap",
        exported(message((2, template(256, *FLOW)), (256, flow(10_440, 10)), (257, bytes(8)))),
    )
    assert len(flows) == 1
    assert span.tally.of("records").left_out == {"data sets without a template": 1}


def test_both_ways_totals_and_the_way_out(tmp_path: Path) -> None:
    fields = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (23, 8), (24, 8), (152, 8))
    out = message((2, template(256, *fields)), (256, flow(10_440, 10)))
    assert imported(tmp_path / "out.pcap", exported(out))[0] == [(0, 1, 10_000, 0)]
    totals = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (85, 8), (86, 8), (152, 8), (153, 8))
    rows = [flow(10_440 * n, 10 * n) + struct.pack(">Q", (START_S + n) * 1000) for n in (1, 2, 4)]
    total = message((2, template(256, *totals)), (256, b"".join(rows)))
    assert imported(tmp_path / "total.pcap", exported(total))[0] == [
        (0, 1, 10_000, 0), (0, 1, 10_000, 1_000_000_000), (0, 1, 20_000, 2_000_000_000),
    ]  # fmt: skip
    back = template(256, *FLOW)[4:]
    back = struct.pack(">HH", 256, len(FLOW) + 2) + back
    back += struct.pack(">HHIHHI", 0x8001, 8, 29305, 0x8002, 8, 29305)
    both = message((2, back), (256, flow(10_440, 10) + struct.pack(">QQ", 20_880, 20)))
    flows, _ = imported(tmp_path / "both.pcap", exported(both))
    assert [f[:3] for f in flows] == [(0, 1, 10_000), (1, 0, 20_000)]


def test_interim_records_follow_each_other(tmp_path: Path) -> None:
    fields = (*FLOW, (153, 8))
    rows = [flow(10_440, 10) + struct.pack(">Q", (START_S + 10 * n) * 1000) for n in range(1, 7)]
    flows, _ = imported(
        tmp_path / "a.pcap", exported(message((2, template(256, *fields)), (256, b"".join(rows))))
    )
    assert [f[3] for f in flows] == [n * 10**10 for n in range(6)]


def test_the_least_sampled_exporter_counts_and_the_first_of_equals(tmp_path: Path) -> None:
    def of(rate: int, octets: int) -> bytes:
        fields = (*FLOW, (34, 4))
        row = flow(octets, 10) + struct.pack(">I", rate)
        return message((2, template(256, *fields)), (256, row))

    frames = [
        (i, udp(f"192.0.2.{i}", "192.0.2.9", 1, 2055, of(*pair)))
        for i, pair in enumerate([(4096, 1_484), (1, 1_000_440), (1, 500_440)], start=1)
    ]
    flows, _ = imported(tmp_path / "a.pcap", pcap(frames))
    assert flows == [(0, 1, 1_000_000, 0)]

    def readings(*chosen: tuple[int, bytes]) -> int:
        """First readings of a file: each shows its begin without a total."""
        without: list[int] = []

        def show(done: int, total: int | None) -> None:
            if total is None:
                without.append(done)

        (tmp_path / "b.pcap").write_bytes(pcap(chosen))
        import_flows(Source(tmp_path / "b.pcap", "netflow"), tmp_path / "out", show)
        return len(without)

    assert readings(*frames[1:]) == readings(frames[0]) == 1
    assert readings(*frames[:2]) == 2


def test_the_same_records_by_table_and_by_datagram(tmp_path: Path) -> None:
    rows = [flow(10_440 + 440 * n, 10, 1000 * (n // 3), 1 + n % 5) for n in range(12)]
    fields = [(f if f != 152 else 150, 4 if f == 152 else size) for f, size in FLOW]
    packed = b"".join(row[:-8] + struct.pack(">I", START_S + n // 3) for n, row in enumerate(rows))
    datagrams = exported(message((2, template(256, *fields)), (256, packed)))
    table = "ts,sa,da,sp,dp,pr,ipkt,ibyt\n" + "".join(
        f"{START_S + n // 3},10.0.0.{1 + n % 5},10.0.0.9,50000,4791,UDP,10,{10_440 + 440 * n}\n"
        for n in range(12)
    )
    by_datagram, _ = imported(tmp_path / "a.pcap", datagrams)
    by_table, _ = imported(tmp_path / "a.csv", table.encode())
    assert by_datagram == by_table
    assert len({f[3] for f in by_table}) == 12  # starts of a second are spread within it


def test_a_record_of_an_uptime_that_rolled_over(tmp_path: Path) -> None:
    fields = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4), (2, 4), (22, 4))
    ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    rows = b"".join(
        ends + struct.pack(">HHBIII", 50_000 + i, 4791, 17, 10_440, 10, uptime % 2**32)
        for i, uptime in enumerate([-2_000, 1_000])
    )
    sets = b"".join(
        struct.pack(">HH", n, 4 + len(d)) + d for n, d in ((0, template(300, *fields)), (300, rows))
    )
    data = struct.pack(">HHIIII", 9, 3, 5_000, START_S + 10, 0, 1) + sets
    flows, _ = imported(tmp_path / "a.pcap", exported(data))
    assert [f[3] for f in flows] == [0, 3_000_000_000]


def test_a_view_of_one_host_is_named(tmp_path: Path) -> None:
    frames = [roce(A, f"10.0.0.{n}", 0x0A, n, 100, n) for n in range(2, 22)]
    frames += [roce("10.0.0.9", A, 0x0A, 1, 100, 50)]
    (tmp_path / "a.pcap").write_bytes(pcap(list(enumerate(frames))))
    source = Source(tmp_path / "a.pcap", "roce")
    _, census = import_flows(source, tmp_path / "out", lambda *_: None)
    problem = census.coverage(64).problem
    assert problem is not None
    assert "a capture at one host" in problem.why


def test_hosts_are_no_formulas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("src,dst,bytes,start_us\n=HYPERLINK(1),+b,10,1\n@c,d,10,2\n")
    source = Source(tmp_path / "a.csv", "csv")
    import_flows(source, tmp_path / "out", lambda *_: None)
    lines = (tmp_path / "out/hosts.csv").read_text().splitlines()
    assert sorted(lines[1:]) == ["'+b,h0", "'=HYPERLINK(1),h1", "'@c,h2", "d,h3"]


def test_mutated_captures_keep_the_balance(tmp_path: Path) -> None:
    """Whatever is flipped: every frame and record is taken or left out by a reason."""
    rng = Random(7)
    options = message((3, template(300, (149, 4), (34, 4), scopes=1)), (300, bytes(7) + b"\x09"))
    good = [
        pcap(list(enumerate([*write_of(8), *WRAPPED.values()]))),
        exported(options, message((2, template(256, *FLOW)), (256, flow(10_440, 10)))),
    ]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(400):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(24, len(data))] = rng.randrange(256)
        try:
            imported(tmp_path / "m.pcap", bytes(data))
            outcomes["read"] += 1
        except BalanceError:
            raise
        except ConfigError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 20


def test_a_reader_that_loses_something_fails() -> None:
    tally = Tally()
    tally.came("frames", 3)
    tally.take("frames")
    with pytest.raises(BalanceError, match="2 are unaccounted"):
        tally.check()
    tally.leave_out("frames", "broken", count=2)
    tally.check()
