"""Readers: ``lldpctl -f json``, SONiC's ``config_db.json`` and minigraph, GraphML, HPCC's topology.

Ports of management and of a chassis's backplane are no links of the fabric and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.extras.traffic.exchange.hpcc_topology import parse_topology
from dcqcn_gym.extras.traffic.network.found import Found, gbps_of

MOST_BYTES = 64 * 2**20
_HOSTS = re.compile(r"host|server|gpu|station|compute|storage|endpoint|nic\b", re.IGNORECASE)
_MANAGEMENT = re.compile(r"(eth0|em0|fxp0|me0|mgmt|management|oob|ma1$|usb)", re.IGNORECASE)
"""Names of ports beside the fabric."""
_ASIC = re.compile(r"ASIC\d+", re.IGNORECASE)
_ROLES = ("role", "type", "kind", "device_type", "devicetype")
_SPEEDS = ("gbps", "speed", "bandwidth", "linkspeedraw", "linkspeed", "capacity", "rate")


def read_networks(paths: Sequence[Path]) -> Found:
    """Read files of one network; raise :class:`ConfigError` for what is none of the forms."""
    found = Found()
    for path in paths:
        data = read_file(path, MOST_BYTES)
        if data.lstrip()[:1] == b"{":
            _read_json(path, data, found)
        elif data.lstrip()[:1] == b"<":
            _read_xml(path, data, found)
        else:
            _read_hpcc(path, data, found)
    return found


def _read_json(path: Path, data: bytes, found: Found) -> None:
    """Take the neighbours of one device: LLDP's, or those that SONiC's configuration names."""
    try:
        whole = parse_json(data)
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    if isinstance(whole, dict) and isinstance(whole.get("lldp"), dict):
        _read_lldp(path, whole["lldp"], found)
    elif isinstance(whole, dict) and isinstance(whole.get("DEVICE_NEIGHBOR"), dict):
        _read_config_db(path, whole, found)
    else:
        raise ConfigError(
            f"{path}: has neither 'lldp' nor 'DEVICE_NEIGHBOR'; expected what `lldpctl -f json` "
            f"prints, or SONiC's config_db.json{other_use(path)}"
        )


def _read_lldp(path: Path, lldp: dict[str, Any], found: Found) -> None:
    """Take the neighbours of the device that the file is named after, one a port."""
    own = path.name.partition(".")[0]
    ports: dict[str, list[tuple[str, dict[str, Any], dict[str, Any]]]] = {}
    for name, about in _named(lldp.get("interface")):
        chassis = next(_named(about.get("chassis")), None)
        if chassis is None:
            found.leave_out("ports have no neighbour", f"{own} {name}")
        else:
            ports.setdefault(name, []).append((*chassis, about))
    for name, neighbours in ports.items():
        # a NIC's firmware and its host's lldpd may both answer; the host's has a name
        neighbours.sort(key=lambda one: "name" not in one[1] and one[0] == _ident(one[1]))
        for peer, _, _ in neighbours[1:]:
            found.leave_out("neighbours are a second agent on one port", f"{own} {name} {peer}")
        peer, said, about = neighbours[0]
        port = about.get("port")
        remote = _inside(port, "id", "value") or ""
        host = _station(said)
        if _is_management(name, remote, host):
            found.leave_out("ports are for management", f"{own} {name} {peer}")
            continue
        if host is not None:
            found.is_host[peer] = host
        speed = _inside(port, "auto-negotiation", "current")
        found.link(own, peer, gbps_of(speed) if speed else None, own)


def _is_management(port: str, remote: str, host: bool | None) -> bool:
    """Return whether a link is of management by the names of its ports.

    A server's own name says nothing: its first Ethernet port is often called eth0.
    """
    return bool(_MANAGEMENT.match(port) or (not host and _MANAGEMENT.match(remote)))


def _ident(chassis: dict[str, Any]) -> str | None:
    return _inside(chassis, "id", "value")


def _read_config_db(path: Path, whole: dict[str, Any], found: Found) -> None:
    """Take DEVICE_NEIGHBOR with the speeds of PORT and the roles of DEVICE_NEIGHBOR_METADATA."""

    def table(name: str) -> dict[str, dict[str, Any]]:
        given = whole.get(name)
        rows = given.items() if isinstance(given, dict) else ()
        return {str(key): row for key, row in rows if isinstance(row, dict)}

    local = table("DEVICE_METADATA").get("localhost", {})
    chassis = str(local.get("hostname") or path.name.partition(".")[0])
    own = f"{chassis}:{local['asic_name']}" if local.get("asic_name") else chassis
    found.is_host[own] = False
    ports, roles = table("PORT"), table("DEVICE_NEIGHBOR_METADATA")
    hosts = {name: bool(_HOSTS.search(str(row.get("type") or ""))) for name, row in roles.items()}
    for port, row in table("DEVICE_NEIGHBOR").items():
        peer = str(row.get("name") or "")
        if not peer:
            found.leave_out("neighbours have no name", f"{own} {port}")
        elif _is_management(port, str(row.get("port") or ""), hosts.get(peer)):
            found.leave_out("ports are for management", f"{own} {port} {peer}")
        else:
            if _ASIC.fullmatch(peer):  # of this chassis: each chassis has its ASIC0
                peer = f"{chassis}:{peer}"
            speed = str(ports.get(port, {}).get("speed") or "")
            found.link(own, peer, gbps_of(speed) if speed else None, own)
    found.is_host.update({name: hosts[name] for name, row in roles.items() if "type" in row})


def _read_hpcc(path: Path, data: bytes, found: Found) -> None:
    """Take the links of a topology of HPCC's simulator, without delays and loss."""
    if not all(word.isdigit() for word in data[:1000].split()[:3]):
        raise ConfigError(
            f"{path}: none of the forms of networks; expected `lldpctl -f json`, SONiC's "
            "config_db.json or minigraph.xml, GraphML, HPCC's topology.txt, or a run folder of "
            f"HPCC's simulator or htsim{other_use(path)}"
        )
    topology = parse_topology(path)
    if topology.announced != len(topology.links):
        found.tally.note("files say another number of links than they have",
                         f"{path.name}: {topology.announced}, and has "
                         f"{len(topology.links)}")  # fmt: skip
    switches = set(topology.switches)
    spoken = [("s" if node in switches else "n") + str(node) for node in range(topology.nodes)]
    found.is_host.update((name, name[0] == "n") for name in spoken)
    for link in topology.links:
        found.tally.note("delays of links are taken of a whole run folder alone")
        found.link(spoken[link.a], spoken[link.b], 8000 / link.ps_per_byte, str(path))


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
    elif root.tag == "system":
        nics = [net.get("speed") or "?" for net in root.iter("net")]
        raise ConfigError(
            f"{path}: NCCL's picture of one server, with {len(list(root.iter('gpu')))} GPUs and "
            f"{len(nics)} NICs ({', '.join(sorted(set(nics))) or 'no speed'} Mb/s); it has no "
            "switches: give those numbers as [servers] of a scenario, and the fabric by LLDP"
        )
    else:
        raise ConfigError(
            f"{path}: begins with {quote(root.tag)}; expected graphml or DeviceMiniGraph"
            + other_use(path)
        )


def _read_minigraph(path: Path, root: ElementTree.Element, found: Found) -> None:
    for link in root.iter("DeviceLinkBase"):
        kind = (link.findtext("ElementType") or "DeviceInterfaceLink").strip()
        ends = [(link.findtext(tag) or "").strip() for tag in ("StartDevice", "EndDevice")]
        if kind != "DeviceInterfaceLink":
            found.leave_out("links are no cables of the fabric", kind)
        elif not all(ends):
            found.leave_out("links lack an end", " ".join(ends))
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
            found.leave_out("edges end at nodes that are not there", " ".join(ends))
            continue
        said = values(edge)
        speed = next((said[key] for key in _SPEEDS if key in said), "")
        found.link(names[ends[0]], names[ends[1]], gbps_of(speed), "graph")
