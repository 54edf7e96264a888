"""One table of report fields: Python goes by it, and a field is added as CONTRIBUTING says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import fields
from pathlib import Path

import pytest

from dcqcn_gym.core.interval import (
    REPORT_FIELDS,
    FinishedFlows,
    FlowSizeDistribution,
    IntervalReport,
    fields_shown,
)
from dcqcn_gym.envs.info import PlainInfo
from dcqcn_gym.simulate.run import INTERVAL_COLUMNS
from dcqcn_gym.testing.reports import blank_report

ROOT = Path(__file__).parents[2]
PARTS = {"": IntervalReport, "fsd": FlowSizeDistribution, "finished": FinishedFlows}
BESIDE = {"fsd", "finished", "unknown", "scheme_counters", "unlimited_flows"}
"""What a report has beside figures."""


@pytest.mark.parametrize("part", PARTS)
def test_classes_declare_the_fields_of_the_table(part: str) -> None:
    declared = {f.name: str(f.type) for f in fields(PARTS[part]) if f.name not in BESIDE}
    table = {
        path.rpartition(".")[2]: field.kind
        for path, field in REPORT_FIELDS.items()
        if path.rpartition(".")[0] == part
    }
    assert declared == table


def test_every_field_has_a_meaning_and_known_places() -> None:
    assert len(REPORT_FIELDS) > 50
    assert [f.name for f in REPORT_FIELDS.values() if not f.meaning] == []
    places = {place for f in REPORT_FIELDS.values() for place in f.shown}
    assert places == {"log", "info", "csv", "sum"}


def test_info_declares_what_the_table_shows_there() -> None:
    shown = {f.flat for f in REPORT_FIELDS.values() if "info" in f.shown}
    assert {"marks", "fsd_kl"} <= shown
    assert shown <= set(PlainInfo.__annotations__)
    about = {f.flat for f in REPORT_FIELDS.values()} & set(PlainInfo.__annotations__)
    assert about - shown == {"start_ps", "end_ps"}


def test_columns_are_those_of_the_table() -> None:
    assert {"marks", "fsd_mice"} <= set(INTERVAL_COLUMNS)
    assert len(set(INTERVAL_COLUMNS)) == len(INTERVAL_COLUMNS)


def test_figures_are_json_values() -> None:
    report = blank_report(marks=3)
    found = {name: field.of(report) for name, field in fields_shown("log").items()}
    assert found["marks"] == 3
    assert json.loads(json.dumps(found)) == found


ROW = """    ReportField{"control_packets", "packets", "ACKs and CNPs sent",
                [](const Totals& t) { return t.acks + t.cnps; }, "log info csv sum", false},
"""
PLACES = {
    "engine/sim/report_fields.hpp": ("inline constexpr std::tuple kTotalsFields{\n", ROW),
    "src/dcqcn_gym/core/interval.py": ("    acks: int\n", "    control_packets: int\n"),
    "envs/info.py": (
        "class PlainInfo(TypedDict):\n",
        '    control_packets: Annotated[Count, _meaning("control_packets")]\n',
    ),
}
"""Every place of a new field: after this text, this text."""

PROGRAM = """
import json, sys
from pathlib import Path
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.simulate.run import simulate

mini, out = load_scenario("mini-fb-hadoop"), Path(sys.argv[1])
found = {}
for backend in ("native", "fake"):
    summary = simulate(mini, out / backend, intervals=2, backend=backend)
    header, *rows = (out / backend / "intervals.csv").read_text().splitlines()
    at = header.split(",").index("control_packets")
    run(RunSpec(mini, "default", 1, 2, backend), out / f"{backend}.jsonl")
    lines = (out / f"{backend}.jsonl").read_text().splitlines()[1:3]
    env = DcqcnEnv(mini, backend=backend)
    env.reset(seed=1)
    *_, info = env.step(env.initial_setting)
    found[backend] = {
        "sum": summary["control_packets"],
        "of": summary["acks"] + summary["cnps"],
        "csv": sum(int(row.split(",")[at]) for row in rows),
        "log": [json.loads(line)["control_packets"] for line in lines],
        "info": info["control_packets"],
    }
print(json.dumps(found))
"""


def copy_with_a_field(folder: Path) -> None:
    for name in ("engine", "src", "envs", "tuners", "hw", "benchmarks", "configs"):
        ignored = shutil.ignore_patterns("results", "__pycache__", "tests", "*.so")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "CMakeLists.txt", folder)
    for name, (before, new) in PLACES.items():
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        at = text.index(before) + len(before)
        if name == "envs/info.py":  # behind the docstring and the configuration
            at = text.index("    seed: Annotated", at)
        (folder / name).write_text(text[:at] + new + text[at:], encoding="utf-8")


def compile_module(folder: Path) -> None:
    built = sorted(ROOT.glob("build/*/libdcqcn_engine.a"), key=lambda p: p.stat().st_mtime)
    engine = [f"-DDCQCN_GYM_ENGINE={built[-1]}"] if built else []
    python = f"-DPython_EXECUTABLE={sys.executable}"
    configure = ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", python, *engine]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in (configure, ["cmake", "--build", "build", "--target", "_core"]):
        subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PATH": path})
    (module,) = (folder / "build").glob("_core*.so")
    shutil.copy(module, folder / "src" / "dcqcn_gym")


def python(folder: Path, *words: str) -> str:
    """Return what a program prints that imports the copy.

    It runs without the module site, which would lead ``dcqcn_gym`` to this tree.
    """
    paths = [str(folder / "src"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    done = subprocess.run(
        [sys.executable, "-S", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_field_is_added_in_three_places(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="the module is compiled")
    assert len(PLACES) <= 5
    copy_with_a_field(tmp_path)
    compile_module(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    python(tmp_path, "engine/export_tables.py")
    done = python(tmp_path, "program.py", "out")
    found = json.loads(done.splitlines()[-1])
    native, fake = found["native"], found["fake"]
    assert native["sum"] == native["csv"] == native["of"] > 0
    assert all(n > 0 for n in native["log"])
    assert native["info"] > 0
    assert (fake["sum"], fake["log"], fake["info"]) == (0, [0, 0], 0)
