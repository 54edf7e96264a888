"""A copy of the tree to carry out a recipe of CONTRIBUTING in, with an environment of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

from dcqcn_gym.core.version import __version__

__all__ = ["ROOT", "Copy"]

ROOT = Path(__file__).resolve().parents[2]
TUNE = "dcqcn-gym tune --intervals 4 --eval-seeds 0 --no-report --quiet"
NOT_COPIED = {".git", ".venv", "build", "dist", "runs"}
PROGRAM = """#!{python}
from dcqcn_gym.cli import main
if __name__ == "__main__":  # worker processes import it
    main()
"""


class Copy:
    """The tree in the folder ``root``, with the installed engine.

    ``changed`` has (file, how often) of what a recipe edits by hand, new files apart.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=_left_out)
        found = importlib.util.find_spec("dcqcn_gym._core")
        assert found is not None
        assert found.origin is not None
        shutil.copy(found.origin, self.root / "src" / "dcqcn_gym")
        self.changed: dict[str, int] = {}
        self._make_environment()
        self.built()

    def _make_environment(self) -> None:
        """Make ``.venv`` with the packages of this one, and the copy before them."""
        # this one cannot serve: its hook leads the name dcqcn_gym to this tree
        venv.EnvBuilder(symlinks=True).create(self.root / ".venv")
        (packages,) = (self.root / ".venv" / "lib").glob("python*/site-packages")
        paths = [self.root / "src", *(sysconfig.get_path(n) for n in ("purelib", "platlib"))]
        (packages / "copied.pth").write_text("\n".join(map(str, dict.fromkeys(paths))) + "\n")
        for name in ("cmake", "ninja", "ruff", "uv"):
            tool = Path(sys.executable).with_name(name)
            if tool.exists():
                (self.root / ".venv" / "bin" / name).symlink_to(tool)
        program = self.root / ".venv" / "bin" / "dcqcn-gym"
        program.write_text(PROGRAM.format(python=self.root / ".venv" / "bin" / "python"))
        program.chmod(0o755)

    def built(self) -> None:
        """Have ``make`` take environment and engine as up to date."""
        for stamp in (".base-installed", ".deps-installed", ".core-built"):
            (self.root / ".venv" / stamp).touch()

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return (self.root / path).read_text(encoding="utf-8")

    def add(self, path: str, text: str) -> None:
        """Write a new file."""
        assert not (self.root / path).exists(), f"{path} is there already"
        (self.root / path).write_text(text, encoding="utf-8")

    def copy(self, path: str, to: str, changes: dict[str, str]) -> None:
        """Copy a file, each text of ``changes`` replaced by the other."""
        text = self.read(path)
        for old, new in changes.items():
            assert old in text, f"{path} has no {old!r}"
            text = text.replace(old, new)
        self.add(to, text)

    def change(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands in a file once."""
        text = self.read(path)
        assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")
        self.changed[path] = self.changed.get(path, 0) + 1

    def check_named(self, title: str) -> None:
        """Assert that the recipe of this title names every file that was edited."""
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        (recipe,) = re.findall(rf"^## Recipe: {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        assert self.changed
        unnamed = [path for path in self.changed if f"`{path}`" not in recipe]
        assert not unnamed, f"the recipe of {title} does not name {unnamed}"

    def run(self, command: str) -> str:
        """Type a command in the root of the copy; return what it prints."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHONPATH"))}
        env["PATH"] = os.pathsep.join([str(self.root / ".venv" / "bin"), env["PATH"]])
        env["SETUPTOOLS_SCM_PRETEND_VERSION"] = __version__  # a copy has no git to ask
        done = subprocess.run(
            command, shell=True, cwd=self.root, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}:\n{done.stdout}"
        return done.stdout

    def tuned(self, options: str, out: str) -> list[dict[str, Any]]:
        """Return the lines of the intervals of a run of ``tune``."""
        self.run(f"{TUNE} {options} --out runs/{out}")
        lines = map(json.loads, self.read(f"runs/{out}/run.jsonl").splitlines())
        return [line for line in lines if "setting" in line]

    def test(self, *words: str) -> int:
        """Run tests of the copy; return how many passed, and fail if one does not."""
        said = self.run(
            " ".join(["python -m pytest -p no:cacheprovider --basetemp=../tests", *words])
        )
        passed = re.search(r"(\d+) passed", said)
        return int(passed[1]) if passed else 0


def _left_out(folder: str, names: list[str]) -> set[str]:
    top = NOT_COPIED if Path(folder) == ROOT else set()
    return {n for n in names if n in top or n == "__pycache__" or n.endswith((".so", "_cache"))}
