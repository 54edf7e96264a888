"""Big-endian fields of a datagram, one after the other; nothing is read beyond its end."""

from __future__ import annotations

from dcqcn_gym.core.errors import DeviceError


class DatagramError(DeviceError):
    """A datagram is not what it claims to be; it is left out as a whole."""


class Fields:
    """What is left of some bytes; ``what`` names them in errors."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._at, self._what = data, 0, what

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self._data) - self._at

    def take(self, length: int) -> bytes:
        """Return the next bytes; raise DatagramError if there are fewer."""
        if length > self.left:
            raise DatagramError(
                f"{self._what}: {length} bytes were announced at byte {self._at}, {self.left} are "
                "left"
            )
        self._at += length
        return self._data[self._at - length : self._at]

    def peek(self, length: int = 1, at: int = 0) -> int:
        """Return the unsigned number ``at`` bytes ahead without stepping over it; 0 if cut off."""
        place = self._at + at
        return int.from_bytes(self._data[place : place + length], "big")

    def number(self, length: int) -> int:
        """Return the next unsigned number of so many bytes."""
        return int.from_bytes(self.take(length), "big")

    def within(self, length: int, what: str) -> Fields:
        """Return the next bytes as fields of their own."""
        return Fields(self.take(length), what)

    def end(self) -> None:
        """Raise DatagramError if anything is left."""
        if self.left:
            raise DatagramError(f"{self._what}: {self.left} bytes are left over")
