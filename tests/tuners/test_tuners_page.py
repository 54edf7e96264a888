"""The example of docs/tuner-authors.md is a real tuner, the list of docs/tuners.md complete."""

from __future__ import annotations

import re
from pathlib import Path

from dcqcn_gym.testing.tuner_case import TunerCase
from dcqcn_gym.tuners import BUILTIN

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tuners.md").read_text()


def test_the_example_passes_the_kit(tmp_path: Path) -> None:
    guide = (DOCS / "tuner-authors.md").read_text()
    source = next(
        b for b in re.findall(r"```python\n(.*?)```", guide, re.S) if "class Climber" in b
    )
    (tmp_path / "climber.py").write_text(source)
    tuner, arguments = f"{tmp_path}/climber.py:Climber", {"width": "0.1"}
    case = type("Case", (TunerCase,), {"tuner": tuner, "arguments": arguments})()
    case.test_says_what_it_is()
    case.test_every_proposal_is_legal_to_the_end(tmp_path)
    case.test_resumed_equals_uninterrupted(tmp_path)


def test_every_builtin_is_listed() -> None:
    assert BUILTIN
    for name in BUILTIN:
        assert f"| `{name}` |" in PAGE
