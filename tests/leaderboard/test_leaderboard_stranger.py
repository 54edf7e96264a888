"""A tuner of somebody else, in a package of its own: run, submitted, verified, shown by commands.

The package is installed by pip into an environment of its own, beside this dcqcn-gym.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from submissions import need_sandbox, tiny_suite

PROJECT = """
[build-system]
requires = ["scikit-build-core"]
build-backend = "scikit_build_core.build"
[project]
name = "stranger-tuner"
version = "1.2"
[project.entry-points."dcqcn_gym.tuners"]
stranger = "stranger_tuner.tuner:Stranger"
[tool.scikit-build]
wheel.cmake = false
wheel.packages = ["stranger_tuner"]
"""

TUNER = """
import json
from pathlib import Path
from dcqcn_gym.tuners import Tuner

STEPS = json.loads(Path(__file__).with_name("steps.json").read_text())

class Stranger(Tuner):
    name = "stranger"
    summary = "walks along a list of steps"
    at = 0

    def ask(self):
        self.at += 1
        return self.context.base.replace({"pmax": STEPS[self.at % len(STEPS)]})
"""


def environment(folder: Path) -> Path:
    """Return the programs of a new environment that sees this one's packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    paths = [path for path in sys.path if path.endswith(("site-packages", "/src"))]
    hooks = [f"import site; site.addsitedir({path!r})" for path in paths]
    (site / "beside.pth").write_text("\n".join(hooks) + "\n")
    return folder / "bin"


def package(folder: Path) -> Path:
    """Write the stranger's sources."""
    inside = folder / "stranger_tuner"
    inside.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (inside / "__init__.py").write_text("")
    (inside / "tuner.py").write_text(TUNER)
    (inside / "steps.json").write_text("[0.05, 0.1, 0.4]")
    return folder


def said(words: list[str | Path], folder: Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


@pytest.mark.slow
def test_run_submit_verify_site(tmp_path: Path) -> None:
    need_sandbox()
    bin_, suite = environment(tmp_path / "venv"), tiny_suite(tmp_path / "tiny")
    source = package(tmp_path / "source")
    pip = [sys.executable, "-m", "pip", "--python", str(bin_ / "python")]
    said([*pip, "install", "-q", "--no-deps", "--no-build-isolation", str(source)], tmp_path)
    there, here = (
        [str(python), "-m", "dcqcn_gym", "bench"] for python in (bin_ / "python", sys.executable)
    )
    quiet = ["--jobs", "1", "--quiet"]
    said([*there, "run", suite, "--tuners", "stranger", "--out", "leaderboard", *quiet], tmp_path)
    words = ["--tuner", "stranger", "--author", "A. Stranger", "--licence", "MIT"]
    said(
        [*there, "submit", "leaderboard", *words, "--category", "online", "--out", "entry"],
        tmp_path,
    )
    names = {path.relative_to(tmp_path / "entry/plugin").as_posix()
             for path in (tmp_path / "entry/plugin").rglob("*") if path.is_file()}  # fmt: skip
    assert {"stranger_tuner/tuner.py", "stranger_tuner/steps.json"} <= names
    assert "stranger_tuner-1.2.dist-info/entry_points.txt" in names
    # the verifier has never seen the package
    words = ["--date", "2026-11-22", "--suite", suite, "--fresh", "1", *quiet]
    words += ["--verdicts", "verdicts", "--salt", "0" * 32]
    told = said([*here, "verify", "entry", *words], tmp_path)
    assert told.startswith("verified: every run was repeated")
    found = json.loads((tmp_path / "verdicts" / "tiny" / "stranger.json").read_text())
    assert (found["status"], found["salt"]) == ("verified", "0" * 32)
    assert found["findings"] == []
    assert found["checked"] == {"replayed": 2, "repeated": 2, "fresh": 1}
    # the maintainer's leaderboard has no entry of it; the submission brings it
    said([*here, "run", suite, "--tuners", "expert", "--out", "ours", *quiet], tmp_path)
    words = ["--out", "site", "--verdicts", "verdicts"]
    said([*here, "site", "ours", "entry", *words], tmp_path)
    index = (tmp_path / "site" / "index.html").read_text()
    (line,) = (line for line in index.splitlines() if 'data-name="stranger"' in line)
    assert 'data-category="online" data-status="verified"' in line
    (page,) = (tmp_path / "site" / "entries").glob("*stranger*.html")
    text = page.read_text()
    assert "every run was repeated" in text
