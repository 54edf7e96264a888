"""The standalone program: raw reports, of which `dcqcn-gym simulate --reports` makes its files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.knobs import DCQCN
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.backends.replay import RecordingBackend
from dcqcn_gym.envs.backends.report_dict import read_reports
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.ns3.bridge.build import Build, ensure_built
from dcqcn_gym.simulation.run import simulate

SCENARIO = "mini-llm-alltoall"
INTERVALS = 4
RING = """
description = "two rings and traffic that is no collective"
intervals = 3
[topology]
kind = "leaf-spine"
tors = 2
hosts_per_tor = 4
spines = 1
[[workloads]]
kind = "ring"
collective = "all-reduce"
hosts = 4
bytes = 400_000
off_us = 50
[[workloads]]
kind = "incast"
dst = 7
hosts = [1, 2]
bytes = 100_000
[[workloads]]
kind = "ring"
collective = "all-gather"
hosts = [5, 6, 4]
bytes = 90_000
off_us = 100
[[workloads]]
kind = "ring"
collective = "reduce-scatter"
hosts = 8
bytes = 80_000_000
"""


@pytest.fixture(scope="module")
def build() -> Build:
    return ensure_built(say=lambda line: print(line, file=sys.stderr))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("compiled") / "scenario.txt"
    done = CliRunner().invoke(app, ["scenarios", SCENARIO, "--out", str(file)])
    assert done.exit_code == 0, done.output
    return file


def program(build: Build, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(build.program), *arguments], capture_output=True, text=True, check=False
    )


def derive(name: str | Path, raw: Path, out: Path) -> None:
    """Make the files of a simulation of what the program wrote."""
    arguments = ["simulate", "--scenario", str(name), "--reports", str(raw), "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output


def test_same_outputs_as_the_native_engine(build: Build, compiled: Path, tmp_path: Path) -> None:
    check_outputs(build, SCENARIO, compiled, tmp_path)


def test_same_collectives_as_the_native_engine(build: Build, tmp_path: Path) -> None:
    scenario, file = tmp_path / "rings.toml", tmp_path / "rings.txt"
    scenario.write_text(RING)
    done = CliRunner().invoke(app, ["scenarios", str(scenario), "--out", str(file)])
    assert done.exit_code == 0, done.output
    summary = check_outputs(build, scenario, file, tmp_path)
    rounds = [row["rounds"] for row in summary["collectives"]]
    assert rounds[0] > 2
    assert rounds[1] > 2
    assert rounds[2] == 0


def check_outputs(build: Build, name: str | Path, compiled: Path, folder: Path) -> dict[str, Any]:
    """Compare every file with the native engine's, byte for byte; return the summary."""
    native, raw, ns3 = folder / "native", folder / "raw", folder / "ns3"
    recorder = RecordingBackend(NativeBackend())
    simulate(load_scenario(name), native, seed=2, intervals=INTERVALS, backend=recorder)
    done = program(
        build, f"--scenario={compiled}", "--seed=2", f"--intervals={INTERVALS}", f"--out={raw}"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(f.name for f in raw.iterdir()) == ["flows.csv", "reports.jsonl", "run.json"]
    assert read_reports(raw / "reports.jsonl") == recorder.reports
    derive(name, raw, ns3)
    assert sorted(f.name for f in native.iterdir()) == sorted(f.name for f in ns3.iterdir())
    for file in native.iterdir():
        if file.name != "timing.json":
            assert (ns3 / file.name).read_bytes() == file.read_bytes()
    assert (raw / "flows.csv").read_bytes() == (native / "flows.csv").read_bytes()
    timings = [json.loads((d / "timing.json").read_text()) for d in (native, ns3)]
    assert timings[0].keys() == timings[1].keys()
    spent = json.loads((raw / "run.json").read_text())
    assert timings[1].items() >= {k: spent[k] for k in ("cpu_s", "wall_s")}.items()
    summary: dict[str, Any] = json.loads((ns3 / "summary.json").read_text())
    return summary


def test_every_knob_is_a_documented_attribute(build: Build) -> None:
    host = program(build, "--PrintAttributes=ns3::RdmaHost").stdout
    port = program(build, "--PrintAttributes=ns3::PfcDevice").stdout
    assert host.count("--ns3::RdmaHost::") == 17
    assert [f"--ns3::PfcDevice::{name}=" in port for name in ("Kmin", "Kmax", "Pmax")] == [True] * 3
    assert "--ns3::RdmaHost::RpgAiRate=[5e+06]" in host
    for row in DCQCN.rows:
        listed, text = (port, row.name) if row.is_ecn else (host, row.mlxconfig or row.name)
        attribute = "".join(part.capitalize() for part in text.split("_"))
        found = re.search(rf"::{attribute}=\[(.*)\]\s+(.*) \[SI: 1 (.*) = ", listed)
        assert found is not None, attribute
        assert float(found[1]) == pytest.approx(row.to_si(row.default), rel=1e-5)
        assert (found[2], found[3]) == (row.help, row.unit)


def test_attributes_on_the_command_line_win(build: Build, compiled: Path, tmp_path: Path) -> None:
    common = [f"--scenario={compiled}", "--intervals=2"]
    program(build, *common, f"--out={tmp_path / 'a'}")
    program(build, *common, f"--out={tmp_path / 'b'}", "--ns3::PfcDevice::Kmin=5e3")
    for d in "ab":
        derive(SCENARIO, tmp_path / d, tmp_path / d / "tables")
    a, b = (json.loads((tmp_path / d / "tables" / "summary.json").read_text()) for d in "ab")
    assert (a["setting"]["kmin"], b["setting"]["kmin"]) == (100.0, 5.0)
    assert b["marks"] > a["marks"]


def test_errors_are_one_line(build: Build, compiled: Path, tmp_path: Path) -> None:
    done = program(build, "--scenario=/nowhere")
    assert done.returncode == 2
    assert done.stderr == "error: cannot read the scenario '/nowhere'; give --scenario\n"
    for word in ("--intervals=-3", "--intervalPs=-5"):
        done = program(build, f"--scenario={compiled}", word)
        assert done.returncode == 2
        assert re.fullmatch(rf"error: .*{word}.*: expected at least 1, or 0 .*\n", done.stderr)
    broken = tmp_path / "broken.txt"
    broken.write_text("dcqcn-gym-scenario 1\nnonsense\nend\n")
    done = program(build, f"--scenario={broken}")
    assert done.returncode == 2
    assert "line 2" in done.stderr
    for line in ("#! run intervals=many", "#! setting kmin=many", "#! runs size=3", "#! run x"):
        broken.write_text(f"dcqcn-gym-scenario 1\n{line}\nend\n")
        done = program(build, f"--scenario={broken}")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"line 2: '{line.split()[2]}' is no key=value" in done.stderr


def test_the_exported_folder_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "dcqcn"
    assert CliRunner().invoke(app, ["ns3", "build", "--sources", str(folder)]).exit_code == 0
    assert (folder / "engine" / "model" / "fabric" / "packet.hpp").exists()
    assert (folder / "engine" / "sim" / "simulation.cpp").exists()
    assert {"CMakeLists.txt", "COPYING", "README.md", "main.cc"} <= {
        f.name for f in folder.iterdir()
    }
    assert not (folder / "tests").exists()  # ns-3 would compile what lies below its scratch/
