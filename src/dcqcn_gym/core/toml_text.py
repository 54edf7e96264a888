"""Parse TOML, with one sentence for a mistake, and write it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from dcqcn_gym.core.errors import ConfigError, quote

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEEPEST = 32
"""Tables and arrays inside each other; ours need 4."""

_TWICE = ("Cannot overwrite a value", "Cannot declare", "Cannot mutate immutable namespace")


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Return the tables of a TOML text; raise :class:`ConfigError` that begins with ``source``.

    Whole numbers have 64 bits, as TOML says, and nesting ends at 32 levels.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: {_problem(str(error), text)}") from None
    except RecursionError:
        raise ConfigError(f"{source}: {_TOO_DEEP}") from None
    except ValueError:  # Python's own limit on the digits of a whole number
        before = re.split(r"[\d_]{1000}", text, maxsplit=1)[0]
        line = before.count("\n") + 1
        raise ConfigError(
            f"{source}: line {line}: a whole number has thousands of digits{_BITS}"
        ) from None
    _check(data, source)
    return data


_BITS = "; expected at most 64 bits"
_TOO_DEEP = f"tables or arrays are nested too deeply; expected at most {DEEPEST} levels"


def _problem(error: str, text: str) -> str:
    """Return what the parser says, with the line's key where a key is there twice."""
    if not error.startswith(_TWICE):
        return f"not valid TOML: {error}"
    lines = text.rstrip("\n").split("\n")
    at = re.search(r"\(at line (\d+), column \d+\)$", error)
    number = min(int(at[1]), len(lines)) if at else len(lines)
    key = lines[number - 1].partition("=")[0].strip()
    return f"line {number}: {quote(key)} is there for the second time; expected every key once"


def _check(data: dict[str, Any], source: str) -> None:
    for place, value, depth in _walk(data):
        if depth > DEEPEST:
            raise ConfigError(f"{source}: {quote(place)}: {_TOO_DEEP}")
        if isinstance(value, int) and value.bit_length() > 63:
            raise ConfigError(f"{source}: {place[:80]} is {quote(value)}{_BITS}")


def _walk(data: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Yield (place, value, depth) of every value, without recursion."""
    left: list[tuple[str, Any, int]] = [("", data, 0)]
    while left:
        place, value, depth = left.pop()
        yield place, value, depth
        if depth > DEEPEST:
            continue
        if isinstance(value, dict):
            dot = f"{place}." if place else ""
            left += [(f"{dot}{key}", item, depth + 1) for key, item in value.items()]
        elif isinstance(value, list):
            left += [(f"{place}[{i}]", item, depth + 1) for i, item in enumerate(value)]


def toml_text(values: Mapping[str, Any]) -> str:
    """Return a TOML text of texts, numbers, lists of them, tables, and lists of tables."""
    return "\n".join(_lines(values, "")).lstrip("\n") + "\n"


def _lines(values: Mapping[str, Any], path: str) -> Iterator[str]:
    tables = {k: v for k, v in values.items() if _is_table(v)}
    for key, value in values.items():
        if key not in tables:
            yield f"{_quoted(key)} = {_value(value)}"
    for key, value in tables.items():
        name = f"{path}{_quoted(key)}"
        brackets = f"[{name}]" if isinstance(value, Mapping) else f"[[{name}]]"
        for table in [value] if isinstance(value, Mapping) else value:
            yield f"\n{brackets}"
            yield from _lines(table, f"{name}.")


def _is_table(value: Any) -> bool:
    tables = isinstance(value, list | tuple) and len(value) > 0
    return isinstance(value, Mapping) or (tables and isinstance(value[0], Mapping))


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
