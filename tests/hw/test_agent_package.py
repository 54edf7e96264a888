"""The agent's own wheel: small, without the engine, with pinned hashes; an agent runs from it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from fleets import TLS, nic_agent_file, typed

from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.hw.agent.privileges import KEPT
from dcqcn_gym.hw.agent.wheel import PROGRAM, build, modules
from dcqcn_gym.hw.certs import write_all

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def test_it_is_small_has_no_engine_and_is_the_same_every_time(wheel: Path, tmp_path: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size < 200_000
    assert build(tmp_path).read_bytes() == wheel.read_bytes()
    assert not [name for name in names if "_core" in name or name.endswith(".so")]
    assert {name.split("/")[1] for name in names if name.startswith("dcqcn_gym/")} == {
        "__init__.py", "_late.py", "configs", "core", "hw", "py.typed",
    }  # fmt: skip
    assert "hw/controller.py" not in modules()
    assert {"hw/drivers/bnxt.py", "hw/drivers/sonic_asics.py"} <= set(modules())


def test_what_it_needs_is_pinned_with_hashes(wheel: Path) -> None:
    text = (wheel.parent / "requirements.txt").read_text()
    pins = [line for line in text.splitlines() if not line.startswith(" ")]
    assert all("==" in line and line.endswith("\\") for line in pins)
    blocks = text.replace("\\\n", "").splitlines()
    assert all("--hash=sha256:" in block for block in blocks)
    named = {line.partition("==")[0] for line in pins}
    extra = parse_toml((ROOT / "pyproject.toml").read_text(), "pyproject.toml")
    wanted = {x.partition(">=")[0] for x in extra["project"]["optional-dependencies"]["hw"]}
    assert wanted - named == {"grpcio-reflection"}  # for whoever installs it
    assert not named & {"numpy", "gymnasium", "typer"}


@pytest.mark.parametrize("kind", KEPT)
def test_its_units_are_verified(kind: str, wheel: Path, tmp_path: Path) -> None:
    text = (wheel.parent / f"dcqcn-gym-{kind}.service").read_text()
    assert f"ExecStart={PROGRAM} {kind} --config /etc/dcqcn-gym/agent.toml\n" in text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    file = tmp_path / f"dcqcn-gym-{kind}.service"
    file.write_text(text.replace(PROGRAM, "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


RUN = """
import sys
sys.path[:0] = {paths!r}
for name in ("numpy", "typer", "jinja2", "dcqcn_gym._core"):
    sys.modules[name] = None
import dcqcn_gym
assert dcqcn_gym.__file__.startswith({paths!r}[0]), dcqcn_gym.__file__
from dcqcn_gym.hw.agent.main import main
sys.argv = ["dcqcn-gym-agent", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
def test_an_agent_of_the_wheel_alone_serves_a_fleet(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(place)
    code = RUN.format(paths=[str(place), sysconfig.get_path("platlib")])
    write_all(tmp_path / "certs", ["nic-0"], ["controller"])
    file = nic_agent_file(tmp_path, "nic-0")
    words = [sys.executable, "-S", "-c", code, "nic", "--config", str(file)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert "listening on 127.0.0.1:" in said, said + process.stderr.read()
            fleet = tmp_path / "fleet.toml"
            tls = TLS.format("controller").replace("../", "")
            member = f'name = "nic-0"\naddress = "{said.split()[2].rstrip(";")}"\n'
            fleet.write_text(f"[tls]\n{tls}\n[[nics]]\n{member}")
            assert typed("apply", "--fleet", str(fleet), "--set", "rp_ai_rate=50")[0] == 0
            assert typed("status", "--fleet", str(fleet))[0] == 0
            assert typed("rollback", "--fleet", str(fleet))[0] == 0
        finally:
            process.kill()
    wrong = [*words[:-1], str(tmp_path / "none.toml")]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
