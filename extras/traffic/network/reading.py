"""Readers: neighbours from ``lldpctl -f json``, SONiC's minigraph, and GraphML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.extras.traffic.network.found import Found, gbps_of

MOST_BYTES = 64 * 2**20
_HOSTS = re.compile(r"host|server|gpu|station|compute|storage|endpoint|nic\b", re.IGNORECASE)
_ROLES = ("role", "type", "kind", "device_type", "devicetype")
_SPEEDS = ("gbps", "speed", "bandwidth", "linkspeedraw", "linkspeed", "capacity", "rate")


def read_networks(paths: Sequence[Path]) -> Found:
    """Read files of one network; raise :class:`ConfigError` for what is none of the three forms."""
    found = Found()
    for path in paths:
        data = read_file(path, MOST_BYTES)
        if data.lstrip()[:1] == b"{":
            _read_lldp(path, data, found)
        else:
            _read_xml(path, data, found)
    return found


def _read_lldp(path: Path, data: bytes, found: Found) -> None:
    """Take the neighbours of the device that the file is named after."""
    try:
        whole = parse_json(data)
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    lldp = whole.get("lldp") if isinstance(whole, dict) else None
    if not isinstance(lldp, dict):
        raise ConfigError(f"{path}: has no 'lldp'; expected what `lldpctl -f json` prints")
    own = path.name.partition(".")[0]
    for name, about in _named(lldp.get("interface")):
        chassis = next(_named(about.get("chassis")), None)
        if chassis is None:
            found.tally.note("interfaces have no neighbour", name)
            continue
        peer, said = chassis
        host = _station(said)
        if host is not None:
            found.is_host[peer] = host
        port = about.get("port")
        speed = _inside(port, "auto-negotiation", "current")
        found.link(own, peer, gbps_of(speed) if speed else None, own)


def _named(given: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, table) of lldpctl's lists and tables, which it prints in either way."""
    for table in given if isinstance(given, list) else [given]:
        if not isinstance(table, dict):
            continue
        if isinstance(ident := table.get("id"), dict):  # a device without a name
            yield str(ident.get("value", "?")), table
        else:
            yield from ((str(k), v) for k, v in table.items() if isinstance(v, dict))


def _station(chassis: dict[str, Any]) -> bool | None:
    """Return whether a neighbour is a host by its capabilities; None where it tells none."""
    given = chassis.get("capability")
    rows = [row for row in (given if isinstance(given, list) else [given]) if isinstance(row, dict)]
    if not rows:
        return None
    return not any(row.get("type") in ("Bridge", "Router") and row.get("enabled") for row in rows)


def _inside(value: Any, *keys: str) -> str | None:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _read_xml(path: Path, data: bytes, found: Found) -> None:
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ConfigError(f"{path}: declares entities or a document type; expected neither")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ConfigError(
            f"{path}: neither JSON nor XML ({str(error)[:80]}); expected `lldpctl -f json`, "
            "SONiC's minigraph.xml or GraphML"
        ) from None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    if root.tag == "graphml":
        _read_graphml(root, found)
    elif root.tag == "DeviceMiniGraph":
        _read_minigraph(path, root, found)
    else:
        raise ConfigError(
            f"{path}: begins with {quote(root.tag)}; expected graphml or DeviceMiniGraph"
        )


def _read_minigraph(path: Path, root: ElementTree.Element, found: Found) -> None:
    for link in root.iter("DeviceLinkBase"):
        kind = (link.findtext("ElementType") or "DeviceInterfaceLink").strip()
        ends = [(link.findtext(tag) or "").strip() for tag in ("StartDevice", "EndDevice")]
        if kind != "DeviceInterfaceLink":
            found.tally.note("links are no cables of the fabric", kind)
        elif not all(ends):
            found.tally.note("links lack an end", " ".join(ends))
        else:
            speed = (link.findtext("Bandwidth") or "").strip()
            found.link(ends[0], ends[1], gbps_of(speed) if speed else None, str(path))
    for device in root.iter("Device"):
        name, kind = (device.findtext(tag) or "" for tag in ("Hostname", "ElementType"))
        if name and kind:
            found.is_host[name.strip()] = kind.strip().endswith("Server")


def _read_graphml(root: ElementTree.Element, found: Found) -> None:
    keys = {key.get("id"): (key.get("attr.name") or "").lower() for key in root.iter("key")}

    def values(of: ElementTree.Element) -> dict[str, str]:
        rows = ((keys.get(d.get("key"), d.get("key") or ""), d.text or "") for d in of.iter("data"))
        return {name.lower(): text.strip() for name, text in rows}

    names: dict[str, str] = {}
    used: set[str] = set()
    for node in root.iter("node"):
        said = values(node)
        ident = node.get("id") or ""
        name = said.get("name") or said.get("label") or ident
        names[ident] = ident if name in used else name
        used.add(names[ident])
        role = next((said[key] for key in _ROLES if key in said), None)
        if role is not None:
            found.is_host[names[ident]] = bool(_HOSTS.search(role))
    for edge in root.iter("edge"):
        ends = [edge.get("source") or "", edge.get("target") or ""]
        if any(end not in names for end in ends):
            found.tally.note("edges end at nodes that are not there", " ".join(ends))
            continue
        said = values(edge)
        speed = next((said[key] for key in _SPEEDS if key in said), "")
        found.link(names[ends[0]], names[ends[1]], gbps_of(speed), "graph")
