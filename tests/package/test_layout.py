"""Packages at the top level are real folders, linked into dcqcn_gym; nothing else is importable."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPENED = {".gz": gzip.decompress, ".xz": lzma.decompress}
"""How a packed file is opened, by its suffix."""
PACKAGES = ("benchmarks", "configs", "envs", "extras", "hw", "tuners")


def tracked(*patterns: str) -> list[str]:
    """Return the files git tracks, or every file where the checkout has no history."""
    try:
        out = subprocess.run(
            ["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True, capture_output=True
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [name for name in out.split("\0") if name and (ROOT / name).exists()]


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_a_folder_and_dcqcn_gym_links_to_it(package: str) -> None:
    link = ROOT / "src" / "dcqcn_gym" / package
    assert (ROOT / package).is_dir()
    assert not (ROOT / package).is_symlink()
    assert link.is_symlink()
    assert os.readlink(link) == f"../../{package}"


def test_the_package_has_no_other_links() -> None:
    links = [p.name for p in (ROOT / "src" / "dcqcn_gym").iterdir() if p.is_symlink()]
    assert sorted(links) == list(PACKAGES)


def test_no_file_shadows_the_standard_library() -> None:
    python_files = [Path(n) for n in tracked("*.py") if not n.startswith(("docs/", "examples/"))]
    shadows = {p.stem for p in python_files if len(p.parts) > 1} & {"random", "types", "logging"}
    assert not shadows, "run as a script, such a file hides the standard library's module"


def test_no_registry_host_or_local_path_is_written_down() -> None:
    banned = re.compile(r"(index-url|find-links)\s*[=\"]|/" + "work/|/" + "root/|pypi" + r"\.org")
    found = []
    for name in tracked():
        path = ROOT / name
        if path.is_symlink() or path.suffix in {".png", ".svg", ".csv", ".jsonl", ".npz"}:
            continue
        data = path.read_bytes()
        text = OPENED.get(path.suffix, bytes)(data).decode("utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if banned.search(line) and name != "tests/package/test_layout.py":
                found.append(f"{name}:{number}")
    assert not found


def test_suite_imports_the_installed_package_not_the_folders() -> None:
    assert not {"envs", "tuners", "hw", "benchmarks"} & set(sys.modules)


def test_packages_cannot_be_imported_by_their_bare_names(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, dcqcn_gym, dcqcn_gym.envs, dcqcn_gym.tuners, dcqcn_gym.hw\n"
        "found = [n for n in ('envs', 'tuners', 'hw', 'benchmarks', 'configs') if u.find_spec(n)]\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_actions_of_workflows_are_pinned_by_digest() -> None:
    files = list((ROOT / ".github" / "workflows").glob("*.yml"))
    used = [line for f in files for line in f.read_text().splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not re.search(r"@[0-9a-f]{40} # v\d", line)] == []


def test_a_release_takes_its_own_section_of_the_changelog(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "release_notes.sh", tmp_path / ".ci")
    sections = [
        "## 0.3.0 (not yet released)\n\nc",
        "## 0.2.0 (2027-01-02)\n\nb\n\n### Renamed\n\nd",
    ]
    text = "\n\n".join(["# Changelog", *sections, "## 0.1.0\n\na"])
    (tmp_path / "CHANGELOG.md").write_text(text + "\n")

    def notes(tag: str) -> tuple[str, str]:
        done = subprocess.run(["bash", script, tag], capture_output=True, text=True)
        assert (done.returncode == 0) == (not done.stderr)
        return done.stdout, done.stderr

    assert notes("v0.1.0") == ("## 0.1.0\n\na\n", "")
    assert notes("v0.2.0") == (sections[1] + "\n", "")
    assert "0.3.0 is not yet released" in notes("v0.3.0")[1]
    assert 'no section "## 0.4.0"' in notes("v0.4.0")[1]
