"""What an agent's process may still do: a few capabilities, never more, nor the programs it starts.

Linux alone (capabilities(7), prctl(2)); done by the first thread before there are others, since
each has its own. A service manager may have taken them already; then nothing is left to give up.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Collection

from dcqcn_gym.core.errors import ConfigError, DeviceError, UnknownNameError

CAPABILITIES = {
    "CAP_DAC_OVERRIDE": 1,
    "CAP_NET_ADMIN": 12,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_ADMIN": 21,
}
"""Names that an agent's file may hold, and their numbers (linux/capability.h)."""
KEPT = {"nic": ("CAP_DAC_OVERRIDE", "CAP_NET_ADMIN"), "switch": ()}
"""What the agent of a kind keeps: debugfs belongs to root, `rdma statistic` asks for the other."""
_SETPCAP = 8
_VERSION_3 = 0x20080522
_NO_NEW_PRIVS, _CAPBSET_READ, _CAPBSET_DROP = 38, 23, 24


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


def keep_only(names: Collection[str]) -> None:
    """Give up every capability but ``names``, for this process and whatever it starts.

    Raises UnknownNameError for a name that no agent needs, and DeviceError if the kernel refuses.
    """
    for name in names:
        if name not in CAPABILITIES:
            raise UnknownNameError("capability", name, CAPABILITIES)
    if not sys.platform.startswith("linux"):
        raise ConfigError(f"capabilities can be given up on Linux, not on {sys.platform}")
    kept = {CAPABILITIES[name] for name in names}
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_VERSION_3, 0), (_Data * 2)()
    _call(libc.capget(ctypes.byref(header), data))
    if data[0].effective >> _SETPCAP & 1:
        number = 0
        while libc.prctl(_CAPBSET_READ, number, 0, 0, 0) >= 0:  # fails beyond the last one
            if number not in kept:
                _call(libc.prctl(_CAPBSET_DROP, number, 0, 0, 0))
            number += 1
    for word in range(2):
        mask = _mask(kept, word)
        data[word].permitted &= mask
        data[word].effective &= mask
        data[word].inheritable = 0
    _call(libc.capset(ctypes.byref(header), data))
    _call(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))


def _mask(kept: Collection[int], word: int) -> int:
    found = 0
    for number in kept:
        if number // 32 == word:
            found |= 1 << number % 32
    return found


def _call(result: int) -> None:
    if result < 0:
        why = os.strerror(ctypes.get_errno())
        raise DeviceError(f"capabilities cannot be given up ({why})")
