"""Find ns-3: an installation given by path, or the libraries of the ``ns3`` wheel in our cache.

The wheel is taken without its Python dependencies, and of it only the headers and the libraries
that our program links (ns-3's own Python bindings compile for minutes and are not needed).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.core.errors import BackendError, ConfigError

WHEEL_VERSION = "3.44.post0"
_WHEEL_MB = 69
_LIBRARIES = ("network", "stats", "core")
_WHEEL_MEMBERS = ("ns3/include/ns3/", "ns3-")
_WHEEL_LIBRARIES = tuple(f"libns3.44-{name}.so" for name in _LIBRARIES)
# what the libraries above need beside themselves, by the start of the file name
_WHEEL_BESIDE = ("libgsl-", "libgslcblas-", "libsqlite3-")

Say = Callable[[str], None]
"""Where progress goes: one short line a call."""


@dataclass(frozen=True)
class Ns3Install:
    """An ns-3 to compile against: its headers, and the files of the libraries we link."""

    root: Path
    include: Path
    libraries: tuple[Path, ...]
    version: str
    source: str
    """``"wheel"`` or ``"path"``."""

    def fingerprint(self) -> str:
        """Return a digest of what the build sees of this ns-3; it names the build."""
        digest = hashlib.sha256(self.version.encode())
        for library in self.libraries:
            stat = library.stat()
            digest.update(f"{library}:{stat.st_size}:{stat.st_mtime_ns}".encode())
        return digest.hexdigest()


def cache_dir() -> Path:
    """Return where downloads and builds are stored: DCQCN_GYM_CACHE, or the user's cache folder."""
    if own := os.environ.get("DCQCN_GYM_CACHE"):
        return Path(own).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "dcqcn-gym"


def offline() -> bool:
    """True if DCQCN_GYM_OFFLINE forbids downloads."""
    return os.environ.get("DCQCN_GYM_OFFLINE", "") not in ("", "0")


@contextlib.contextmanager
def locked(path: Path, say: Say) -> Iterator[None]:
    """Hold an exclusive lock on ``path``, so that one process at a time fills the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another process is building; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def find_ns3(path: str | Path | None = None, *, say: Say, fetch: bool = True) -> Ns3Install:
    """Return the ns-3 to use: ``path``, else DCQCN_GYM_NS3, else the wheel in the cache.

    The wheel is downloaded if it is not there and ``fetch`` allows it. Raises
    :class:`ConfigError` for a path without ns-3, :class:`BackendError` if nothing can be had.
    """
    given = path or os.environ.get("DCQCN_GYM_NS3") or None
    if given is not None:
        return _installed(Path(given).expanduser().resolve(), "path")
    cached = cached_wheel()
    if cached is not None:
        return cached
    if not fetch:
        raise BackendError("ns-3 is not in the cache; get it with: dcqcn-gym ns3 build")
    return fetch_wheel(say)


def cached_wheel() -> Ns3Install | None:
    """Return the unpacked wheel in the cache, or None."""
    root = _wheel_root()
    return _installed(root, "wheel") if (root / "complete").exists() else None


def fetch_wheel(say: Say) -> Ns3Install:
    """Download the ``ns3`` wheel and unpack headers and libraries into the cache.

    Raises :class:`BackendError` if DCQCN_GYM_OFFLINE forbids it or the installer fails.
    """
    root = _wheel_root()
    with locked(cache_dir() / "ns3" / ".lock", say):
        found = cached_wheel()
        if found is not None:
            return found
        if offline():
            raise BackendError(
                f"ns-3 is not in the cache and DCQCN_GYM_OFFLINE=1 forbids the download of the "
                f"ns3 wheel ({_WHEEL_MB} MB); allow it once, or name an ns-3 installation with "
                f"DCQCN_GYM_NS3=DIR"
            )
        say(f"downloading the ns3 wheel {WHEEL_VERSION} ({_WHEEL_MB} MB)")
        with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
            wheel = _download(Path(scratch))
            say("unpacking headers and libraries")
            unpacked = Path(scratch) / "unpacked"
            _unpack(wheel, unpacked)
            (unpacked / "complete").write_text(f"{wheel.name}\n", encoding="utf-8")
            unpacked.rename(root)
    return _installed(root, "wheel")


def _wheel_root() -> Path:
    return cache_dir() / "ns3" / f"wheel-{WHEEL_VERSION}"


def _download(folder: Path) -> Path:
    """Fetch the wheel into ``folder`` by pip; the wheel's Python tag does not matter to C++."""
    if importlib.util.find_spec("pip") is None:
        raise BackendError(
            "fetching ns-3 needs pip in this Python; install it with: python -m ensurepip"
        )
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    if sys.version_info[:2] != (3, 11):
        command += ["--python-version", "3.11"]
    command += ["-d", str(folder), f"ns3=={WHEEL_VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("ns3-*.whl"))
    if done.returncode != 0 or not wheels:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise BackendError(f"pip could not download ns3=={WHEEL_VERSION}; its last words:\n{tail}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Unpack what we compile and link against, and the licence, from the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            leaf = name.rpartition("/")[2]
            in_lib = name.startswith("ns3/lib64/")
            wanted = leaf in _WHEEL_LIBRARIES or leaf.startswith(_WHEEL_BESIDE)
            if name.startswith(_WHEEL_MEMBERS) or (in_lib and wanted):
                archive.extract(name, target)


def _installed(root: Path, source: str) -> Ns3Install:
    """Look for headers and libraries below ``root``: a wheel, a prefix or an ns-3 build folder."""
    for base in (root, root / "ns3", root / "build"):
        include = base / "include"
        if not (include / "ns3" / "core-module.h").exists():
            continue
        for folder in (base / "lib64", base / "lib", *sorted(base.glob("lib/*-linux-gnu"))):
            libraries = _libraries(folder)
            if libraries:
                return Ns3Install(root, include, libraries, _version(libraries[-1]), source)
    raise ConfigError(
        f"no ns-3 under {str(root)!r}: expected include/ns3/core-module.h and "
        f"lib*/libns3*-core*.so below it, its ns3/ or its build/ folder"
    )


def _libraries(folder: Path) -> tuple[Path, ...]:
    """Return the files of the libraries we link, or nothing if one is missing."""
    found = []
    for name in _LIBRARIES:
        files = sorted(
            f for f in folder.glob("libns3*.so") if re.search(rf"-{name}(-[a-z]+)?\.so$", f.name)
        )
        if not files:
            return ()
        found.append(files[0])
    return tuple(found)


def _version(core: Path) -> str:
    """Return the version in the name of a library: 3.44 of libns3.44-core.so, 3-dev."""
    match = re.match(r"libns(3[.-][0-9a-z]+)-", core.name)
    return match.group(1) if match else "3 (version unknown)"
