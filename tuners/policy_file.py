"""Read a policy file that may come from anybody: sizes are checked before data is unpacked.

An ``.npz`` is a zip archive of ``.npy`` members. numpy's own reader would unpack members of any
size, and its messages advise to allow pickles; here every member has a bound, and only plain
numbers are taken.
"""

from __future__ import annotations

import math
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import ConfigError, in_one_line, quote
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.sums import count

MOST_BYTES = 2**26
"""Of the file, and of all its arrays together, unless another bound is given: 64 MiB, 16 million
weights."""
MOST_MEMBERS = 256


class _NoPolicyError(ValueError):
    """Says in words of ours what is wrong."""


def read_arrays(path: Path, most: int = MOST_BYTES) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a policy file by name; raise ConfigError that begins with its path.

    ``most`` bounds the bytes of the file, and those of all its arrays together.
    """
    data = read_file(path, most)
    if data[:6] == b"\x93NUMPY":
        raise ConfigError(
            f"{path} is not a policy file: it holds a single array (.npy); expected an .npz as "
            "`dcqcn-gym train` writes it"
        )
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = archive.infolist()
            _check_sizes(members, most)
            return {m.filename.removesuffix(".npy"): _array(archive, m, most) for m in members}
    except _NoPolicyError as error:
        raise ConfigError(f"{path} is not a policy file: {error}") from None
    except Exception as error:  # whatever damaged bytes make zipfile, zlib and numpy raise
        raise ConfigError(f"{path} is not a policy file: damaged ({in_one_line(error)})") from None


def _check_sizes(members: list[zipfile.ZipInfo], most: int) -> None:
    if len(members) > MOST_MEMBERS:
        raise _NoPolicyError(f"it has {len(members)} members; expected at most {MOST_MEMBERS}")
    total = count(member.file_size for member in members)
    if total > most:
        raise _NoPolicyError(f"it unpacks to {total} bytes; expected at most {most}")
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise _NoPolicyError("a member is there twice")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> npt.NDArray[Any]:
    name = quote(member.filename)
    with archive.open(member) as packed:
        data = BytesIO(packed.read(most + 1))  # a lying directory does not unpack more
    version = np.lib.format.read_magic(data)
    if version not in ((1, 0), (2, 0)):
        raise _NoPolicyError(f"{name} has version {version}; expected 1.0 or 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else (
        np.lib.format.read_array_header_2_0
    )  # fmt: skip
    shape, fortran, dtype = read(data)
    if dtype.kind not in "fu" or dtype.itemsize > 8:
        raise _NoPolicyError(f"{name} holds values of type {quote(str(dtype))}; expected numbers")
    rest = data.read()
    if len(shape) > 2 or math.prod(shape) * dtype.itemsize != len(rest):
        raise _NoPolicyError(
            f"{name} says to have shape {quote(shape)}, but holds {len(rest)} bytes"
        )
    flat = np.frombuffer(rest, dtype=dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
