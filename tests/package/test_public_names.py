"""The names that users import: listed, importable, and under their old paths for one release."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dcqcn_gym._moved import MOVED

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "public-names.md").read_text()


def listed() -> list[tuple[str, str]]:
    """Return (module, name) for every row of the page; ``.x`` is beside the module before it."""
    found = []
    for row in re.findall(r"^\| (`dcqcn_gym[^|]*) \| ([^|]*) \|", PAGE, re.MULTILINE):
        modules = re.findall(r"`([\w.]+)`", row[0])
        parent = modules[0].rpartition(".")[0]
        full = [m if m.startswith("dcqcn_gym") else parent + m for m in modules]
        for name in re.findall(r"`(\w+)`", row[1]):
            found.append(("|".join(full), name))
    return found


@pytest.mark.parametrize(("modules", "name"), listed())
def test_listed_name_is_there(modules: str, name: str) -> None:
    loaded = [importlib.import_module(module) for module in modules.split("|")]
    assert any(hasattr(module, name) for module in loaded)


def test_the_page_lists_something() -> None:
    assert len(listed()) > 30


@pytest.mark.parametrize("old", sorted(MOVED))
def test_old_path_is_the_same_module_and_warns(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=re.escape(MOVED[old])):
        module = importlib.import_module(old)
    assert module is importlib.import_module(MOVED[old])


def test_the_warning_names_the_line_that_imports() -> None:
    code = "import dcqcn_gym\nfrom dcqcn_gym.knobs import Setting\n"
    run = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", code],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "<string>:2: DeprecationWarning" in run.stderr


def test_other_unknown_modules_are_still_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("dcqcn_gym.nothing_of_that_name")
