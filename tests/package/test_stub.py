"""The committed stub of the native module is what its docstrings and signatures say."""

from __future__ import annotations

import re
import runpy
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
    from dcqcn_gym.core.knobs import Knob, knob_table, schemes
    from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS

    handed = _core.knob_tables()
    assert schemes() == tuple(handed["schemes"])
    assert schemes()[0] == "dcqcn"
    for scheme, rows in handed["schemes"].items():
        own = (*rows, *handed["switch"])
        assert [Knob(**row) for row in own] == list(knob_table(scheme).rows)
    assert [Knob(**row) for row in handed["optional"]] == list(OPTIONAL_KNOBS.values())


@pytest.mark.parametrize("name", ["knobs.json", "report_fields.json"])
def test_the_exported_tables_are_current(name: str) -> None:
    exporter = runpy.run_path(str(STUB.parents[2] / "engine" / "export_tables.py"))
    committed = (exporter["FOLDER"] / name).read_text(encoding="utf-8")
    assert committed == exporter["exported"](name), "run: make rebuild-core"
