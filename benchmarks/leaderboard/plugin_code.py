"""The code of an entry: the files of its plug-in, and the packages that it ran with."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.registry import is_file
from dcqcn_gym.tuners import TUNERS

MOST_BYTES = 2**28
OURS = "dcqcn-gym"

_INSTALLERS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""What an installer adds to a package's metadata: another one writes other bytes."""
_LINE = re.compile(r"([A-Za-z0-9_.-]+)==(\S+)(?: +# files sha256:([0-9a-f]{64}))?")


def plugin_files(tuner: str, include: Sequence[Path]) -> dict[str, bytes]:
    """Return a plug-in's files by their names below the folder that is put on the import path.

    Nothing for a built-in tuner; the file, with those of ``include`` beside it; or what an
    installed package holds. Raises ConfigError.
    """
    if tuner in TUNERS.builtin:
        if include:
            raise ConfigError(f"tuner {tuner!r} is built in; it takes no --include")
        return {}
    beside = {path.name: read_file(path, MOST_BYTES) for path in include}
    if is_file(tuner):
        path = Path(tuner.rpartition(":")[0])
        return {path.name: read_file(path, MOST_BYTES), **beside}
    return {**_installed(tuner), **beside}


def _owner(tuner: str) -> Distribution:
    TUNERS.check_name(tuner)
    found = [point.dist for point in entry_points(group=TUNERS.group) if point.name == tuner]
    if not found or found[0] is None:
        raise ConfigError(f"tuner {tuner!r} belongs to no package; name its file: FILE.py:CLASS")
    return found[0]


def _installed(tuner: str) -> dict[str, bytes]:
    """Return what the package of an entry point has installed, without the installer's notes."""
    owner = _owner(tuner)
    advice = "install it: pip install --no-deps FOLDER"
    if owner.files is None:
        raise ConfigError(f"package {owner.name!r} has no list of its files; {advice}")
    if json.loads(owner.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        raise ConfigError(f"package {owner.name!r} is installed as editable; {advice}")
    kept = [
        path
        for path in owner.files
        if ".." not in path.parts and path.suffix != ".pyc" and path.name not in _INSTALLERS
    ]
    return {path.as_posix(): read_file(Path(str(path.locate())), MOST_BYTES) for path in kept}


def requirements(tuner: str) -> str:
    """Return the packages that an entry ran with, pinned, each with a digest of its files.

    They are ours, and what it and the plug-in's package need, as far as it is installed. That
    package is in the submission. pip reads the text; :func:`differing_packages` the digests.
    """
    installed = tuner not in TUNERS.builtin and not is_file(tuner)
    own = [_owner(tuner).name] if installed else []
    lines = [_pinned(found) for found in _needed([OURS, *own]) if found.name not in own]
    return "".join(f"{line}\n" for line in sorted(lines, key=str.lower))


def _needed(names: Sequence[str]) -> Iterator[Distribution]:
    """Yield the distributions of some names and whatever they need, each once."""
    left, seen = list(names), set()
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:  # for another platform or Python
            continue
        yield found
        for text in found.requires or ():
            words, _, marker = text.partition(";")
            match = re.match(r"[A-Za-z0-9_.-]+", words)
            if match and "extra" not in marker:
                left.append(match[0])


def _pinned(found: Distribution) -> str:
    line = f"{found.name}=={found.version}"
    digest = None if found.name == OURS else _digest(found)  # ours is compiled on each machine
    return line if digest is None else f"{line} # files sha256:{digest}"


def _digest(found: Distribution) -> str | None:
    """Return one SHA-256 for all files that a package brought; None if it does not say."""
    own = [
        f"{path.as_posix()} {path.hash.value}"
        for path in found.files or ()
        if path.hash is not None and ".." not in path.parts and path.name not in _INSTALLERS
    ]
    return hashlib.sha256("\n".join(sorted(own)).encode()).hexdigest() if own else None


def differing_packages(text: str) -> list[str]:
    """Return in words what is not installed here as a submission's requirements have it."""
    found = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigError(f"requirements.txt: {quote(line)} is no pinned package")
        name, version, digest = match.groups()
        try:
            here = distribution(name)
        except PackageNotFoundError:
            found.append(f"{name} {version} is not installed")
            continue
        if here.version != version:
            found.append(f"{name} is {here.version}, not {version}")
        elif digest is not None and digest != _digest(here):
            found.append(f"{name} {version} is another build")
    return found
