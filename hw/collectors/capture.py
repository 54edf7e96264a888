"""A pcap file of the datagrams that a collector took, which `dcqcn-gym traffic` reads."""

from __future__ import annotations

import ipaddress
import struct
import time
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError

_NANOSECONDS, _ETHERNET = 0xA1B23C4D, 1
_COLLECTOR = {4: ipaddress.ip_address("127.0.0.1"), 6: ipaddress.ip_address("::1")}


class Capture:
    """The file is only ever added to; it begins with its header."""

    def __init__(self, path: Path) -> None:
        """Raise ConfigError if the file cannot be made, or is something else's."""
        head = struct.pack("<IHHiIII", _NANOSECONDS, 2, 4, 0, 0, 1 << 18, _ETHERNET)
        try:
            self._file = path.open("a+b", buffering=0)
            self._file.seek(0)
            found = self._file.read(len(head))
            if not found:
                self._file.write(head)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written ({error.strerror or error})") from None
        if found not in (b"", head):
            raise ConfigError(f"{path}: not a capture of this command; name another file")

    def add(self, data: bytes, sender: str, port: int) -> None:
        """Add a datagram that came now from an exporter's address to the collector's port."""
        source = ipaddress.ip_address(sender.partition("%")[0])
        target = _COLLECTOR[source.version]
        udp = struct.pack(">HHHH", port, port, 8 + len(data), 0) + data
        if source.version == 4:
            kind = 0x0800
            head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
        else:
            kind = 0x86DD
            head = struct.pack(">IHBB", 6 << 28, len(udp), 17, 64)
        frame = bytes(12) + struct.pack(">H", kind) + head + source.packed + target.packed + udp
        seconds, rest = divmod(time.time_ns(), 10**9)
        length = len(frame)
        self._file.write(struct.pack("<IIII", seconds, rest, length, length) + frame)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
