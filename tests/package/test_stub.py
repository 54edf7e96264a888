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


def test_the_table_is_the_engines() -> None:
    from dcqcn_gym import _core
    from dcqcn_gym.core.knobs import knob_table, schemes

    assert schemes() == _core.schemes()
    assert schemes()[0] == "dcqcn"
    for scheme in schemes():
        handed = [row["name"] for row in _core.knob_rows(scheme)]
        assert handed == list(knob_table(scheme).knobs)
    with pytest.raises(ValueError, match=r"unknown scheme 'hpcc' \(known: dcqcn"):
        _core.knob_rows("hpcc")
