"""A backend of one's own, as CONTRIBUTING's recipe has it: one file, one registration, the kit."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import BackendError, ConfigError, UnknownNameError
from dcqcn_gym.envs.backends import BACKENDS, BUILTIN, Backend, backend_names, make_backend
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.testing.backend_case import BackendCase
from hand_made import install_plugin

TOY = Path(__file__).with_name("toy_backend.py")


class TestTheKitOnIt(BackendCase):
    """The conformance kit on the file alone."""

    def new_backend(self) -> Backend:
        return make_backend(f"{TOY}:ToyBackend")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages with the toy in it."""
    folder = tmp_path / "site"
    folder.mkdir()
    shutil.copy(TOY, folder / "their_world.py")
    points = {"toy": "their_world:ToyBackend", "toy-share": "their_world:ToyShareBackend"}
    install_plugin(folder, "their-backend", "dcqcn_gym.backends", points)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "their_world", raising=False)
    return folder


def tune(tmp_path: Path, backend: str, tuner: str = "random") -> str:
    words = ["tune", "--scenario", "mini-fb-hadoop", "--tuner", tuner, "--backend", backend]
    words += ["--intervals", "4", "--eval-seeds", "0", "--no-report", "--quiet"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    return str(done.exception) if done.exception else ""


def test_it_runs_by_its_file(tmp_path: Path, in_threads: None) -> None:
    assert tune(tmp_path, f"{TOY}:ToyBackend") == ""
    run = read_run(tmp_path / "out")
    assert run.complete
    assert run.header["backend"] == f"{TOY}:ToyBackend"
    assert not any(line["idle"] for line in run.intervals)


def test_it_is_found_by_its_entry_point(site: Path) -> None:
    assert backend_names() == sorted(
        {*BACKENDS.builtin, "toy"} - {"hardware", "native-threads", "replay"}
    )
    assert make_backend("toy").offers == {"per_switch"}
    unknown = make_backend("toy").unknown
    assert {"fsd.kl", "finished.ideal_fct_ps"} < unknown
    assert all(name == "fsd.kl" or name.startswith("finished.") for name in unknown)
    with pytest.raises(UnknownNameError, match=r"did you mean 'toy'.*replay:FILE.*toy-share:SHARE"):
        make_backend("tyo")


def test_it_runs_by_its_name(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(site))  # the references run in other processes
    assert tune(tmp_path, "toy") == ""
    assert read_run(tmp_path / "out").complete


def test_its_argument_follows_a_colon(site: Path) -> None:
    for name in ("toy-share:0.5", f"{TOY}:ToyShareBackend:0.5"):
        assert type(make_backend(name)).__name__ == "ToyShareBackend"
    for name in ("toy-share", "toy-share:", f"{TOY}:ToyShareBackend"):
        with pytest.raises(ConfigError, match=r"needs an argument; expected .*:SHARE"):
            make_backend(name)
    with pytest.raises(ConfigError, match="share 'all': expected a number"):
        make_backend("toy-share:all")
    for name in ("toy:1", "native:fast", f"{TOY}:ToyBackend:"):
        with pytest.raises(ConfigError, match="takes no argument; got"):
            make_backend(name)
    with pytest.raises(ConfigError, match="needs an argument; expected replay:FILE"):
        make_backend("replay")


def test_a_tuner_that_needs_more_than_it_offers_is_refused(tmp_path: Path) -> None:
    says = tune(tmp_path, f"{TOY}:ToyBackend", "per-group")
    assert "needs to see the flow-size distribution" in says
    assert not (tmp_path / "out").exists()


GOOD = """
class Fabric:
    offers = frozenset({"fsd"})
    unknown = frozenset()
    done = False
    def open(self, scenario, seed): pass
    def apply(self, setting): pass
    def advance(self, duration_ps=None): pass
    def close(self): pass
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", None),
        ("class Fabric", "class Fabrik", "unknown class 'Fabric'; did you mean 'Fabrik'"),
        ("class Fabric:", "class Other:", r"unknown class 'Fabric'.*\(known: Other\)"),
        ("class Fabric:", "Fabric = 7\nclass Other:", "Fabric is of type int; expected a class as"),
        ("def advance", "def advanec", "lacks advance .*its 'advanec' may be meant as 'advance'"),
        ("    def close(self): pass", "", "lacks close of dcqcn_gym.envs.backends.base.Backend"),
        ("    done = False", "", "lacks done"),
        ("offers = ", "offer = ", "lacks offers .*its 'offer' may be meant as 'offers'"),
        ('{"fsd"}', '{"fds"}', "offers hold the unknown name 'fds'; did you mean 'fsd'"),
        ('frozenset({"fsd"})', '"fsd"', "offers = 'fsd'; expected a set of names"),
        ("unknown = frozenset()", "unknown = {'rtt_sum'}",
         "unknown hold the unknown name 'rtt_sum'; did you mean 'rtt_sum_ps'"),
        ("unknown = frozenset()", "unknown = None", "unknown = None; expected a set of names"),
        ("unknown = frozenset()", "unknown = {'finished.ideal_fct_ps'}",
         "its unknown: .*'finished.ideal_fct_ps' is unknown but .*known whole or not at all"),
        ("unknown = frozenset()", "unknown = {'start_ps'}", "'start_ps' cannot be unknown"),
        ("    done = False", "    done = False\n    def __init__(self, a): pass",
         "cannot be made: TypeError"),
        ("class Fabric:", "1 / 0\nclass Fabric:", "cannot be imported: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_class_that_is_no_backend(old: str, new: str, says: str | None, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    if says is None:
        assert isinstance(make_backend(f"{path}:Fabric"), Backend)
        return
    with pytest.raises((ConfigError, BackendError), match=says) as caught:
        make_backend(f"{path}:Fabric")
    assert "own.py" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_class_that_only_repeats_the_protocol_is_no_backend(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "from dcqcn_gym.envs.backends import Backend\n"
        "class Fabric(Backend):\n"
        "    offers = unknown = frozenset()\n"
        "    def open(self, scenario, seed): pass\n"
    )
    with pytest.raises(ConfigError, match="lacks apply, advance, close, done of"):
        make_backend(f"{path}:Fabric")


@pytest.mark.parametrize("group", ["dcqcn_gym.backends", "dcqcn_gym.tuners"])
@pytest.mark.parametrize(
    ("points", "says"),
    [
        ({"mine": "gone_module:Mine"}, "gone_module cannot be imported: ModuleNotFoundError"),
        ({"mine": "their_mine"}, "entry point 'their_mine' of one names no class; expected module"),
        ({"mine": "their_mine:Mime"}, "unknown class 'Mime'"),
        ({"mine": "their_mine:function"}, "function is of type function; expected a class as"),
        ({"mine": "their_mine:Plain"}, "Plain is "),
    ],
)
def test_a_wrong_entry_point(
    group: str, points: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_mine.py").write_text("def function(): pass\nclass Plain: pass\n")
    install_plugin(tmp_path, "one", group, points)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_mine", raising=False)
    with pytest.raises(ConfigError, match=f"{_kind(group)} 'mine': .*{says}") as caught:
        _make(group, "mine")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("group", ["dcqcn_gym.backends", "dcqcn_gym.tuners"])
def test_two_packages_of_one_name(
    group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, "one", group, {"mine": "a:Mine"})
    install_plugin(tmp_path, "two", group, {"mine": "b:Mine", next(iter(BUILTIN)): "b:Mine"})
    monkeypatch.syspath_prepend(str(tmp_path))
    says = r"'mine' is registered twice, by one \(a:Mine\) and two \(b:Mine\); remove one"
    with pytest.raises(ConfigError, match=says):
        _make(group, "mine")
    assert type(make_backend("fake")).__name__ == "FakeBackend"  # a built-in cannot be replaced


def _kind(group: str) -> str:
    return group.rpartition(".")[2].rstrip("s")


def _make(group: str, name: str) -> object:
    from dcqcn_gym.tuners import make_tuner

    return make_tuner(name) if group.endswith("tuners") else make_backend(name)
