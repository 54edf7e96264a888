"""A tuner of another package: installed, found by its entry point, through the whole kit."""

from __future__ import annotations

import runpy
import sys
import zipfile
from pathlib import Path

import pytest

from dcqcn_gym.core.config import read_toml
from dcqcn_gym.tuners import TUNERS, make_tuner

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "smallest_tuner"


def build_wheel(folder: Path) -> Path:
    """Pack the example as its pyproject.toml says; a build backend is not needed for one file."""
    project = read_toml(PACKAGE / "pyproject.toml")["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = f"{name}-{version}.dist-info"
    entries = "".join(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items())
        for group, points in project["entry-points"].items()
    )
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(PACKAGE / "smallest_tuner.py", "smallest_tuner.py")
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n",
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", entries)
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def test_an_installed_package_passes_the_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nudge" not in TUNERS.names()
    site = tmp_path / "site"
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        wheel.extractall(site)  # as pip does where no script is to be made
    monkeypatch.syspath_prepend(str(site))
    assert TUNERS.names()[-1] == "nudge"
    assert make_tuner("nudge").summary == "random nudges of the additive step"
    assert Path(sys.modules["smallest_tuner"].__file__ or "").parent == site
    code = runpy.run_path(str(PACKAGE / "test_smallest_tuner.py"))
    case = code["TestNudge"]()
    assert case.tuner == f"{PACKAGE / 'smallest_tuner.py'}:Nudge"
    case.tuner = "nudge"
    for name in [n for n in dir(case) if n.startswith("test_")]:
        folder = tmp_path / name
        folder.mkdir()
        method = getattr(case, name)
        method(folder) if "tmp_path" in method.__annotations__ else method()
