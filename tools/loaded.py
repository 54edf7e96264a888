"""Print how many lines of this project a command loads: ``python tools/loaded.py tune ...``.

Counts the lines of every module of ``dcqcn_gym`` that is imported when the command ends, in its own
process (not in its workers), and the modules of everything else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_PROGRAM = """
import atexit, json, sys

def _write(path=sys.argv.pop(1)):
    files = {n: getattr(m, "__file__", None) for n, m in list(sys.modules.items())}
    json.dump(files, open(path, "w"))

atexit.register(_write)
from dcqcn_gym.cli import main
main()
"""


def loaded(words: Sequence[str]) -> tuple[dict[str, int], int]:
    """Return the lines of each of our modules that a command loads, and how many others it loads.

    Raises :class:`subprocess.CalledProcessError` where the command fails.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "modules.json"
        subprocess.run([sys.executable, "-c", _PROGRAM, str(file), *words], check=True)
        files: dict[str, str | None] = json.loads(file.read_text())
    ours = {
        name: len(Path(path).read_text(encoding="utf-8").splitlines())
        for name, path in files.items()
        if path and path.endswith(".py") and name.partition(".")[0] == "dcqcn_gym"
    }
    return ours, len(files) - len(ours)


def main() -> None:
    """Print the lines by package, and their sum."""
    words = sys.argv[1:]
    with TemporaryDirectory() as out:
        if not words:
            words = ["tune", "--scenario=mini-fb-hadoop", "--intervals=6", "--quiet"]
            words += ["--eval-seeds=1", "--eval-intervals=2", f"--out={out}/run"]
        ours, others = loaded(words)
    by_package: Counter[str] = Counter()
    for name, lines in ours.items():
        by_package[".".join(name.split(".")[:2])] += lines
    for package, lines in by_package.most_common():
        print(f"{lines:7,} {package}")
    print(f"{sum(ours.values()):7,} lines in {len(ours)} modules; {others} modules of others")


if __name__ == "__main__":
    main()
