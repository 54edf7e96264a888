"""Finding plug-ins by name, entry point and file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.registry import Registry
from dcqcn_gym.tuners import BUILTIN, TUNERS

PLUGIN = """
from dcqcn_gym.tuners import Tuner

class Mine(Tuner):
    name = "mine"
    summary = "keeps what is there"
    def ask(self):
        return None

class NotATuner:
    pass
"""


def test_every_builtin_loads_under_its_own_name() -> None:
    assert BUILTIN
    for name in BUILTIN:
        assert TUNERS.load(name).name == name


def test_unknown_name_offers_near_matches() -> None:
    with pytest.raises(UnknownNameError, match="unknown tuner 'paralon'; did you mean 'paraleon'"):
        TUNERS.load("paralon")
    with pytest.raises(ConfigError, match=r"'mine:Mine': expected a name, or FILE\.py:Class"):
        TUNERS.load("mine:Mine")


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    first = TUNERS.load(f"{path}:Mine")
    assert first.summary == "keeps what is there"
    assert TUNERS.load(f"{path}:Mine") is first
    path.write_text(PLUGIN.replace("keeps what is there", "another text"))
    assert TUNERS.load(f"{path}:Mine").summary == "another text"


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (PLUGIN, "Mime", "unknown class 'Mime'; did you mean 'Mine'"),
        (PLUGIN, "NotATuner", "NotATuner is not a subclass of dcqcn_gym.tuners.base.Tuner"),
        ("def (", "Mine", r"cannot be imported: SyntaxError.*\(line 1\)"),
        ("import nothing_like_that", "Mine", "cannot be imported: ModuleNotFoundError"),
        ("1 / 0", "Mine", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_bad_file(tmp_path: Path, text: str, name: str, says: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        TUNERS.load(f"{path}:{name}")


def test_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a long path is cut in the middle
    with pytest.raises(ConfigError, match=r"none\.py' cannot be read: No such file"):
        TUNERS.load("./none.py:Mine")


def test_an_installed_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_tuners.py").write_text(PLUGIN)
    info = tmp_path / "their_tuners-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-tuners\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[dcqcn_gym.tuners]\n"
        "theirs = their_tuners:Mine\n"
        "broken = their_tuners_are_gone:Mine\n"
        "paraleon = their_tuners:Mine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_tuners", raising=False)
    assert TUNERS.names() == [*BUILTIN, "broken", "theirs"]
    assert TUNERS.load("theirs").name == "mine"
    assert TUNERS.load("paraleon").name == "paraleon"  # a built-in cannot be replaced
    with pytest.raises(ConfigError, match=r"tuner 'broken'.*ModuleNotFoundError"):
        TUNERS.load("broken")


def test_other_kinds_use_the_same_registry() -> None:
    numbers: Registry[int] = Registry("number", "no.such.group", int, {"truth": "builtins:bool"})
    assert numbers.names() == ["truth"]
    assert numbers.load("truth") is bool
