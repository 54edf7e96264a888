"""Settings found offline: the committed files, the command that writes them, other line rates."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.config import load_toml
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.knobs import KNOBS, TUNED_KNOBS, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.tuners import TunerContext, make_tuner
from dcqcn_gym.tuners.pretrained import FOLDER, PretrainedFile, pretrained_setting

FILES = sorted(FOLDER.glob("pretrained-*.toml"))


def test_both_rows_of_the_paper_are_there() -> None:
    assert [path.stem for path in FILES] == ["pretrained-alltoall", "pretrained-fbhadoop"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_file_says_how_it_was_made(path: Path) -> None:
    file = load_toml(path, PretrainedFile)
    search = file.search
    command = (
        f"# dcqcn-gym train --tuner pretrained --scenario {search.scenario} --algo {search.tuner} "
        f"--seed {search.seed} --steps {search.intervals} --out FILE"
    )
    assert path.read_text().splitlines()[0] == command
    assert search.line_rate_bps == load_scenario(search.scenario).line_rate_bps
    assert set(TUNED_KNOBS) <= set(file.setting) <= set(KNOBS)  # others have their default
    pretrained_setting(path, search.line_rate_bps).check(search.line_rate_bps)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.parametrize("rate", [10e9, 25e9, 400e9])
def test_other_line_rates_scale_what_scales(path: Path, rate: float) -> None:
    found = pretrained_setting(path, 100e9)
    scaled = pretrained_setting(path, rate).check(rate)
    assert scaled["kmin"] == pytest.approx(min(found["kmin"] * rate / 100e9, 4e6), rel=1e-3)
    assert scaled["rp_time_reset"] == found["rp_time_reset"]


def test_the_command_writes_a_file_that_a_tuner_takes(tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    arguments = ["train", "--tuner", "pretrained", "--algo", "random", "--backend", "fake"]
    arguments += ["--scenario", "mini-fb-hadoop", "--steps", "9", "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    first = out.read_bytes()
    rate = load_scenario("mini-fb-hadoop").line_rate_bps
    tuner = make_tuner("pretrained-alltoall", {"file": str(out)})
    tuner.start(TunerContext(KnobSpace(line_rate_bps=rate), default_setting(rate), 1, 9))
    assert tuner.ask() == pretrained_setting(out, rate)
    refused = CliRunner().invoke(app, arguments)
    assert isinstance(refused.exception, RunError)
    assert "--force" in str(refused.exception)
    CliRunner().invoke(app, [*arguments, "--force"])
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("pmax = ", "pmax = 7#"), "pmax = 7 .*expected 0 to 1"),
        (("kmin = ", "kmni = "), "kmin"),
        (("[search]", "[seek]"), "search: this key is missing"),
    ],
)
def test_a_bad_file(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(FILES[0].read_text().replace(*change))
    with pytest.raises(ConfigError, match=says):
        pretrained_setting(path, 100e9)


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("/proc/setting.toml", "/proc/setting.toml cannot be written"),
        (".", "is a directory; give a file"),
        ("nowhere/setting.toml", "nowhere is not a directory"),
    ],
)
def test_pretrain_tries_its_output_before_the_search(
    out: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dcqcn_gym.runs.loop.run", None)  # a search would fail otherwise
    words = ["train", "--tuner", "pretrained", "--scenario", "mini-fb-hadoop", "--backend", "fake"]
    done = CliRunner().invoke(app, [*words, "--out", out])
    assert isinstance(done.exception, RunError)
    assert says in str(done.exception)
    assert list(tmp_path.iterdir()) == []
