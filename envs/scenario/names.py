"""The names that a scenario may have: they are printed and name folders, and are no paths."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from dcqcn_gym.core.errors import ConfigError, quote

LONGEST = 100
_FORBIDDEN = re.compile(r"[/\\<>\[\]|`\"]")


def _checked(name: str) -> str:
    bad = _FORBIDDEN.search(name)
    if len(name) > LONGEST or len(name.encode()) > 2 * LONGEST:
        problem = f"has {len(name)} characters"
    elif bad:
        problem = f"holds {bad[0]!r}"
    elif not name.isprintable():
        problem = "holds a character that cannot be seen"
    elif name != name.strip() or name.startswith((".", "-")):
        problem = "begins with a dot or a dash, or begins or ends with a space"
    else:
        return name
    raise ConfigError(
        f"{quote(name)} {problem}; expected a name of at most {LONGEST} letters, digits, spaces "
        "and dashes, because it also names folders"
    )


Name = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST),
    AfterValidator(_checked),
]
