"""``bench init``: a package with a tuner that works, its test, and the way to the leaderboard."""

from __future__ import annotations

import re
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, RunError, quote

_TUNER = '''"""{title}: random steps from the best setting so far. Put your own search here."""

from pydantic import Field

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners import Tuner, TunerContext, TunerSettings


class Settings(TunerSettings):
    width: float = Field(default=0.2, gt=0, le=2, description="standard deviation of a step")


class {title}(Tuner):
    name = "{name}"
    summary = "random steps from the best setting so far"
    Settings = Settings

    def start(self, context: TunerContext) -> None:
        super().start(context)
        self._random = context.generator()  # the only source of chance: same seed, same bytes

    def ask(self) -> Setting:
        space, best = self.context.space, self.best_setting
        if best is None:
            return self.context.base
        step = self._random.normal(0.0, self.settings.width, space.n)
        return space.setting((space.encode(best) + step).clip(-1.0, 1.0), best)
'''
_TEST = '''"""The conformance kit: legal settings, determinism, cadence, resume."""

from pathlib import Path

from dcqcn_gym.testing.tuner_case import TunerCase


class Test{title}(TunerCase):
    tuner = f"{{Path(__file__).with_name('{module}.py')}}:{title}"
'''
_PROJECT = """[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "1.0"
dependencies = ["dcqcn-gym[leaderboard]"]

[project.entry-points."dcqcn_gym.tuners"]
{name} = "{module}:{title}"

[tool.setuptools]
py-modules = ["{module}"]
"""
_README = """# {name}

A tuner for dcqcn-gym. In this folder:

    python -m pytest -q                                                # is it a tuner
    dcqcn-gym bench run smoke --tuners {module}.py:{title} --out runs/smoke   # in a minute
    dcqcn-gym bench run dev-v2 --tuners {module}.py:{title} --repetitions 1 --out runs/dev
    dcqcn-gym bench run test-v2 --tuners {module}.py:{title} --out runs/test  # once, at the end

    dcqcn-gym bench submit runs/test --tuner {module}-{title} --out submission \\
      --author "Your Name" --licence MIT --category online
    dcqcn-gym bench verify submission --date YYYY-MM-DD --verdicts verdicts   # as verifiers will
    dcqcn-gym bench site runs/test submission --verdicts verdicts --out site

`bench verify` needs bubblewrap (`apt install bubblewrap`); without it an entry stays
`self-reported`. The entry gets its rank in the next season, on traffic that nobody knew.
"""


def write_entry(folder: Path) -> list[Path]:
    """Write a package named like the folder, which must be new; return its files."""
    name = folder.resolve().name
    if not re.fullmatch("[a-z][a-z0-9]*([-_][a-z0-9]+)*", name) or len(name) > 40:
        raise ConfigError(
            f"DIR {quote(name)}: expected a name of small letters, digits and dashes, which "
            "becomes the tuner's"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} already holds something; give another DIR")
    module = name.replace("-", "_")
    words = {"name": name, "module": module,
             "title": "".join(part.capitalize() for part in module.split("_"))}  # fmt: skip
    texts = {f"{module}.py": _TUNER, f"test_{module}.py": _TEST, "pyproject.toml": _PROJECT,
             "README.md": _README}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text.format(**words), encoding="utf-8")
    return [folder / file for file in texts]
