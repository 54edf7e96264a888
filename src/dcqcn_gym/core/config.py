"""Configuration files: frozen strict models, TOML in, one clear sentence out when it is wrong.

Every file a person writes is read through :func:`load_toml` into a subclass of
:class:`StrictModel`. An error names the file, the key, the value and what was expected.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from dcqcn_gym.core.errors import ConfigError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "CONFIGS",
    "StrictModel",
    "describe",
    "export_schemas",
    "load_toml",
    "read_toml",
    "validate",
]

Model = TypeVar("Model", bound=BaseModel)

CONFIGS = Path(__file__).parents[1] / "configs"
"""Folder of the scenarios, workloads and schemas that come with the package."""


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys, NaN and infinity, and true or false as numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_flag_as_number(cls, data: Any) -> Any:
        for name, value in data.items() if isinstance(data, Mapping) else ():
            given = value if isinstance(value, list | tuple) else (value,)
            flag = next((v for v in given if isinstance(v, bool)), None)
            field = cls.model_fields.get(name)
            if flag is not None and field is not None and not _takes_flag(field.annotation):
                word = str(flag).lower()
                raise ConfigError(f"{name} = {word}: expected something else than true or false")
        return data


def _takes_flag(annotation: Any) -> bool:
    return annotation in (bool, Any) or any(_takes_flag(arg) for arg in get_args(annotation))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file; raise :class:`ConfigError` naming file and line or key.

    A byte order mark at the begin is left out; whole numbers are of 64 bits, as TOML says.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a text file ({error})") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {_in_words(str(error), text)}") from None
    except RecursionError:
        raise ConfigError(f"{path}: its values are nested too deeply to be read") from None
    except ValueError:  # Python does not convert a number of thousands of digits
        before = re.split(r"[\d_]{1000}", text, maxsplit=1)[0]
        line = before.count("\n") + 1
        raise ConfigError(f"{path}: line {line} has {_TOO_LARGE}") from None
    for key, value in _numbers(tables, ""):
        if not -(2**63) <= value < 2**63:
            raise ConfigError(f"{path}: {key} is {_TOO_LARGE}")
    return tables


_TOO_LARGE = "too large a number; expected whole numbers from -2^63 to 2^63 - 1"


def _numbers(value: Any, key: str) -> Iterator[tuple[str, int]]:
    """Yield every whole number with the place where it stands."""
    if isinstance(value, int):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _numbers(inner, f"{key}[{i}]")


def _in_words(problem: str, text: str) -> str:
    """Return the parser's words; a key that is given twice is named with its line."""
    if "overwrite" not in problem:
        return problem
    lines = text.rstrip().splitlines()
    found = re.search(r"at line (\d+)", problem)  # none where the file ends with that line
    number = int(found[1]) if found else len(lines)
    key = lines[number - 1].partition("=")[0].strip()
    return f"the key {_short(key)} of line {number} is given twice; expected every key once"


def load_toml(
    path: str | Path, model: type[Model], defaults: Mapping[str, Any] | None = None
) -> Model:
    """Read a TOML file into ``model``; ``defaults`` fill keys that the file leaves out.

    Paths inside the file are relative to its folder. Raises :class:`ConfigError`.
    """
    path = Path(path)
    data = {**(defaults or {}), **read_toml(path)}
    return validate(data, model, source=str(path), folder=path.parent)


def validate(
    data: Mapping[str, Any], model: type[Model], *, source: str, folder: Path | None = None
) -> Model:
    """Build ``model`` from ``data``; errors are :class:`ConfigError` that begin with ``source``."""
    try:
        return model.model_validate(dict(data), context={"folder": folder or Path()})
    except ValidationError as error:
        raise ConfigError(describe(error, model, source)) from None


def describe(error: ValidationError, model: type[BaseModel], source: str) -> str:
    """Return one sentence for the first problem of a pydantic error: place, value, expectation."""
    errors = error.errors(include_url=False)
    first = errors[0]
    kind, ctx, value = first["type"], first.get("ctx", {}), first.get("input")
    spot = _locate(model, first["loc"])
    where = f"{source}: {spot.place}" if spot.place else source
    if kind == "value_error":
        return f"{where}: {ctx['error']}"
    if kind == "extra_forbidden":
        table, _, key = spot.place.rpartition(".")
        known = sorted({name for owner in spot.owners for name in owner.model_fields})
        inside = f" in [{table}]" if table else ""
        return f"{source}: unknown key {key!r}{inside}{did_you_mean(key, known)}"
    if kind in ("missing", "unexpected_positional_argument") and spot.place.endswith("]"):
        row, _, _ = where.rpartition("[")
        return f"{row}: wrong number of values{spot.meaning()}"
    if kind == "missing":
        return f"{where}: this key is missing{spot.meaning()}{_misspelt(errors)}"
    if kind == "union_tag_not_found":
        return f"{where}: the key 'kind' is missing; expected one of {_tags(spot.inside)}"
    if kind == "union_tag_invalid":
        tags = [tag.strip("'") for tag in str(ctx["expected_tags"]).split(", ")]
        return f"{where}: unknown kind {ctx['tag']!r}{did_you_mean(str(ctx['tag']), tags)}"
    if kind == "literal_error":
        names = str(ctx["expected"]).replace(" or ", ", ").split(", ")
        hint = did_you_mean(str(value), [name.strip(" '") for name in names])
        return f"{where}: unknown value {value!r}{hint}"
    expected = first["msg"].replace("Input should be", "expected")
    return f"{where} = {_short(value)}: {expected}"


def _misspelt(errors: Sequence[ErrorDetails]) -> str:
    """Return words for an unknown key in the table whose key, by the first error, is missing."""
    *table, key = errors[0]["loc"]
    unknown = [
        str(e["loc"][-1])
        for e in errors
        if e["type"] == "extra_forbidden" and list(e["loc"][:-1]) == table
    ]
    near = difflib.get_close_matches(str(key), unknown, n=1)
    return f"; the unknown key {near[0]!r} may be meant for it" if near else ""


@dataclass(frozen=True)
class _Spot:
    """A place in a file: ``table.key[index]``, the models that own the key, and those inside it."""

    place: str
    key: str
    owners: tuple[type[BaseModel], ...]
    inside: tuple[type[BaseModel], ...]

    def meaning(self) -> str:
        """Return ``"; expected ..."`` from the description of the key, if it has one."""
        fields = [m.model_fields[self.key] for m in self.owners if self.key in m.model_fields]
        texts = [field.description for field in fields if field.description]
        return f"; expected {texts[0]}" if texts else ""


def _locate(model: type[BaseModel], loc: Iterable[int | str]) -> _Spot:
    """Turn a pydantic location, which also holds the tags of unions, into a place in the file."""
    place, key = "", ""
    owners: tuple[type[BaseModel], ...] = (model,)
    inside: tuple[type[BaseModel], ...] = (model,)
    for item in loc:
        tagged = tuple(m for m in inside if item in _tags((m,)))
        having = tuple(m for m in inside if item in m.model_fields)
        if isinstance(item, int):
            place += f"[{item}]"
        elif tagged and len(inside) > 1:
            inside = tagged
        elif having:
            place, key, owners = f"{place}.{item}", item, having
            inside = tuple(x for m in having for x in _models(m.model_fields[item].annotation))
        else:
            place, key, owners = f"{place}.{item}", item, inside or owners
    return _Spot(place.lstrip("."), key, owners, inside)


def _models(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Return the models that an annotation mentions, unions and containers included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(model for arg in get_args(annotation) for model in _models(arg))


def _tags(models: Iterable[type[BaseModel]]) -> list[str]:
    return [m.model_fields["kind"].default for m in models if "kind" in m.model_fields]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def export_schemas(directory: str | Path, models: Mapping[str, type[BaseModel]]) -> list[Path]:
    """Write ``<name>.json``, the JSON Schema of each model, and return the paths.

    The schemas describe what a person may write (a file name where a table is read from a file).
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, model in models.items():
        path = folder / f"{name}.json"
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **model.model_json_schema(mode="validation"),
        }
        path.write_text(json.dumps(schema, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        written.append(path)
    return written
