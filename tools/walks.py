"""Through how many modules does a scenario pass? ``python tools/walks.py tune|bench``.

Follows objects of the classes FOLLOWED through the calls of one small run, by ``sys.setprofile``:
a stop is a call of a function of this project that is given one of them. Prints the modules in the
order in which they are first reached, and how often the way returns: of the distinct steps from one
module to another, those to a module that was reached before. Calls in worker processes are not
seen. These are counts of what runs; a walk through the text, by hand, passes other places.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLLOWED = ("Scenario", "RunSpec", "Leaderboard")
WORDS = {
    "tune": ["tune", "--scenario=mini-fb-hadoop", "--backend=fake", "--intervals=3", "--quiet",
             "--eval-seeds=1", "--eval-intervals=2"],
    "bench": ["bench", "run", "smoke", "--tuners=expert", "--jobs=1", "--quiet"],
}  # fmt: skip


class Walk:
    """The modules that the followed objects reached, and the steps between them."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.steps: list[tuple[str, str]] = []
        self.returns = 0
        self._at = ""

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call that is given a followed object."""
        if event != "call":
            return
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("dcqcn_gym.") or module == self._at:
            return
        code = frame.f_code
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(type(frame.f_locals.get(name)).__name__ in FOLLOWED for name in given):
            self._step(module)

    def _step(self, module: str) -> None:
        step = (self._at, module)
        if step not in self.steps:
            self.steps.append(step)
            self.returns += module in self.modules
        if module not in self.modules:
            self.modules.append(module)
        self._at = module


def main() -> int:
    """Walk, and print the modules and the number of returns."""
    from dcqcn_gym.cli import main as command

    name = sys.argv[1] if len(sys.argv) > 1 else "tune"
    if name not in WORDS:
        print(f"no walk {name!r}; there are: {', '.join(WORDS)}", file=sys.stderr)
        return 2
    walk = Walk()
    with TemporaryDirectory() as folder:
        sys.argv = ["dcqcn-gym", *WORDS[name], f"--out={folder}/out"]
        sys.setprofile(walk.profile)
        try:
            command()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
    print("\n".join(walk.modules))
    print(f"{name}: {len(walk.modules)} modules, {walk.returns} returns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
