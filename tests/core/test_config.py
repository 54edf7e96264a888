"""Reading configuration: one sentence per problem, with file, key, value and expectation."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field, ValidationError

from dcqcn_gym.core.config import ShortDumpModel, StrictModel, export_schemas, load_toml, validate
from dcqcn_gym.core.errors import ConfigError


class Inner(StrictModel):
    size: int = Field(ge=1, description="a size in bytes")
    mode: Literal["fast", "slow"] = "fast"


class Outer(StrictModel):
    name: str
    share: float = 0.5
    inner: Inner
    more: tuple[Inner, ...] = ()


def _load(tmp_path: Path, text: str) -> Outer:
    path = tmp_path / "it.toml"
    path.write_text(text)
    return load_toml(path, Outer)


def test_good_file_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "it.toml"
    path.write_text("[inner]\nsize = 3\n")
    assert load_toml(path, Outer, {"name": "x"}) == Outer(name="x", inner=Inner(size=3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name = "x"', "inner: this key is missing"),
        ('name = "x"\n[inner]', "inner.size: this key is missing; expected a size in bytes"),
        ('nam = "x"\n[inner]\nsize = 1', "name: this key is missing"),
        ('name = "x"\nshares = 1\n[inner]\nsize = 1', "unknown key 'shares'; did you mean 'share'"),
        ('name = "x"\n[inner]\nsize = 0', "inner.size = 0: expected greater than or equal to 1"),
        ('name = "x"\n[inner]\nsise = 0\nsize = 1', "unknown key 'sise' in [inner]; did you mean"),
        (
            'name = "x"\n[inner]\nsize = 1\nmode = "fastest"',
            "inner.mode: unknown value 'fastest'; did you mean 'fast'? (known: fast, slow)",
        ),
        (
            'name = "x"\n[inner]\nsize = 1\n[[more]]\nsize = 1\n[[more]]\nsize = "b"',
            "more[1].size = 'b': expected a valid integer",
        ),
        ('name = "x"\nshare = nan\n[inner]\nsize = 1', "share = nan: expected a finite number"),
        ('name = "x', "not valid TOML"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert expected in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'it.toml'}: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_toml(tmp_path / "no.toml", Outer)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_toml(tmp_path, Outer)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_toml(tmp_path / "binary.toml", Outer)


def test_validate_names_the_source() -> None:
    with pytest.raises(ConfigError, match=r"^--arg: size = -1: expected"):
        validate({"size": -1}, Inner, source="--arg")


def test_models_are_frozen() -> None:
    inner = Inner(size=1)
    with pytest.raises(ValidationError):
        inner.size = 2


def test_schemas_are_written(tmp_path: Path) -> None:
    (path,) = export_schemas(tmp_path / "new", {"outer": Outer})
    assert path.name == "outer.json"
    assert '"additionalProperties": false' in path.read_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name = "x"\n[inner]\nsize = 1\nsize = 2', "line 4: 'size' is there for the second time"),
        ('name = "x"\n[inner]\nsize = 1\n[inner]', "line 4: '[inner]' is there for the second"),
        (
            'name = "x"\n[inner]\nsize = true',
            "inner: size = True: expected no true or false, a size in bytes",
        ),
        (
            'name = "x"\nshare = false\n[inner]\nsize = 1',
            "share = False: expected no true or false",
        ),
        (
            'name = "x"\n[inner]\nsize = 9223372036854775808',
            "inner.size is 9223372036854775808; expected at most 64 bits",
        ),
        ('name = "x"\n[inner]\nsize = 1\n[[more]]\nsize = -1' + "0" * 30, "more[0].size is -1000"),
        (
            'name = "x"\n[inner]\nsize = 1' + "0" * 5001,
            "line 3: a whole number has thousands of digits",
        ),
        ('name = "x"\ny = ' + "[" * 50_000, "nested too deeply"),
        ('nam = "x"\n[inner]\nsize = 1', "missing; the unknown key 'nam' may be meant for it"),
        ('name = "x"\n[inner]\nsiz = 1', "bytes; the unknown key 'siz' may be meant for it"),
    ],
)
def test_bad_toml_is_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    message = str(caught.value)
    assert expected in message
    assert message.startswith(f"{tmp_path / 'it.toml'}: ")
    assert "\n" not in message
    assert len(message) < 300


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "it.toml"
    path.write_bytes(b'\xef\xbb\xbfname = "x"\n[inner]\nsize = 9223372036854775807\n')
    assert load_toml(path, Outer).inner.size == 2**63 - 1


class Interrupted(int):
    """A number at which Ctrl-C is pressed once it is compared."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        raise KeyboardInterrupt


class Grown(ShortDumpModel):
    later = ("size",)
    size: int = 1


class Holder(ShortDumpModel):
    grown: Grown


def test_ctrl_c_in_a_dump_is_no_error_of_pydantic() -> None:
    """Seen once in 40 interrupted commands: a traceback and exit status 1 instead of 130."""
    grown = Grown.model_construct(size=Interrupted(2))
    for model in (grown, Holder.model_construct(grown=grown)):
        with pytest.raises(KeyboardInterrupt):
            model.model_dump()
        with pytest.raises(KeyboardInterrupt):
            model.model_dump_json()
