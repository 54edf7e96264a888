"""The example of docs/reference/compiled-scenario.md runs, and broken texts are refused by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from engine_worlds import finish, start

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "compiled-scenario.md"


def example() -> str:
    block = re.search(r"```\n(dcqcn-gym-scenario 1\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    return block[1]


def test_the_example_runs() -> None:
    flows = finish(start(example()))
    assert flows["bytes"].tolist() == [10_000_000] * 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dcqcn-gym-scenario 1", "dcqcn-gym-scenario 2", "expected 'dcqcn-gym-scenario 1'"),
        ("end\n", "", "'end' is missing"),
        ("flow 0 2 ", "flow 0 9 ", "line 14.*host 9 does not exist; hosts are 0 to 2"),
        ("link 0 3", "link 0 8", "line 4.*node 8 does not exist"),
        ("link 2 3", "# link 2 3", "host 2 has 0 links; a host has exactly one"),
        ("headroom=187500", "headroom=5000000", "headroom and reserve need"),
        ("ps_per_byte=80", "ps_per_byte=eighty", "'eighty' is not a whole number"),
        ("workload flows", "workload floods", "unknown pattern 'floods'"),
        ("cnp scope", "cpn scope", "line 11.*unknown item"),
    ],
)
def test_mistakes_are_refused(old: str, new: str, message: str) -> None:
    text = example()
    assert old in text
    with pytest.raises(ValueError, match=message):
        start(text.replace(old, new))
