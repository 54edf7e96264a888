"""docs/environment.md says what the code does, and its blocks run; scenarios.md has all of them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "environment.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("m", ROOT / "docs" / "make_environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_current(maker: ModuleType) -> None:
    for page in (maker.PAGE, maker.SCENARIOS):
        text = page.read_text(encoding="utf-8")
        made = maker.page(text, page == maker.SCENARIOS)
        assert text == made, "run python docs/make_environment.py"


def test_the_schema_is_current(maker: ModuleType) -> None:
    committed = (ROOT / "configs" / "schema" / "info.json").read_text(encoding="utf-8")
    assert committed == maker.schema(), "run python docs/make_environment.py"


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{i}" for i in range(len(BLOCKS))])
def test_the_blocks_run(block: str) -> None:
    pytest.importorskip("dcqcn_gym._core")
    exec(compile(block, str(PAGE), "exec"), {"__name__": "block"})
