"""The names that users import: listed, importable, loaded only when they are asked for."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dcqcn_gym

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/public-names.md").read_text()
FIRST, SECOND = PAGE.split("## For plug-ins and studies")


def listed() -> list[tuple[str, str]]:
    """Return (module, name) for every row of the second table; ``.x`` stands beside the first."""
    found = []
    for row in re.findall(r"^\| (`dcqcn_gym[^|]*) \| ([^|]*) \|", SECOND, re.MULTILINE):
        modules = re.findall(r"`([\w.]+)`", row[0])
        parent = modules[0].rpartition(".")[0]
        full = [m if m.startswith("dcqcn_gym") else parent + m for m in modules]
        for name in re.findall(r"`(\w+)`", row[1]):
            found.append(("|".join(full), name))
    return found


def test_every_listed_name_is_there() -> None:
    for modules, name in listed():
        loaded = [importlib.import_module(module) for module in modules.split("|")]
        assert any(hasattr(module, name) for module in loaded), name


def test_the_page_lists_something() -> None:
    assert len(listed()) > 30


def test_the_first_table_has_what_the_package_exports() -> None:
    table = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", FIRST, re.MULTILINE)
    names = [name for row in table for name in re.findall(r"`(\w+)`", row)]
    assert sorted(names) == sorted(dcqcn_gym.__all__)
    assert len(names) <= 18
    code = FIRST[FIRST.index("```python") :]
    assert [name for name in names if f"dcqcn_gym.{name}" not in code] == []


def test_the_stub_has_them_too() -> None:
    stub = Path(dcqcn_gym.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    said = re.findall(r" as (\w+)$|^def (\w+)|^(\w+):", stub, re.MULTILINE)
    names = {one or two or three for one, two, three in said}
    assert names == {*dcqcn_gym.__all__, "__all__"}


def test_every_exported_name_is_there() -> None:
    for name in dcqcn_gym.__all__:
        assert getattr(dcqcn_gym, name) is not None


def test_simulate_can_be_called_before_and_after_its_package_is_loaded() -> None:
    code = (
        "import dcqcn_gym\n"
        "assert callable(dcqcn_gym.simulate)\n"
        "import dcqcn_gym.simulation.run\n"
        "assert callable(dcqcn_gym.simulate)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_loads_none_of_them() -> None:
    code = (
        "import sys, dcqcn_gym\n"
        "heavy = {'numpy', 'pydantic', 'gymnasium', 'dcqcn_gym._core', 'dcqcn_gym.core.knobs'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_other_unknown_names_are_still_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("dcqcn_gym.nothing_of_that_name")
    with pytest.raises(AttributeError, match="nothing"):
        getattr(dcqcn_gym, "nothing")  # noqa: B009
