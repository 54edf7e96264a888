"""Every program in examples/ runs from an empty folder and prints something, and is a notebook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


def run(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=dict(os.environ, MPLBACKEND="Agg"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cells(example: Path) -> list[Any]:
    jupytext = pytest.importorskip("jupytext")
    return list(jupytext.read(example).cells)


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    if "\nimport torch\n" in example.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    assert run([str(example)], tmp_path).strip()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example_is_a_notebook_that_begins_with_its_title(example: Path) -> None:
    found = cells(example)
    assert [found[0].cell_type, found[1].cell_type] == ["markdown", "code"]
    assert found[0].source.startswith("# ")
    assert '"""' not in found[0].source


@pytest.mark.slow
@pytest.mark.parametrize("name", ["02_compare_settings", "03_own_tuner"])
def test_cells_run_one_after_the_other_without_a_file_name(name: str, tmp_path: Path) -> None:
    """What a kernel does: the cells in one namespace, called ``__main__``, in their folder."""
    example = next(p for p in EXAMPLES if p.stem == name)
    shutil.copy(example, tmp_path)
    sources = [cell.source for cell in cells(example) if cell.cell_type == "code"]
    names = {"__name__": "__main__"}
    kernel = f"names = {names!r}\nfor cell in {sources!r}:\n    exec(cell, names)\n"
    assert run(["-c", kernel], tmp_path) == run([str(example)], tmp_path)


@pytest.mark.slow
def test_the_notebook_of_the_docs_runs_in_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "none"))
    notebook = nbformat.read(EXAMPLES[0].parents[1] / "docs" / "notebook.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}})
    shown = [
        "".join(out.get("data", {}).get("text/html", "") for out in cell.outputs)
        for cell in client.execute().cells
        if cell.cell_type == "code"
    ]
    assert "judged by 10/10 runs" in shown[0]  # the bar, at its end
    assert "8 of 8" in shown[1]  # a run
    assert "<td>kmin<td>400" in shown[2]  # a setting
