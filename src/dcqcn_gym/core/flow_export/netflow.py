"""NetFlow v5, v9 (RFC 3954) and IPFIX (RFC 7011): flow records, but for v5 by templates.

v9 and IPFIX have sets; a template set says which fields the records of a data set have and how
long they are. Data whose template was not seen yet is left out and counted. What a set contradicts
is no datagram. Templates are kept per exporter and observation domain, and bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dcqcn_gym.core.flow_export.fields import DatagramError, Fields

MOST_TEMPLATES = 1024
MOST_FIELDS = 256
_VARIABLE = 0xFFFF
_V5, _V9, _IPFIX = 5, 9, 10
_V5_HEADER, _V5_RECORD = struct.Struct(">HHIIIIBBH"), struct.Struct(">4s4s4sHHIIIIHHBBBBHHBBH")
_FIRST_DATA = 256
_SETS: Mapping[int, tuple[int, int]] = {_V9: (0, 1), _IPFIX: (2, 3)}
"""Version -> numbers of template sets and of option template sets."""

OCTETS, PACKETS, PROTOCOL, SOURCE_PORT, SOURCE4, TARGET_PORT, TARGET4 = 1, 2, 4, 7, 8, 11, 12
SOURCE6, TARGET6, RATE_V9, RATE = 27, 28, 34, 305
FIRST_UPTIME = 22
"""Start of a flow in ms since the exporter was started."""
_STARTS: Mapping[int, int] = {150: 1_000_000_000, 152: 1_000_000, 154: 0, 156: 0}
"""Start of a flow: field -> ns of its unit since 1970; 0: 64 bits as in NTP, since 1900."""
_NTP_S = 2_208_988_800
"""Seconds from 1900 to 1970."""

IPFIX_TEMPLATE: Sequence[tuple[int, int]] = (
    (SOURCE4, 4), (TARGET4, 4), (SOURCE_PORT, 2), (TARGET_PORT, 2), (PROTOCOL, 1), (OCTETS, 8),
    (PACKETS, 8),
)  # fmt: skip
"""Fields of the records that this module makes, with their lengths."""

_Field = tuple[int, int]


@dataclass(frozen=True)
class FlowRecord:
    """What an exporter says of one flow since its last record."""

    source: bytes
    target: bytes
    source_port: int
    target_port: int
    protocol: int
    octets: int
    """Bytes of IP packets that were counted, as they were sampled."""
    packets: int
    rate: int
    """Packets of which one was counted."""
    start_ns: int | None = None
    """When the flow began, since 1970, if the record says so."""


@dataclass
class TemplateReader:
    """Reads the datagrams of any number of exporters."""

    sampling: int = 1
    """The rate of records that tell none."""
    unknown_sets: int = 0
    """Data sets whose template was not known."""
    _templates: dict[tuple[str, int, int], tuple[_Field, ...]] = field(default_factory=dict)

    def parse(self, data: bytes, exporter: str) -> list[FlowRecord]:
        """Return the records of a datagram; raise DatagramError, which says why, if it is none.

        Templates count once the whole datagram is right.
        """
        fields = Fields(data, "NetFlow datagram")
        version = fields.number(2)
        if version == _V5:
            return _records_of_v5(data, self.sampling)
        if version not in _SETS:
            raise DatagramError(f"NetFlow datagram: version {version}; expected 5, 9 or 10")
        length = fields.number(2)
        if version == _IPFIX and length != len(data):
            raise DatagramError(f"IPFIX message: it says {length} bytes and has {len(data)}")
        booted_ns = 0
        if version == _V9:
            uptime_ms = fields.number(4)
            booted_ns = fields.number(4) * 1_000_000_000 - uptime_ms * 1_000_000
            fields.take(4)
        else:
            fields.take(8)
        domain = fields.number(4)
        fresh = dict(self._templates)
        records: list[FlowRecord] = []
        unknown = 0
        while fields.left:
            number, size = fields.number(2), fields.number(2)
            if size < 4:
                raise DatagramError(f"NetFlow set: a length of {size}; expected 4 or more")
            body = fields.within(size - 4, f"NetFlow set {number}")
            if number == _SETS[version][0]:
                _read_templates(body, version, (exporter, domain), fresh)
            elif number >= _FIRST_DATA:
                template = fresh.get((exporter, domain, number))
                unknown += template is None
                if template:
                    records += self._records(body, template, booted_ns)
        self._templates = fresh
        self.unknown_sets += unknown
        return records

    def _records(
        self, body: Fields, template: tuple[_Field, ...], booted_ns: int
    ) -> list[FlowRecord]:
        """Return the records of a data set; what is shorter than one at its end is padding."""
        least = shortest_record(template)
        found = []
        while body.left >= least:
            values = {}
            for number, length in template:
                size = length if length != _VARIABLE else _variable(body)
                values[number] = body.take(size)
            record = self._record(values, booted_ns)
            if record is not None:
                found.append(record)
        return found

    def _record(self, values: Mapping[int, bytes], booted_ns: int) -> FlowRecord | None:
        """Return a record of a flow with addresses and octets; None for any other."""

        def number(*names: int) -> int:
            return next((int.from_bytes(values[n], "big") for n in names if n in values), 0)

        source = values.get(SOURCE4, values.get(SOURCE6, b""))
        target = values.get(TARGET4, values.get(TARGET6, b""))
        if not source or not target or OCTETS not in values:
            return None
        return FlowRecord(
            source, target, number(SOURCE_PORT), number(TARGET_PORT), number(PROTOCOL),
            number(OCTETS), number(PACKETS), number(RATE, RATE_V9) or self.sampling,
            _start_ns(values, booted_ns),
        )  # fmt: skip


def _start_ns(values: Mapping[int, bytes], booted_ns: int) -> int | None:
    """Return when a flow began, from whichever field says so."""
    for name, unit_ns in _STARTS.items():
        if (raw := values.get(name)) is None:
            continue
        found = int.from_bytes(raw, "big")
        if unit_ns:
            return found * unit_ns
        return ((found >> 32) - _NTP_S) * 1_000_000_000 + ((found & 0xFFFFFFFF) * 10**9 >> 32)
    if booted_ns and FIRST_UPTIME in values:
        return booted_ns + int.from_bytes(values[FIRST_UPTIME], "big") * 1_000_000
    return None


def _records_of_v5(data: bytes, sampling: int) -> list[FlowRecord]:
    """Return the records of a v5 datagram; raise DatagramError if its length is not theirs."""
    if len(data) < _V5_HEADER.size:
        raise DatagramError(f"NetFlow v5 datagram: {len(data)} bytes; its header has 24")
    _, count, uptime_ms, seconds, nanos, _, _, _, mode = _V5_HEADER.unpack_from(data)
    if len(data) != _V5_HEADER.size + count * _V5_RECORD.size:
        raise DatagramError(f"NetFlow v5 datagram: {count} records in {len(data)} bytes; expected "
                            f"{_V5_HEADER.size + count * _V5_RECORD.size}")  # fmt: skip
    booted_ns = seconds * 1_000_000_000 + nanos - uptime_ms * 1_000_000
    found = []
    for row in _V5_RECORD.iter_unpack(data[_V5_HEADER.size :]):
        source, target, packets, octets, first_ms = row[0], row[1], row[5], row[6], row[7]
        start_ns = booted_ns + first_ms * 1_000_000
        found.append(FlowRecord(source, target, row[9], row[10], row[13], octets, packets,
                                mode & 0x3FFF or sampling, start_ns))  # fmt: skip
    return found


def shortest_record(template: Sequence[_Field]) -> int:
    """Return the fewest bytes of a record: a variable field has at least its length's byte."""
    found = 0
    for _, length in template:
        found += 1 if length == _VARIABLE else length
    return found


def _variable(body: Fields) -> int:
    """Return the length of a variable field (RFC 7011, section 7)."""
    short = body.number(1)
    return short if short < 255 else body.number(2)


def _read_templates(
    body: Fields,
    version: int,
    who: tuple[str, int],
    known: dict[tuple[str, int, int], tuple[_Field, ...]],
) -> None:
    """Add the templates of a set; one without fields withdraws (IPFIX)."""
    while body.left >= 4:
        number, count = body.number(2), body.number(2)
        if number < _FIRST_DATA and not (number == 0 and count == 0):  # padding is zeros
            raise DatagramError(f"NetFlow template {number}: expected a number from 256 on")
        if count > MOST_FIELDS:
            raise DatagramError(f"NetFlow template {number}: {count} fields; at most {MOST_FIELDS}")
        found = []
        for _ in range(count):
            name, length = body.number(2), body.number(2)
            if version == _IPFIX and name & 0x8000:
                body.take(4)  # of an enterprise: stepped over by its length
                name = -(name & 0x7FFF) - 1
            if version == _V9 and length == _VARIABLE:
                raise DatagramError(f"NetFlow template {number}: v9 has no variable fields")
            found.append((name, length))
        if found and not shortest_record(found):
            raise DatagramError(f"NetFlow template {number}: records without a byte")
        key = (*who, number)
        known.pop(key, None)
        if found:
            known[key] = tuple(found)
        while len(known) > MOST_TEMPLATES:
            known.pop(next(iter(known)))


def encode_ipfix(records: Sequence[FlowRecord], sequence: int, domain: int = 0) -> list[bytes]:
    """Return IPFIX messages of these records, each with its template, none above 1400 bytes."""
    template = _template_set(2)
    return [
        struct.pack(">HHIII", _IPFIX, 16 + len(template) + len(body), 0, sequence + i, domain)
        + template
        + body
        for i, body in enumerate(_data_sets(records, 1400 - 16 - len(template)))
    ]


def encode_v9(records: Sequence[FlowRecord], sequence: int, domain: int = 0) -> list[bytes]:
    """Return NetFlow v9 datagrams of these records, each with its template."""
    template = _template_set(0)
    return [
        struct.pack(">HHIIII", _V9, 1 + _rows(body), 0, 0, sequence + i, domain) + template + body
        for i, body in enumerate(_data_sets(records, 1400 - 20 - len(template)))
    ]


def _rows(data_set: bytes) -> int:
    return (len(data_set) - 4) // shortest_record(IPFIX_TEMPLATE)


def _template_set(number: int) -> bytes:
    fields = b"".join(struct.pack(">HH", *one) for one in IPFIX_TEMPLATE)
    body = struct.pack(">HH", _FIRST_DATA, len(IPFIX_TEMPLATE)) + fields
    return struct.pack(">HH", number, 4 + len(body)) + body


def _data_sets(records: Sequence[FlowRecord], most: int) -> list[bytes]:
    size = shortest_record(IPFIX_TEMPLATE)
    many = (most - 4) // size
    found = []
    for first in range(0, len(records), many):
        body = b"".join(
            struct.pack(">4s4sHHBQQ", r.source, r.target, r.source_port, r.target_port, r.protocol,
                        r.octets, r.packets)
            for r in records[first : first + many]
        )  # fmt: skip
        found.append(struct.pack(">HH", _FIRST_DATA, 4 + len(body)) + body)
    return found
