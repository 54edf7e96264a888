"""Write the engine's tables to configs/schema, for what runs without the engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dcqcn_gym import _core

FOLDER = Path(__file__).resolve().parents[1] / "configs" / "schema"
TABLES: Mapping[str, Callable[[], Any]] = {
    "knobs.json": _core.knob_tables,
    "report_fields.json": _core.report_fields,
}


def exported(name: str) -> str:
    """Return the text of a file: a row of a table a line."""
    text = json.dumps(TABLES[name]())
    return text.replace("[{", "[\n{").replace("}, {", "},\n{") + "\n"


if __name__ == "__main__":
    for name in TABLES:
        (FOLDER / name).write_text(exported(name), encoding="utf-8")
