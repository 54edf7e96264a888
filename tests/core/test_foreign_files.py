"""Files and texts from somewhere else: whatever they are, one sentence of bounded length."""

from __future__ import annotations

import gzip
import importlib
import os
from pathlib import Path

import pytest

from dcqcn_gym.core.config import StrictModel, read_toml, validate
from dcqcn_gym.core.errors import (
    QUOTED,
    ConfigError,
    MissingExtraError,
    UnknownNameError,
    did_you_mean,
    in_one_line,
    printable,
    quote,
)
from dcqcn_gym.core.files import parse_json, read_file, read_text
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.scenario.tables import read_cdf, read_flows

MINI = (Path(__file__).parents[2] / "configs" / "scenarios" / "mini-fb-hadoop.toml").read_text()


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused_before_it_is_read(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: cannot be read: it is a device"):
        read_file(Path(name))


def test_a_pipe_a_directory_and_a_long_file_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for read in (read_cdf, read_flows):  # would block for ever
        with pytest.raises(ConfigError, match="it is a pipe; expected a file"):
            read(pipe)
    with pytest.raises(ConfigError, match="it is a directory; expected a file"):
        read_toml(tmp_path)
    (tmp_path / "long").write_bytes(b"12345")
    with pytest.raises(ConfigError, match="has 5 bytes; expected at most 4"):
        read_file(tmp_path / "long", most=4)


@pytest.mark.parametrize("cdf", ["/dev/zero", "/"])
def test_a_scenario_that_names_a_device_or_directory(tmp_path: Path, cdf: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINI.replace('cdf = "FB_Hadoop"', f'cdf = "{cdf}"'))
    with pytest.raises(ConfigError, match="cannot be read: it is a d"):
        load_scenario(path)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINI.replace("\n", "\r\n").encode())
    assert load_scenario(path).n_hosts > 1
    assert read_text(path).startswith(MINI[:20].split("\n")[0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = " + "[" * 3000, "nested too deeply; expected at most 32 levels"),
        ("x = " + "[" * 40 + "]" * 40, "nested too deeply"),
        (".".join(["a"] * 300) + " = 1", "nested too deeply"),
        ("x = " + "1" * 5001, "thousands of digits"),
        ("[a]\nx = [1, " + "1" * 400 + "]", r"a\.x\[1\] is a whole number of 1326 bits"),
        ("x = 9223372036854775808", "x is 9223372036854775808; expected at most 64 bits"),
        ("a = 1\nb = 2\na = 3", "line 3: 'a' is there for the second time"),
        ("[t]\na = 1\n[t]\n", r"line 3: '\[t\]' is there for the second time"),
        ("a = ", "not valid TOML: Invalid value"),
    ],
)
def test_toml_texts(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=f"^mine.toml: .*{says}") as caught:
        parse_toml(text, "mine.toml")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "1e400", "[" * 100_000])
def test_json_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|beyond|nested"):
        parse_json(text)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("0,1," + "9" * 400 + ",0", "line 1: bytes = '9"),
        ("0,1," + "9" * 5001 + ",0", "line 1: bytes = '9"),
        ("0,1,9223372036854775808,0", "expected a whole number"),
        ("0,1,1125899906842625,0", "expected at most 1125899906842624"),
        ("0,1,5,1e400", "start_ns = '1e400'; expected a number"),
        ("0,1,\x1b[31m,0", r"bytes = '\\x1b\[31m'"),
    ],
)
def test_numbers_in_tables(tmp_path: Path, row: str, says: str) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(row)
    with pytest.raises(ConfigError, match=says) as caught:
        read_flows(path)
    assert len(str(caught.value).removeprefix(str(path))) < 2 * QUOTED
    path.write_text("9" * 400 + ",1")
    with pytest.raises(ConfigError, match="expected a whole number"):
        read_cdf(path)


def test_a_table_without_a_point_names_no_line(tmp_path: Path) -> None:
    path = tmp_path / "cdf.csv"
    path.write_text("# nothing\n")
    with pytest.raises(ConfigError, match=r"cdf\.csv: holds no point; expected lines bytes"):
        read_cdf(path)


class Both(StrictModel):
    """A number, a switch and a list."""

    number: int = 1
    switch: bool = False
    numbers: tuple[int, ...] = ()


def test_true_is_no_number() -> None:
    assert validate({"switch": True, "numbers": [1]}, Both, source="x").switch
    for bad in ({"number": True}, {"numbers": [1, False]}):
        with pytest.raises(ConfigError, match="expected no true or false"):
            validate(bad, Both, source="x")


def test_intervals_in_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINI.replace("intervals = 100", "intervals = true"))
    with pytest.raises(ConfigError, match="intervals = True: expected no true or false"):
        load_scenario(path)


class _Rude:
    def __repr__(self) -> str:
        raise ValueError


def test_what_is_quoted_is_short_and_printable() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (
        "y" * 10**7,
        10**5000,
        deep,
        _Rude(),
        "\x1b[31m" * 50,
        b"\x00" * 10**6,
        [1] * 999,
    ):
        assert len(quote(value)) <= QUOTED
        assert quote(value).isprintable()
    assert quote("x") == "'x'"
    assert printable("a\x1b[31m\u202eb") == r"a\x1b[31m\u202eb"
    assert len(in_one_line(ValueError("y" * 10_000))) < 450
    assert "\x1b" not in in_one_line(ValueError("\x1b[31m"))


def test_unknown_names() -> None:
    assert len(str(UnknownNameError("tuner", "y" * 10**6, ["paraleon"]))) < 200
    assert did_you_mean("x", []) == "; there is none"


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("root:*:20228:0:99999:7:::\n", "comma"),
        ("sudo:x:20228:ann,bob\n", "number"),
        ("a:20228,b,c\n", "number"),
    ],
)
def test_what_is_no_table_shows_nothing_of_it(tmp_path: Path, text: str, lacks: str) -> None:
    other = tmp_path / "other.csv"
    other.write_text(text)
    with pytest.raises(ConfigError, match=rf"other\.csv line 1 has no {lacks}; expected") as error:
        read_cdf(other)
    assert "20228" not in str(error.value)


def test_a_package_that_cannot_be_loaded_is_not_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torn.py").write_text("raise ImportError('libtorn.so: cannot map segment')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, words in (("torn", "cannot be loaded (ImportError: libtorn.so"), ("gone", "pip ")):
        try:
            importlib.import_module(name)
        except ImportError:
            said = str(MissingExtraError("tearing", "report"))
        assert words in said
    assert "pip " in str(MissingExtraError("tearing", "report"))


def test_a_packed_table_says_to_unpack_it(tmp_path: Path) -> None:
    packed = tmp_path / "flows.csv.gz"
    packed.write_bytes(gzip.compress(b"src,dst,bytes,start_ns\n0,1,1000,0\n"))
    with pytest.raises(ConfigError, match=r"compressed \(gzip\); expected text, so unpack it"):
        read_flows(packed)


def test_a_name_that_is_too_long_for_a_file_is_an_unknown_one(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text(MINI.replace('"FB_Hadoop"', f'"{"x" * 300}"'))
    with pytest.raises(ConfigError, match=r"long\.toml: .*unknown CDF 'xxx"):
        load_scenario(file)
