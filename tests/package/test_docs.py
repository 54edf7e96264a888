"""Generated pages are current, links lead somewhere, citations carry the version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.envs.backends import BACKENDS

ROOT = Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
TEXTS = {"benchmarks/papers/ten_minutes.md"}  # links as from docs/measured/papers
PAGES = sorted(ROOT / name for name in set(TRACKED.stdout.split()) - TEXTS)


def test_knob_tables_are_current() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_knobs.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [t for t in targets if "://" not in t and not t.startswith("mailto:")]
    assert [t for t in local if not (page.parent / t).exists()] == []


def test_what_was_renamed_is_there() -> None:
    lines = (ROOT / "docs/reference/renames.csv").read_text(encoding="utf-8").splitlines()
    kinds = [line.split(",") for line in lines[1:]]
    files = [new for kind, _, new in kinds if kind in ("page", "program")]
    modules = [new for kind, _, new in kinds if kind == "module"]
    assert files
    assert modules
    assert [name for name in files if not (ROOT / name).exists()] == []
    at = [(name, ROOT / "src" / name.replace(".", "/")) for name in modules]
    assert [
        name for name, path in at if not (path.with_suffix(".py").exists() or path.is_dir())
    ] == []


def test_version_is_the_same_everywhere() -> None:
    version = RELEASE
    for name, pattern in {
        "CITATION.cff": r"^version: (.+)",
        "CHANGELOG.md": r"^## (\S+)",
    }.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None, name
        assert found[1] == version, name


@pytest.mark.parametrize("page", ["environment.md", "reference/glossary.md"])
def test_every_backend_is_listed(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    line = next(row for row in text.splitlines() if "| backend" in row or "| `backend`" in row)
    assert BACKENDS.builtin
    for name in BACKENDS.builtin:
        assert re.search(rf"[`\"]{name}[:`\"]", line), name
