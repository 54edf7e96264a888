"""Which code this is: the distribution's version, and a digest of the engine's sources.

The version comes from git where the package is built (in an sdist from its metadata), so each
commit has its own; a checkout that has moved on since it was installed names the commit that it
is at. What is not committed shows in the engine's digest alone, which is compiled in: two engines
with the same digest give the same bytes.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_GIVEN = "DCQCN_GYM_VERSION"
"""The variable by which a process tells its workers."""


def _installed() -> str:
    for distribution in ("dcqcn-gym", "dcqcn-gym-agent"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "0+unknown"


def _commit(git: Path) -> str:
    """Return the commit of the checkout whose ``.git`` this is, "" where it cannot be read."""
    try:
        if git.is_file():  # of a further worktree
            git = git.parent / git.read_text().removeprefix("gitdir:").strip()
        common = git / "commondir"
        shared = git / common.read_text().strip() if common.exists() else git
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        if (shared / name).exists():
            return (shared / name).read_text().strip()
        found = re.search(rf"^(\w+) {re.escape(name)}$", (shared / "packed-refs").read_text(), re.M)
        return found[1] if found else ""
    except (OSError, ValueError):
        return ""


def _at(installed: str, commit: str) -> str:
    """Return the version that was installed, at this commit if it names another one."""
    public, named, local = installed.partition("+g")
    same = not named or not commit or commit.startswith(local.partition(".")[0])
    return installed if same else f"{public}+g{commit[:9]}"


def _here() -> str:
    """Return the version of this process; its workers have the same, whatever is committed then."""
    processes = sys.modules.get("multiprocessing.process")  # a worker has it
    if processes is not None and processes.parent_process() is not None and _GIVEN in os.environ:
        return os.environ[_GIVEN]
    return _at(_installed(), _commit(Path(__file__).resolve().parents[3] / ".git"))


__version__ = os.environ[_GIVEN] = _here()

RELEASE = ".".join((*re.findall(r"\d+", re.split(r"\.?dev|\+", __version__)[0]), "0", "0")[:3])
"""The release that this is, or will be: ``0.1.dev7+g1234567`` is on its way to ``0.1.0``."""


@cache
def engine_digest() -> str:
    """Return the SHA-256 of the engine's sources, compiled into it; empty without an engine."""
    try:
        return str(importlib.import_module("dcqcn_gym._core").engine_digest())
    except (ImportError, AttributeError):  # an agent's package, an engine of before there was one
        return ""


def code_versions() -> dict[str, str]:
    """Return what names the code that makes a result: ``dcqcn_gym`` and ``engine``."""
    return {"dcqcn_gym": __version__, "engine": engine_digest()[:16]}


def version_difference(other: Mapping[str, object]) -> str:
    """Return in words how other code differs from this, empty if it is the same."""
    names = {"dcqcn_gym": "version", "engine": "engine"}
    return ", ".join(
        f"{names[key]} {other.get(key) or 'unknown'} instead of {mine or 'unknown'}"
        for key, mine in code_versions().items()
        if other.get(key) != mine
    )
