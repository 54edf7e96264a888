"""Configuration files: TOML into frozen, strict models, with one sentence for a mistake.

Every file a person writes is read through :func:`load_toml` into a subclass of
:class:`StrictModel`. An error names the file, the key, the value and what was expected.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticSerializationError, core_schema

from dcqcn_gym.core.errors import ConfigError, did_you_mean, printable, quote
from dcqcn_gym.core.files import MOST_BYTES, parse_json, read_text
from dcqcn_gym.core.toml_text import parse_toml

Model = TypeVar("Model", bound=BaseModel)

CONFIGS = Path(__file__).parents[1] / "configs"
"""Folder of the scenarios, workloads and schemas that come with the package."""


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys, NaN, infinity, and true or false for a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, data: Any) -> Any:
        for key, value in data.items() if isinstance(data, Mapping) else ():
            if key in cls.model_fields and _holds_truth(value):
                field = cls.model_fields[key]
                if not _takes_truth(field.annotation):
                    meaning = f", {field.description}" if field.description else ""
                    raise ConfigError(f"{key} = {quote(value)}: expected no true or false{meaning}")
        return data

    def model_dump(self, **how: Any) -> dict[str, Any]:
        """Return the values as pydantic does; Ctrl-C stays Ctrl-C."""
        with _ctrl_c_as_it_is():
            return super().model_dump(**how)

    def model_dump_json(self, **how: Any) -> str:
        """Return the values as JSON as pydantic does; Ctrl-C stays Ctrl-C."""
        with _ctrl_c_as_it_is():
            return super().model_dump_json(**how)


class ByKind:
    """Annotates a base class: the value is of the model that its key ``kind`` names.

    ``kinds`` maps a kind to ``"module:Class"``; a model is imported when its kind is met. Errors,
    dumps and schemas are those of pydantic's union of all models.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds

    def model(self, kind: str) -> type[BaseModel]:
        """Return the model of a kind."""
        found: type[BaseModel] = resolve_name(self.kinds[kind])
        return found

    def models(self) -> tuple[type[BaseModel], ...]:
        """Return every model."""
        return tuple(map(self.model, self.kinds))

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        made = core_schema.with_info_plain_validator_function
        choices: dict[Any, Mapping[str, Any]] = {
            kind: made(partial(self._validated, kind)) for kind in self.kinds
        }
        return core_schema.tagged_union_schema(choices, discriminator="kind")

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        choices = {kind: self.model(kind).__pydantic_core_schema__ for kind in self.kinds}
        return handler(core_schema.tagged_union_schema(choices, discriminator="kind"))

    def _validated(self, kind: str, value: Any, info: ValidationInfo) -> BaseModel:
        return self.model(kind).model_validate(value, context=info.context)


@contextmanager
def _ctrl_c_as_it_is() -> Iterator[None]:
    """Raise KeyboardInterrupt where pydantic made an error of it.

    It does so with whatever a serializer raises, and keeps no cause where models are nested.
    """
    try:
        yield
    except PydanticSerializationError as error:
        if str(error).endswith(": KeyboardInterrupt: "):
            raise KeyboardInterrupt from error
        raise


class ShortDumpModel(StrictModel):
    """A model whose ``later`` keys stay out of dumps while they have their default.

    A scenario's digest is taken of its dump: a new key would change that of every scenario, and
    with it the identity of every recorded result that does not use the key.
    """

    later: ClassVar[Collection[str]] = ()

    @model_serializer(mode="wrap")
    def _without_later_keys(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        for key in self.later:
            if getattr(self, key) == type(self).model_fields[key].default:
                values.pop(key, None)
        return values


def _holds_truth(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_truth(item) for item in value)
    return isinstance(value, bool)


def _takes_truth(annotation: Any) -> bool:
    return annotation in (bool, Any, object) or any(map(_takes_truth, get_args(annotation)))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file; raise :class:`ConfigError` naming file and line."""
    return parse_toml(read_text(path), str(path))


def load_toml(
    path: str | Path, model: type[Model], defaults: Mapping[str, Any] | None = None
) -> Model:
    """Read a TOML file into ``model``; ``defaults`` fill keys that the file leaves out.

    Paths inside the file are relative to its folder. Raises :class:`ConfigError`.
    """
    path = Path(path)
    data = {**(defaults or {}), **read_toml(path)}
    return validate(data, model, source=str(path), folder=path.parent)


def load_json(path: Path, model: type[Model], most: int = MOST_BYTES) -> Model:
    """Read a JSON file that a program wrote into ``model``; raises :class:`ConfigError`."""
    return validate(json_object(read_text(path, most), str(path)), model, source=str(path))


def json_object(text: str | bytes, source: str) -> dict[str, Any]:
    """Return the object of a JSON text; errors are ConfigErrors that begin with ``source``."""
    try:
        data = parse_json(text)
    except ValueError as error:
        raise ConfigError(f"{source}: not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{source}: expected an object of JSON, got {quote(data)}")
    return data


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
        return f"{source}: unknown key {quote(key)}{inside}{did_you_mean(key, known)}"
    if kind in ("missing", "unexpected_positional_argument") and spot.place.endswith("]"):
        row, _, _ = where.rpartition("[")
        return f"{row}: wrong number of values{spot.meaning()}"
    if kind == "missing":
        return f"{where}: this key is missing{spot.meaning()}{_misspelt(errors)}"
    if kind == "union_tag_not_found":
        return f"{where}: the key 'kind' is missing; expected one of {_tags(spot.inside)}"
    if kind == "union_tag_invalid":
        tags = [tag.strip("'") for tag in str(ctx["expected_tags"]).split(", ")]
        return f"{where}: unknown kind {quote(ctx['tag'])}{did_you_mean(str(ctx['tag']), tags)}"
    if kind == "literal_error":
        names = str(ctx["expected"]).replace(" or ", ", ").split(", ")
        hint = did_you_mean(str(value), [name.strip(" '") for name in names])
        return f"{where}: unknown value {quote(value)}{hint}"
    expected = first["msg"].replace("Input should be", "expected")
    return f"{where} = {quote(value)}: {expected}"


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
    return _Spot(printable(place.lstrip(".")[:200]), key, owners, inside)


def _models(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Return the models that an annotation mentions, unions and containers included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    if isinstance(annotation, ByKind):
        return annotation.models()
    return tuple(model for arg in get_args(annotation) for model in _models(arg))


def _tags(models: Iterable[type[BaseModel]]) -> list[str]:
    """Return what distinguishes the models of a union: ``kind``, or the ``name`` of schemes."""
    fields = [(m.model_fields, key) for m in models for key in ("kind", "name")]
    return [own[key].default for own, key in fields if key in own]


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
