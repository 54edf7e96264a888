"""The committed stub of the native module is what its docstrings and signatures say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).resolve().parents[2] / "src" / "dcqcn_gym" / "_core.pyi"


def significant(text: str) -> str:
    """Drop the header comment and blank lines, which formatters move."""
    text = re.sub(r"\A(?:#.*\n)+", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def test_stub_is_current(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="nanobind makes the stub")
    fresh = tmp_path / "_core.pyi"
    patterns = STUB.parents[2] / "engine" / "core_stub.pat"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-p", str(patterns)]
    command += ["-m", "dcqcn_gym._core"]
    subprocess.run([*command, "-o", str(fresh)], check=True, cwd=tmp_path)
    formatter = Path(sys.executable).with_name("ruff")
    if formatter.exists():
        config = ["--config", str(STUB.parents[2] / "pyproject.toml")]
        subprocess.run([str(formatter), "format", "-q", *config, str(fresh)], check=True)
    assert significant(STUB.read_text(encoding="utf-8")) == significant(
        fresh.read_text(encoding="utf-8")
    ), "run: make stub"


def test_engine_and_table_name_the_same_knobs() -> None:
    from dcqcn_gym import _core
    from dcqcn_gym.core import knobs

    assert _core.NIC_KNOBS == knobs.NIC_KNOBS
    assert _core.ECN_KNOBS == knobs.ECN_KNOBS
