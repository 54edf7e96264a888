"""NetFlow v5, v9 (RFC 3954) and IPFIX (RFC 7011): flow records, but for v5 by templates.

v9 and IPFIX have sets; a template set says which fields the records of a data set have and how
long they are, an options template which of them describe the exporter: its sampling is read there
(RFC 5476; of v9 fields 34, 48 to 50). Data whose template comes later wait for it. What a set
contradicts is no datagram. Everything is kept per exporter and observation domain, and bounded.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dcqcn_gym.core.flow_export.fields import DatagramError, Fields
from dcqcn_gym.core.flow_export.packets import IP_HEADERS, RocePacket, classify
from dcqcn_gym.core.tally import Tally

MOST_TEMPLATES = 1024
MOST_FIELDS = 256
MOST_WAITING = 4096
"""Data sets that wait for their template."""
RECORDS = "records"
"""The unit in which datagrams are accounted for."""
_VARIABLE = 0xFFFF
_V5, _V9, _IPFIX = 5, 9, 10
_V5_HEADER, _V5_RECORD = struct.Struct(">HHIIIIBBH"), struct.Struct(">4s4s4sHHIIIIHHBBBBHHBBH")
_FIRST_DATA = 256
_SETS: Mapping[int, tuple[int, int]] = {_V9: (0, 1), _IPFIX: (2, 3)}
"""Version -> numbers of template sets and of option template sets."""

OCTETS, PACKETS, PROTOCOL, SOURCE_PORT, SOURCE4, TARGET_PORT, TARGET4 = 1, 2, 4, 7, 8, 11, 12
SOURCE6, TARGET6, RATE_V9, RATE = 27, 28, 34, 305
_OCTETS = (OCTETS, 23, 352)
"""Bytes since the last record: as they came in, went out (23), at layer 2 (352)."""
_PACKETS = (PACKETS, 24)
_TOTAL_OCTETS, _TOTAL_PACKETS = 85, 86
_SPACE, _SELECTOR, _SAMPLER, _SAMPLER_RATE = 306, 302, 48, 50
_FRAME, _FRAME_SIZE = 315, 312
_REVERSE = 29305
"""Enterprise of fields that describe the way back of a flow (RFC 5103)."""
_BACK = 1 << 16
FIRST_UPTIME, LAST_UPTIME = 22, 21
"""Start and end of a flow in ms since the exporter was started; begins anew after 49.7 days."""
_ROLL_OVER_MS = 1 << 32
_STARTS: Mapping[int, int] = {150: 1_000_000_000, 152: 1_000_000, 154: 0, 156: 0}
"""Start of a flow: field -> ns of its unit since 1970; 0: 64 bits as in NTP, since 1900."""
_ENDS: Mapping[int, int] = {151: 1_000_000_000, 153: 1_000_000, 155: 0, 157: 0}
_SEEN_AT: Mapping[int, int] = {322: 1_000_000_000, 323: 1_000_000, 324: 0, 325: 0}
"""When a packet was seen."""
_NTP_S = 2_208_988_800
"""Seconds from 1900 to 1970."""

IPFIX_TEMPLATE: Sequence[tuple[int, int]] = (
    (SOURCE4, 4), (TARGET4, 4), (SOURCE_PORT, 2), (TARGET_PORT, 2), (PROTOCOL, 1), (OCTETS, 8),
    (PACKETS, 8),
)  # fmt: skip
"""Fields of the records that this module makes, with their lengths."""

_Field = tuple[int, int]
_Source = tuple[str, int]
"""Exporter and observation domain."""


class _Template(NamedTuple):
    fields: tuple[_Field, ...]
    options: bool = False


class _Clock(NamedTuple):
    """What a datagram's header says of time."""

    export_ns: int
    uptime_ms: int = 0
    """0: it says nothing of it."""


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
    end_ns: int | None = None
    resolution_ns: int = 1
    """The unit of the start."""
    total: bool = False
    """Whether octets and packets are those since the flow began, not since the last record."""


@dataclass
class TemplateReader:
    """Reads the datagrams of any number of exporters."""

    sampling: int = 1
    """The rate of records whose exporter announces none."""
    tally: Tally = field(default_factory=Tally)
    """Records that came, and those left out by reason."""
    rates: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """Exporter, domain and selector (0: all of the domain) -> announced rate."""
    unannounced: int = 0
    """Records whose sampling rate neither they nor an option announced."""
    _templates: dict[tuple[str, int, int], _Template] = field(default_factory=dict)
    _waiting: deque[tuple[tuple[str, int, int], bytes, _Clock]] = field(default_factory=deque)

    def parse(self, data: bytes, exporter: str) -> list[FlowRecord]:
        """Return the records of a datagram, and of earlier ones that its templates explain.

        Raises DatagramError, which says why, if it is none; templates and rates count once the
        whole datagram is right.
        """
        fields = Fields(data, "NetFlow datagram")
        version = fields.number(2)
        if version == _V5:
            return self._records_of_v5(data)
        if version not in _SETS:
            raise DatagramError(f"NetFlow datagram: version {version}; expected 5, 9 or 10")
        length = fields.number(2)
        if version == _IPFIX and length != len(data):
            raise DatagramError(f"IPFIX message: it says {length} bytes and has {len(data)}")
        uptime_ms = fields.number(4) if version == _V9 else 0
        clock = _Clock(fields.number(4) * 1_000_000_000, uptime_ms)
        fields.take(4)
        domain = fields.number(4)
        fresh = dict(self._templates)
        sets: list[tuple[tuple[str, int, int], bytes, _Clock]] = []
        while fields.left:
            number, size = fields.number(2), fields.number(2)
            if size < 4:
                raise DatagramError(f"NetFlow set: a length of {size}; expected 4 or more")
            body = fields.within(size - 4, f"NetFlow set {number}")
            if number in _SETS[version]:
                options = number == _SETS[version][1]
                _read_templates(body, version, (exporter, domain), fresh, options)
            elif number >= _FIRST_DATA:
                sets.append(((exporter, domain, number), body.take(body.left), clock))
        parsed, waiting = _parsed_sets([*self._waiting, *sets], fresh)
        self._templates = fresh
        self._waiting = deque(waiting)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._left_out("data sets whose template did not come in time")
        return self._records(parsed)

    def end(self) -> None:
        """Count the data sets whose template never came as left out."""
        for _ in self._waiting:
            self._left_out("data sets without a template")
        self._waiting.clear()

    def _left_out(self, reason: str) -> None:
        self.tally.came(RECORDS)
        self.tally.leave_out(RECORDS, reason)

    def _records(
        self, parsed: list[tuple[_Source, bool, Mapping[int, bytes], _Clock]]
    ) -> list[FlowRecord]:
        found = []
        for source, options, values, clock in parsed:
            if options:
                self._announce(source, values)
                continue
            for record in self._flows(source, values, clock):
                if isinstance(record, str):
                    self._left_out(record)
                else:
                    self.tally.came(RECORDS)
                    found.append(record)
        return found

    def _announce(self, source: _Source, values: Mapping[int, bytes]) -> None:
        rate = _rate_of(values)
        if rate:
            selector = _number(values, _SELECTOR, _SAMPLER)
            self.rates[(*source, selector)] = rate
            self.rates.setdefault((*source, 0), rate)

    def _rate(self, source: _Source, values: Mapping[int, bytes]) -> int:
        rate = _rate_of(values)
        if not rate:
            selector = _number(values, _SELECTOR, _SAMPLER)
            rate = self.rates.get((*source, selector), self.rates.get((*source, 0), 0))
        if not rate:
            self.unannounced += 1
        return rate or self.sampling

    def _flows(
        self, source: _Source, values: Mapping[int, bytes], clock: _Clock
    ) -> Iterator[FlowRecord | str]:
        """Yield the flows of one record, the way back too, or why there is none."""
        if _FRAME in values:
            yield self._sampled_frame(source, values, clock)
            return
        sender = values.get(SOURCE4, values.get(SOURCE6, b""))
        receiver = values.get(TARGET4, values.get(TARGET6, b""))
        total = not any(name in values for name in _OCTETS)
        if not sender or not receiver:
            yield "records without a sender's and a receiver's address"
            return
        if total and _TOTAL_OCTETS not in values:
            yield "records without a number of bytes"
            return
        rate = self._rate(source, values)
        start_ns, unit_ns = _start(values, clock)
        end_ns = _moment(values, _ENDS, LAST_UPTIME, clock)[0]
        octets, packets = ((_TOTAL_OCTETS,), (_TOTAL_PACKETS,)) if total else (_OCTETS, _PACKETS)
        ports = _number(values, SOURCE_PORT), _number(values, TARGET_PORT)
        protocol = _number(values, PROTOCOL)
        yield FlowRecord(
            sender, receiver, *ports, protocol, _number(values, *octets),
            _number(values, *packets), rate, start_ns, end_ns, unit_ns, total,
        )  # fmt: skip
        back = _number(values, *(_BACK | name for name in octets))
        if back:
            yield FlowRecord(
                receiver, sender, *ports, protocol, back,
                _number(values, *(_BACK | name for name in packets)), rate, start_ns, end_ns,
                unit_ns, total,
            )  # fmt: skip

    def _sampled_frame(
        self, source: _Source, values: Mapping[int, bytes], clock: _Clock
    ) -> FlowRecord | str:
        """Return the flow of a sampled frame (RFC 7270): sFlow's way, by IPFIX."""
        try:
            packet = classify(values[_FRAME])
        except DatagramError:
            return "sampled frames that are broken"
        if not isinstance(packet, RocePacket):
            return packet
        when_ns, unit_ns = _moment(values, _SEEN_AT, 0, clock)
        return FlowRecord(
            packet.key[0], packet.key[1], packet.key[2], 4791, 17,
            packet.payload_bytes + IP_HEADERS, 1, self._rate(source, values),
            when_ns if when_ns is not None else clock.export_ns, None, unit_ns,
        )  # fmt: skip

    def _records_of_v5(self, data: bytes) -> list[FlowRecord]:
        """Return the records of a v5 datagram; DatagramError if its length is not theirs."""
        if len(data) < _V5_HEADER.size:
            raise DatagramError(f"NetFlow v5 datagram: {len(data)} bytes; its header has 24")
        _, count, uptime_ms, seconds, nanos, _, _, _, mode = _V5_HEADER.unpack_from(data)
        if len(data) != _V5_HEADER.size + count * _V5_RECORD.size:
            expected = _V5_HEADER.size + count * _V5_RECORD.size
            raise DatagramError(
                f"NetFlow v5 datagram: {count} records in {len(data)} bytes; expected {expected}"
            )
        clock = _Clock(seconds * 1_000_000_000 + nanos, uptime_ms)
        rate = mode & 0x3FFF
        found = []
        for row in _V5_RECORD.iter_unpack(data[_V5_HEADER.size :]):
            source, target, packets, octets = row[0], row[1], row[5], row[6]
            start_ns, end_ns = _since_start(row[7], clock), _since_start(row[8], clock)
            self.tally.came(RECORDS)
            self.unannounced += not rate
            found.append(FlowRecord(source, target, row[9], row[10], row[13], octets, packets,
                                    rate or self.sampling, start_ns, end_ns,
                                    1_000_000))  # fmt: skip
        return found


def _parsed_sets(
    sets: Sequence[tuple[tuple[str, int, int], bytes, _Clock]],
    templates: Mapping[tuple[str, int, int], _Template],
) -> tuple[
    list[tuple[_Source, bool, Mapping[int, bytes], _Clock]],
    list[tuple[tuple[str, int, int], bytes, _Clock]],
]:
    """Return the records of data sets as fields, options first, and the sets that must wait."""
    parsed: list[tuple[_Source, bool, Mapping[int, bytes], _Clock]] = []
    waiting = []
    for one in sets:
        (exporter, domain, number), data, clock = one
        template = templates.get((exporter, domain, number))
        if template is None:
            waiting.append(one)
            continue
        body = Fields(data, f"NetFlow set {number}")
        least = shortest_record(template.fields)
        while body.left >= least:
            if body.peek() == 0 and not any(data[len(data) - body.left :]):
                break  # what is zero to the end is padding
            values: dict[int, bytes] = {}
            for name, length in template.fields:
                size = length if length != _VARIABLE else _variable(body)
                values.setdefault(name, body.take(size))
            parsed.append(((exporter, domain), template.options, values, clock))
    return sorted(parsed, key=lambda one: not one[1]), waiting


def _number(values: Mapping[int, bytes], *names: int) -> int:
    """Return the first of some fields as a number; 0 if none is there."""
    return next((int.from_bytes(values[n], "big") for n in names if n in values), 0)


def _rate_of(values: Mapping[int, bytes]) -> int:
    """Return packets of which one is counted, as fields say; 0 if they do not.

    Of 305 and 306 an interval is taken and a space left out: (interval + space) / interval.
    """
    if RATE in values and _SPACE in values:
        interval = max(_number(values, RATE), 1)
        return max(1, round((interval + _number(values, _SPACE)) / interval))
    return _number(values, RATE, RATE_V9, _SAMPLER_RATE)


def _start(values: Mapping[int, bytes], clock: _Clock) -> tuple[int | None, int]:
    """Return when a flow began, from whichever field says so, and that field's unit in ns."""
    return _moment(values, _STARTS, FIRST_UPTIME, clock)


def _moment(
    values: Mapping[int, bytes], dates: Mapping[int, int], uptime: int, clock: _Clock
) -> tuple[int | None, int]:
    for name, unit_ns in dates.items():
        if (raw := values.get(name)) is None:
            continue
        found = int.from_bytes(raw, "big")
        if unit_ns:
            return found * unit_ns, unit_ns
        ns = ((found >> 32) - _NTP_S) * 1_000_000_000 + ((found & 0xFFFFFFFF) * 10**9 >> 32)
        return ns, 1
    if clock.uptime_ms and uptime in values:
        return _since_start(int.from_bytes(values[uptime], "big"), clock), 1_000_000
    return None, 1


def _since_start(uptime_ms: int, clock: _Clock) -> int:
    """Return a time in ms since the exporter's start as ns since 1970.

    It lies at most half of a roll-over from the export: 32 bits of ms begin anew.
    """
    before = (clock.uptime_ms - uptime_ms) % _ROLL_OVER_MS
    if before > _ROLL_OVER_MS // 2:
        before -= _ROLL_OVER_MS
    return clock.export_ns - before * 1_000_000


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
    who: _Source,
    known: dict[tuple[str, int, int], _Template],
    options: bool,
) -> None:
    """Add the templates of a set; one without fields withdraws (IPFIX)."""
    while body.left >= (6 if options else 4):
        number, count = body.number(2), body.number(2)
        if options and version == _V9:  # lengths in bytes: of the scope, and of the options
            scopes, count = count // 4, count // 4 + body.number(2) // 4
        elif options and count:
            scopes = body.number(2)
        else:
            scopes = 0
        if number < _FIRST_DATA and not (number == 0 and count == 0):  # padding is zeros
            raise DatagramError(f"NetFlow template {number}: expected a number from 256 on")
        if count > MOST_FIELDS:
            raise DatagramError(f"NetFlow template {number}: {count} fields; at most {MOST_FIELDS}")
        found = []
        for place in range(count):
            name, length = _field(body, version)
            if version == _V9 and length == _VARIABLE:
                raise DatagramError(f"NetFlow template {number}: v9 has no variable fields")
            if options and version == _V9 and place < scopes:
                name = -(1 << 17) - name  # numbers of scopes are others than those of fields
            found.append((name, length))
        if found and not shortest_record(found):
            raise DatagramError(f"NetFlow template {number}: records without a byte")
        key = (*who, number)
        known.pop(key, None)
        if found:
            known[key] = _Template(tuple(found), options)
        while len(known) > MOST_TEMPLATES:
            known.pop(next(iter(known)))


def _field(body: Fields, version: int) -> _Field:
    """Return a field's number and length; an enterprise's own are negative, or of the way back."""
    name, length = body.number(2), body.number(2)
    if version == _IPFIX and name & 0x8000:
        enterprise = body.number(4)
        own = name & 0x7FFF
        name = _BACK | own if enterprise == _REVERSE else -own - 1
    return name, length


def encode_ipfix(records: Sequence[FlowRecord], sequence: int, domain: int = 0) -> list[bytes]:
    """Return IPFIX messages of these records, each with its template, none above 1400 bytes."""
    template = _template_set(2)
    return [
        struct.pack(">HHIII", _IPFIX, 16 + len(template) + len(body), 0, sequence + i, domain)
        + template
        + body
        for i, body in enumerate(_data_sets(records, 1400 - 16 - len(template)))
    ]


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
