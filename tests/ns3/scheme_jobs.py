"""Jobs with a scheme, played by a native program and by the ns-3 program, and their comparison."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.extras.ns3.bridge.install import find_ns3

ROOT = Path(__file__).parents[2]
PLAYER = "toy_scheme_test"
TOY = "engine/tests/toy"
EXTRA = "-DDCQCN_GYM_EXTRA_SCHEMES=tests/toy/extra_schemes.hpp"
# compiles in a third of the time, to the same bytes
QUICK = ["-G", "Ninja", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
TIME_PS = 900_000_000
PFC = "pfc enabled=1 lossless=3 alpha=0.125 reserve=4096 resume_offset=3072\n"
LOSSY = "pfc enabled=0 lossless=3 alpha=0.05 reserve=4096 resume_offset=3072\n"
ECN = (20_000, 80_000, 0.5)


def build(out: Path) -> tuple[Path, Path]:
    """Build the native player and the ns-3 program, both with the toy; return their paths.

    The ns-3 program is made of the exported folder, into which a stranger has put the toy.
    """
    ns3 = find_ns3(say=lambda line: print(line, file=sys.stderr))
    cmake = str(Path(sys.executable).with_name("cmake"))
    folder = out / "dcqcn"
    shutil.rmtree(folder, ignore_errors=True)
    done = CliRunner().invoke(app, ["ns3", "build", "--sources", str(folder)])
    assert done.exit_code == 0, done.output
    shutil.copytree(ROOT / TOY, folder / TOY)
    libraries = ";".join(map(str, ns3.libraries))
    built = sorted(ROOT.glob("build/cp*/libdcqcn_engine.a"), key=lambda file: file.stat().st_mtime)
    engine = [f"-DDCQCN_GYM_ENGINE={file}" for file in built[-1:]]  # that of the package
    for command in (
        [cmake, *QUICK, "-S", str(ROOT), "-B", str(out / "native"), *engine,
         "-DDCQCN_GYM_PYTHON=OFF", "-DDCQCN_GYM_TESTS=ON"],
        [cmake, "--build", str(out / "native"), "-j", "2", "--target", PLAYER],
        [cmake, *QUICK, "-S", str(folder), "-B", str(out / "alone"), EXTRA, "-DDCQCN_NS3_TESTS=ON",
         f"-DNS3_INCLUDE={ns3.include}", f"-DNS3_LIBRARIES={libraries}"],
        [cmake, "--build", str(out / "alone"), "-j", "2", "--target", "dcqcn-ns3"],
    ):  # fmt: skip
        subprocess.run(command, check=True)
    return out / "native" / PLAYER, out / "alone" / "dcqcn-ns3"


def scenario(lines: str, knobs: dict[str, float]) -> str:
    """Return an incast and a permutation on one switch, with these lines and NIC knobs (SI)."""
    links = "\n".join(
        f"link {h} 8 ps_per_byte=80 delay_ps=1000000 headroom=60000" for h in range(8)
    )
    ecn = "kmin={} kmax={} pmax={}".format(*ECN)
    nic = " ".join(f"{name}={value!r}" for name, value in knobs.items())
    return f"""dcqcn-gym-scenario 1
#! run name=toy interval_ps={TIME_PS} intervals=1
#! setting {ecn} {nic}
nodes hosts=8 switches=1
switch 8 buffer=2000000
{links}
{"" if "pfc enabled" in lines else PFC}{lines}
workload incast hosts=1,2,3,4,5,6 dst=0 bytes=300000 off_ps=10000000
workload permutation hosts=0,1,2,3,4,5,6,7 bytes=200000
end
"""


def job(text: str, rows: Sequence[str]) -> str:
    """Return the scenario with the script that sets these ``nic`` rows."""
    script = ["seed 1", *rows, f"ecn * {' '.join(map(str, ECN))}", "apply"]
    kept = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join([*kept, *script, f"run {TIME_PS}", "report"]) + "\n"


def check_equal(
    programs: tuple[Path, Path], tmp_path: Path, text: str, rows: Sequence[str]
) -> dict[str, int]:
    """Play the job on both; fail unless flows and totals are equal. Returns the totals."""
    native, ns3 = programs
    (tmp_path / "scenario.txt").write_text(text)
    (tmp_path / "played.job").write_text(job(text, rows))
    played = subprocess.run(
        [str(native), "--play", str(tmp_path / "played.job")],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    subprocess.run(
        [str(ns3), f"--scenario={tmp_path / 'scenario.txt'}", "--seed=1", f"--out={tmp_path}"],
        check=True,
    )
    flows = [line.split()[1:] for line in played if line.startswith("flow")]
    with (tmp_path / "flows.csv").open() as file:
        on_ns3 = [
            [r["src"], r["dst"], r["bytes"], *(picoseconds(r[k]) for k in ("start_ns", "fct_ns"))]
            for r in csv.DictReader(file)
        ]
    assert on_ns3 == flows
    assert len(flows) > 20
    (report,) = map(json.loads, (tmp_path / "reports.jsonl").read_text().splitlines())
    totals = {key: int(n) for _, key, n in (x.split() for x in played if x.startswith("total"))}
    assert {key: report[key] for key in totals} == totals
    return totals


def picoseconds(nanoseconds: str) -> str:
    """Return the picoseconds of a text of nanoseconds."""
    return str(int(Decimal(nanoseconds) * 1000))
