"""Installed packages of other people, made up for tests: a folder with their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install_plugin(site: Path, package: str, group: str, points: Mapping[str, str]) -> None:
    """Write the metadata of ``package`` with these entry points into ``site``, a path of imports.

    ``points`` maps a name to ``"module:Class"``; the module has to lie in ``site``.
    """
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))
