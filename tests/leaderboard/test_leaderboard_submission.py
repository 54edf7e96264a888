"""Submissions: what is written is accepted; whatever is wrong with one is one clear sentence."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from submissions import (
    AUTHOR,
    CALM,
    DAY,
    Here,
    edit_json,
    leaderboard_of,
    plugin,
    submission_of,
    verdicts,
    verified,
)
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard import submission as module
from dcqcn_gym.benchmarks.leaderboard.plugin_code import (
    differing_packages,
    plugin_files,
    requirements,
)
from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard, start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.site.pages import write_site
from dcqcn_gym.benchmarks.leaderboard.submission import open_submission, write_list
from dcqcn_gym.benchmarks.leaderboard.submit import submit
from dcqcn_gym.benchmarks.leaderboard.verification import (
    files_digest,
    read_verification,
    verdict_file,
)
from dcqcn_gym.benchmarks.leaderboard.verify import Verifier
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, RunError, UnknownNameError
from hand_made import install_plugin

LOG = "logs/00-fast-uplinks-steady/online-00.jsonl.gz"


@pytest.fixture(scope="module")
def good(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a submission of a built-in tuner."""
    return submission_of(suite, "random", tmp_path_factory.mktemp("good"))


@pytest.fixture
def bad(good: Path, tmp_path: Path) -> Path:
    """Return a copy of it, to be spoiled."""
    return Path(shutil.copytree(good, tmp_path / "submission"))


def text(path: Path, old: str, new: str) -> None:
    found = path.read_text()
    assert old in found
    path.write_text(found.replace(old, new))
    write_list(path.parent)


def listed(folder: Path, name: str, size: int = 1) -> None:
    """Add a file to the list, whether it is there or not."""
    entry = {"sha256": "0" * 64, "bytes": size}
    edit_json(folder / "files.json", lambda value: value["files"].update({name: entry}))


def test_a_submission_of_a_built_in_tuner_is_verified(suite: str, bad: Path) -> None:
    found = verified(bad, suite, problem=lambda: "nobody needs it")
    assert found.status == "verified"
    path = verdict_file(verdicts(bad), "tiny", "random")
    assert found == read_verification(path, files_digest(bad))
    assert found.checked == {"replayed": 2, "repeated": 2, "fresh": 1}
    assert not found.findings
    assert set(found.risks) == {"reported", "fresh"}
    before = path.read_bytes()
    verified(bad, suite, problem=lambda: "nobody needs it")
    assert path.read_bytes() == before


def test_the_same_leaderboard_gives_the_same_submission(good: Path, tmp_path: Path) -> None:
    again = submit(
        open_leaderboard(good.parent / "leaderboard"), "random", tmp_path / "again", **AUTHOR
    )
    assert (again / "files.json").read_bytes() == (good / "files.json").read_bytes()


Spoil = Callable[[Path], object]


def about(old: str, new: str) -> Spoil:
    """Edit what the submission says of itself."""
    return lambda folder: text(folder / "submission.toml", old, new)


def gone(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def remade(name: str, change: Spoil) -> Spoil:
    """Spoil something and list the files again."""

    def spoil(folder: Path) -> None:
        change(folder / name)
        write_list(folder)

    return spoil


def linked(name: str, to: str = "") -> Spoil:
    """Put a link where a file was, to another place or to the file."""

    def spoil(folder: Path) -> None:
        path = folder / name
        if path.exists():
            path.rename(folder.parent / "moved")
        path.symlink_to(to or folder.parent / "moved")

    return spoil


def bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(bytes(2**22)))


BAD: dict[str, tuple[Spoil, str]] = {
    "no list": (gone("files.json"), "no such file"),
    "missing file": (gone(LOG), "online-00.jsonl.gz: no such file, but files.json lists it"),
    "missing part": (remade("results.json", Path.unlink), "results.json is not listed"),
    "missing log": (remade(LOG, Path.unlink), "no such file; the suite asks it"),
    "one log too many": (
        remade(LOG, lambda p: shutil.copy(p, p.with_name("online-01.jsonl.gz"))),
        "online-01.jsonl.gz: the suite asks no such run",
    ),
    "list is no JSON": (lambda f: (f / "files.json").write_text("{"), "not valid JSON"),
    "newer list": (
        lambda f: edit_json(f / "files.json", lambda v: v.update(schema=3)),
        "schema 3; this version of dcqcn-gym reads schema 2: update dcqcn-gym",
    ),
    "newer schema": (
        about("schema = 2", "schema = 9"),
        "schema 9; this version of dcqcn-gym reads schema 2: update dcqcn-gym",
    ),
    "no schema number": (
        about("schema = 2", 'schema = "x"'),
        "schema = 'x'",
    ),
    "other version": (
        about('version = "', 'version = "9.'),
        "made with dcqcn-gym 9.* an entry belongs to one version",
    ),
    "other suite": (
        about('suite_digest = "', 'suite_digest = "f'),
        "was run on suite 'tiny' with the digest f",
    ),
    "a suite by its path": (
        about('"tiny"', '"entry/plugin"'),
        "suite = 'entry/plugin'",
    ),
    "unknown category": (
        about('"online"', '"onlin"'),
        "did you mean 'online'",
    ),
    "no authors": (
        about('["A. Nonymous"]', "[]"),
        "authors",
    ),
    "the default": (
        about('name = "random"', 'name = "default"'),
        "name: 'default' reads like 'default', which is built in",
    ),
    "name with a path": (
        about('name = "random"', 'name = "../../random"'),
        "name = '../../random'",
    ),
    "up and out": (lambda f: listed(f, "plugin/../../x"), "is no name of a file inside"),
    "absolute": (lambda f: listed(f, "/etc/passwd"), "is no name of a file inside"),
    "backslash": (lambda f: listed(f, "plugin\\x"), "is no name of a file inside"),
    "line end in a name": (lambda f: listed(f, "plugin/a\nb"), "is no name of a file inside"),
    "file with no place": (lambda f: listed(f, "run.sh"), "has no place in a submission"),
    "log with no place": (lambda f: listed(f, "logs/x/y.jsonl"), "has no place in a submission"),
    "huge": (lambda f: listed(f, "plugin/weights.npz", 2**40), "too large: 1099.* at most"),
    "huge code": (lambda f: listed(f, "plugin/weights.npz", 2**30), "of them code; expected"),
    "other size": (lambda f: (f / "results.json").write_text("{}"), "has 2 bytes; files.json says"),
    "not listed": (
        lambda f: (f / "logs" / "more.txt").write_text("x"),
        "more.txt: files.json does not list this file",
    ),
    "changed": (
        lambda f: (f / "requirements.txt").write_bytes(
            (f / "requirements.txt").read_bytes().replace(b"numpy", b"nunpy")
        ),
        "requirements.txt: was changed",
    ),
    "link to a file": (linked(LOG, "/etc/passwd"), "is a link; a submission holds none"),
    "link to its own file": (linked(LOG), "is a link; a submission holds none"),
    "link to a folder": (linked("plugin", "/etc"), "plugin: is a link; a submission holds none"),
    "list is a link": (linked("files.json"), "files.json: is a link"),
    "pipe": (
        lambda f: os.mkfifo(f / "plugin.pipe"),
        "plugin.pipe: is neither a file nor a folder",
    ),
    "log that is no gzip": (
        remade(LOG, lambda p: p.write_bytes(b"no")), "cannot be unpacked"
    ),
    "log cut off": (
        remade(LOG, lambda p: p.write_bytes(p.read_bytes()[:-20])), "it is cut or extended"
    ),
    "log that unpacks to too much": (remade(LOG, bomb), "larger than 1048576 bytes when unpacked"),
    "requirements with options": (
        remade("requirements.txt", lambda p: p.write_text("--index-url http://x\n")),
        "is no pinned package",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_submission_is_one_sentence(
    suite: str, bad: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil, words = BAD[name]
    monkeypatch.setattr(module, "MOST_LOG_BYTES", 2**20)
    spoil(bad)
    with pytest.raises(DcqcnGymError, match=words) as caught:
        verified(bad, suite)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert not verdicts(bad).exists()


def test_no_folder_and_no_day(suite: str, good: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no folder; expected what bench submit has written"):
        open_submission(tmp_path / "nowhere")
    words = ["bench", "verify", str(good), "--date", "tomorrow", "--quiet"]
    assert "is no day" in str(CliRunner().invoke(app, words).exception)


def test_other_packages_are_a_finding(suite: str, bad: Path) -> None:
    path = bad / "requirements.txt"
    lines = path.read_text().splitlines()
    numpy = next(i for i, line in enumerate(lines) if line.startswith("numpy=="))
    lines[numpy] = "numpy==1.0"
    path.write_text("\n".join([*lines, "no-such-package==3", ""]))
    write_list(bad)
    found = verified(bad, suite)
    assert found.status == "verified"
    assert [one.name for one in found.findings] == ["other-packages"]
    assert "not 1.0; no-such-package 3 is not installed" in found.findings[0].text


def test_requirements_are_pinned_and_hashed() -> None:
    lines = requirements("random").splitlines()
    assert all("==" in line for line in lines)
    names = [line.partition("==")[0].lower() for line in lines]
    assert {"numpy", "pydantic", "gymnasium", "dcqcn-gym"} <= set(names)
    assert "pytest" not in names
    assert all(("sha256:" in line) == (not line.startswith("dcqcn-gym")) for line in lines)
    assert differing_packages(requirements("random")) == []
    numpy = next(line for line in lines if line.startswith("numpy=="))
    other = numpy.replace("sha256:", "sha256:0")[:-1]
    assert differing_packages(other) == [f"{numpy.split()[0].replace('==', ' ')} is another build"]


def test_code_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    (tmp_path / "table.npz").write_bytes(b"1")
    found = plugin_files(f"{file}:Mine", [tmp_path / "table.npz"])
    assert found == {"mine.py": b"x = 1\n", "table.npz": b"1"}
    with pytest.raises(ConfigError, match="is built in; it takes no --include"):
        plugin_files("random", [file])


def test_code_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install_plugin(tmp_path, "their-tuner", "dcqcn_gym.tuners", {"theirs": "theirs:Theirs"})
    (tmp_path / "theirs.py").write_text("x = 1\n")
    with pytest.raises(ConfigError, match="has no list of its files; install it"):
        plugin_files("theirs", [])
    info = next(tmp_path.glob("*.dist-info"))
    kept = ["theirs.py", f"{info.name}/METADATA", f"{info.name}/entry_points.txt"]
    others = [f"{info.name}/direct_url.json", "__pycache__/theirs.pyc", "../../bin/theirs"]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in [*kept, *others]))
    assert set(plugin_files("theirs", [])) == set(kept)
    assert "their-tuner" not in requirements("theirs")
    (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    with pytest.raises(ConfigError, match="is installed as editable; install it"):
        plugin_files("theirs", [])


def test_a_suite_that_is_not_of_the_package_has_to_be_given(good: Path, tmp_path: Path) -> None:
    by = Verifier(tmp_path, DAY, "salt")
    with pytest.raises(ConfigError, match="suite 'tiny', which is none of the package; give"):
        by.verify(good)


def test_an_entry_that_cannot_be_submitted(suite: str, good: Path, tmp_path: Path) -> None:
    board = leaderboard_of(suite, "expert", tmp_path / "leaderboard")
    with pytest.raises(UnknownNameError, match=r"unknown entry of .* did you mean 'expert'"):
        submit(board, "exper", tmp_path / "out", **AUTHOR)
    with pytest.raises(RunError, match="already holds something"):
        submit(board, "expert", good, **AUTHOR)
    study = board.out / "study.json"
    whole = study.read_bytes()
    edit_json(study, lambda value: value["versions"].update(dcqcn_gym="9.0"))
    with pytest.raises(RunError, match=r"was made by other code: version 9\.0 instead of"):
        submit(board, "expert", tmp_path / "out", **AUTHOR)
    study.write_bytes(whole)
    board.attempts(board.entries[1])[0].logs[1].unlink()
    with pytest.raises(RunError, match=r"bench run --out .* makes them"):
        submit(board, "expert", tmp_path / "out", **AUTHOR)
    assert {path.name for path in tmp_path.iterdir()} == {"leaderboard"}


@pytest.mark.parametrize(
    ("text", "entry", "asked"),
    [
        ("do-nothing@timely", "do-nothing-on-timely", ({}, {"scheme": "timely"})),
        ("sac-elastic-1", "sac-elastic-1", ({"file": "sac-elastic-1"}, {})),
    ],
)
@pytest.mark.slow
def test_an_entry_on_another_scheme_and_a_shipped_policy(
    suite: str, tmp_path: Path, text: str, entry: str, asked: object
) -> None:
    board = start_leaderboard(suite, [text], tmp_path / "leaderboard")
    assert board.carry_out(executor=Here()) == {}
    found = submit(board, entry, tmp_path / "entry", **AUTHOR)
    about = open_submission(found).about
    assert (about.tuner_args, about.changes) == asked
    assert verified(found, suite).status == "verified"
    write_results(other := leaderboard_of(suite, "expert", tmp_path / "other"))
    page = write_site([other.out, found], tmp_path / "site", verdicts(found)).parent
    text = (page / "entries" / f"tiny-{entry}.html").read_text()
    assert "changes of the scenarios" in text
    assert all(f"{key} = {value}" in text for key, value in about.changes.items())


@pytest.mark.slow
def test_the_commands(suite: str, good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [
        "bench",
        "submit",
        str(good.parent / "leaderboard"),
        "--tuner",
        "random",
        "--out",
        str(out),
    ]
    told = ["--author", "A", "--author", "B", "--licence", "MIT", "--category", "online"]
    told += ["--training-intervals", "7", "--training-data", "dev-v1", "--link", "https://x.org"]
    done = CliRunner().invoke(app, [*words, *told])
    assert done.exit_code == 0, done.output
    about = open_submission(out).about
    assert (about.authors, about.training.intervals, about.link) == (["A", "B"], 7, "https://x.org")
    words = ["bench", "verify", str(out), "--date", DAY, "--suite", suite, "--fresh", "1"]
    done = CliRunner().invoke(app, [*words, "--quiet", "--jobs", "1", "--salt", "0" * 32])
    assert done.exit_code == 0, done.output
    assert "verified: every run was repeated" in done.output
    assert "verdict: not stored; --verdicts FOLDER does, for bench site" in done.output


@pytest.mark.parametrize(
    ("name", "data"), [("_core.so", b"x"), ("weights.bin", b"\x7fELF\x02\x01\x01")]
)
def test_an_engine_of_its_own_is_for_tuners_that_simulate(
    suite: str, tmp_path: Path, name: str, data: bytes
) -> None:
    tuner = plugin(tmp_path / "code", CALM)
    board = leaderboard_of(suite, tuner, tmp_path / "leaderboard")
    (tmp_path / "code" / name).write_bytes(data)
    include = [tmp_path / "code" / name]
    with pytest.raises(ConfigError, match=f"plugin/{name}: is compiled; only tuners of the cat"):
        submit(board, tuner, tmp_path / "one", include=include, **AUTHOR)
    assert not (tmp_path / "one").exists()
    simulating = {**AUTHOR, "category": "simulating"}
    made = submit(board, tuner, tmp_path / "two", include=include, **simulating)
    assert open_submission(made).about.category == "simulating"
