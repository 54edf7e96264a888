"""Importing the package is quick to say: small base, no optional packages."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import dcqcn_gym

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(
    m.name for m in pkgutil.walk_packages(dcqcn_gym.__path__, "dcqcn_gym.") if "_core" not in m.name
)
OPTIONAL = ("matplotlib", "scipy", "torch", "stable_baselines3", "pytest", "pettingzoo")


def test_importing_everything_needs_no_optional_package(tmp_path: Path) -> None:
    names = [m for m in MODULES if not m.endswith("_case")]
    code = (
        "import importlib, sys\n"
        f"for name in {OPTIONAL!r}: sys.modules[name] = None\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_importing_prints_nothing(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import dcqcn_gym"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("package", ["envs", "tuners", "hw", "benchmarks"])
def test_package_says_what_it_is_for_and_lists_what_it_exports(package: str) -> None:
    tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    targets = [t for n in tree.body if isinstance(n, ast.Assign) for t in n.targets]
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    exports_something = len(tree.body) > 1
    assert not exports_something or "__all__" in names
