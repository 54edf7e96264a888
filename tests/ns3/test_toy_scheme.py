"""A scheme from outside runs on ns-3 with the bytes of the native engine.

The scheme is ``engine/tests/toy``: a header and its list line. Both programs are compiled with
``DCQCN_GYM_EXTRA_SCHEMES``, as CONTRIBUTING says; ``toy_scheme_test`` itself compares the native
engines.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from dcqcn_gym.envs.backends.ns3_bridge.install import find_ns3

ROOT = Path(__file__).parents[2]
EXTRA = "-DDCQCN_GYM_EXTRA_SCHEMES=tests/toy/extra_schemes.hpp"
TIME_PS = 900_000_000
PFC = "pfc enabled=1 lossless=3 alpha=0.125 reserve=4096 resume_offset=3072\n"
ECN = (20_000, 80_000, 0.5)
TOY = (2e-6, 1e9)
CASES = {
    "alone": "scheme name=toy",
    "a CNP in the ACK": "scheme name=toy\nwire payload=1000 data=48 ack=60 cnp=60 pfc=43 "
    "cnp_in_ack=1",
    "lossy": "scheme name=toy\npfc enabled=0 lossless=3 alpha=0.05 reserve=4096 resume_offset=3072"
    "\ntransport qp=flow rto_ps=100000000",
    "beside DCQCN": "scheme name=toy hosts=0,1,2,3\ncnp scope=qp delay_ps=3000000",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the native player and the ns-3 program, both with the toy scheme."""
    ns3 = find_ns3(say=lambda line: print(line, file=sys.stderr))
    out = tmp_path_factory.mktemp("build")
    cmake = str(Path(sys.executable).with_name("cmake"))
    libraries = ";".join(map(str, ns3.libraries))
    for command in (
        [cmake, "-S", str(ROOT), "-B", str(out / "native"), "-DDCQCN_GYM_PYTHON=OFF",
         "-DDCQCN_GYM_TESTS=ON"],
        [cmake, "--build", str(out / "native"), "-j", "2", "--target", "toy_scheme_test"],
        [cmake, "-S", str(ROOT / "ns3-scratch"), "-B", str(out / "ns3"), EXTRA,
         f"-DNS3_INCLUDE={ns3.include}", f"-DNS3_LIBRARIES={libraries}"],
        [cmake, "--build", str(out / "ns3"), "-j", "2", "--target", "dcqcn-ns3"],
    ):  # fmt: skip
        subprocess.run(command, check=True)
    return out / "native" / "toy_scheme_test", out / "ns3" / "dcqcn-ns3"


def scenario(lines: str) -> str:
    """Return an incast and a permutation on one switch, with these lines."""
    links = "\n".join(
        f"link {h} 8 ps_per_byte=80 delay_ps=1000000 headroom=60000" for h in range(8)
    )
    ecn = "kmin={} kmax={} pmax={}".format(*ECN)
    return f"""dcqcn-gym-scenario 1
#! run name=toy interval_ps={TIME_PS} intervals=1
#! setting {ecn} toy_scan_period={TOY[0]} toy_step={TOY[1]}
nodes hosts=8 switches=1
switch 8 buffer=2000000
{links}
{"" if "pfc enabled" in lines else PFC}{lines}
workload incast hosts=1,2,3,4,5,6 dst=0 bytes=300000 off_ps=10000000
workload permutation hosts=0,1,2,3,4,5,6,7 bytes=200000
end
"""


def job(text: str, mixed: bool) -> str:
    """Return the scenario with the script that sets the same knobs; DCQCN keeps its defaults."""
    row = [*map(repr, TOY), *["0"] * (15 if mixed else 0)]
    rows = [f"nic {h} {' '.join(row)}" for h in (range(4) if mixed else "*")]
    ecn = " ".join(map(str, ECN))
    script = ["seed 1", *rows, f"ecn * {ecn}", "apply", f"run {TIME_PS}", "report"]
    kept = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join([*kept, *script]) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_equal_bytes_on_ns3(programs: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    native, ns3 = programs
    text = scenario(CASES[name])
    (tmp_path / "toy.txt").write_text(text)
    (tmp_path / "toy.job").write_text(job(text, mixed="hosts=" in CASES[name]))
    played = subprocess.run(
        [str(native), "--play", str(tmp_path / "toy.job")],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    subprocess.run(
        [str(ns3), f"--scenario={tmp_path / 'toy.txt'}", "--seed=1", f"--out={tmp_path}"],
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
    assert totals["cnps"] > 0


def picoseconds(nanoseconds: str) -> str:
    return str(int(Decimal(nanoseconds) * 1000))
