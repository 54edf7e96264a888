"""Every scheme, and one from outside, runs on ns-3 with the bytes of the native engine.

``builtin_schemes_test`` and ``toy_scheme_test`` compare the native engines. The toy is a header and
its list line in ``engine/tests/toy``; both programs are compiled with ``DCQCN_GYM_EXTRA_SCHEMES``,
as CONTRIBUTING says.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scheme_jobs import LOSSY, check_equal, scenario

from dcqcn_gym.core.knobs import NIC_KNOBS, knob_table

TIMELY = {"timely_t_low": 8e-6, "timely_t_high": 60e-6, "timely_min_rtt": 4e-6}
DOLCE = {"dolce_gamma": 0.95, "dolce_epsilon": 0.2, "dolce_cnp_gap": 4e-6}
PLUS = {"plus_adapt_above": 1e-6, "plus_timer": 1e-5, "plus_min_cnp_gap": 4e-6,
        "plus_cut": 0.25, "plus_min_share": 0.05}  # fmt: skip
STATIC = {"rp_time_reset": 1.2e-4, "rp_byte_reset": 0.0, "rp_ai_rate": 1.6e9, "rp_min_rate": 5e9}
"""Of 6 flows at 100 Gb/s, delta 10 us: K = 2 x 6 x 10 us, R_AI = C / 60; no byte counter."""
CASES = {
    "dcqcn, nic": ("dcqcn mode=nic", "", {}),
    "dcqcn, paper": ("dcqcn mode=paper", "", {"rp_time_reset": 5.5e-5, "rp_min_rate": 5e9}),
    "dcqcn, static values of dcqcn-plus": ("dcqcn mode=paper", "", STATIC),
    "dcqcn-plus": ("dcqcn-plus", "", PLUS),
    "dcqcn-plus, lossy": ("dcqcn-plus", f"{LOSSY}transport qp=flow rto_ps=100000000", PLUS),
    "dcqcn-plus, several connections": (
        "dcqcn-plus",
        "transport qp=pair ack_every=4\nworkload incast hosts=1,2,3 dst=7 bytes=20000 messages=9 "
        "connections=3 off_ps=10000000",
        PLUS,
    ),
    "dolce-rc, several connections": (
        "dolce-rc",
        "transport qp=pair ack_every=1\nworkload incast hosts=1,2,3 dst=7 bytes=20000 messages=9 "
        "connections=3 off_ps=10000000",
        {**DOLCE, "dolce_idle_reset": 3e-5},
    ),
    "dolce-rc-plus, several connections": (
        "dolce-rc-plus",
        "transport qp=pair ack_every=1\nworkload incast hosts=1,2,3 dst=7 bytes=20000 messages=9 "
        "connections=3 off_ps=10000000",
        {},
    ),
    "timely": ("timely", "", TIMELY),
    "timely, segments": ("timely pacing=segment", "", TIMELY),
    "timely, lossy": ("timely", f"{LOSSY}transport qp=flow rto_ps=100000000", TIMELY),
    "dolce-rc": ("dolce-rc", "", DOLCE),
    "dolce-rc, whole numbers": ("dolce-rc ratio=count arithmetic=fixed", "", DOLCE),
    "dolce-rc, kept queue pairs": (
        "dolce-rc ratio=count memory=qp",
        "transport qp=pair ack_every=4\ncnp scope=port delay_ps=3000000",
        {"dolce_time_reset": 1e-5, "dolce_ai_rate": 4e9, "dolce_min_rate": 1e9},
    ),
    "dolce-rc-plus": ("dolce-rc-plus", "", {"dolce_arms": 3.0}),
    "dolce-rc-plus, lossy": (
        "dolce-rc-plus",
        f"{LOSSY}transport qp=flow rto_ps=100000000",
        {},
    ),
}
"""{case: (scheme and its options, other lines, knobs in SI units that are not at the default)}"""


TOY = {"toy_scan_period": 2e-6, "toy_step": 1e9}
TOYS = {
    "alone": "scheme name=toy",
    "a CNP in the ACK": "scheme name=toy\nwire payload=1000 data=48 ack=60 cnp=60 pfc=43 "
    "cnp_in_ack=1",
    "lossy": f"scheme name=toy\n{LOSSY}transport qp=flow rto_ps=100000000",
    "beside DCQCN": "scheme name=toy hosts=0,1,2,3\ncnp scope=qp delay_ps=3000000",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_equal_bytes_on_ns3(scheme_programs: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    scheme, lines, changes = CASES[name]
    table = knob_table(scheme.split()[0])
    knobs = {name: table[name].to_si(table[name].default) for name in table.nic} | changes
    text = scenario(f"scheme name={scheme}\n{lines}", knobs)
    check_equal(scheme_programs, tmp_path, text, [f"nic * {' '.join(map(repr, knobs.values()))}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", TOYS)
def test_a_toy_has_equal_bytes_on_ns3(
    scheme_programs: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    values, hosts = [*map(repr, TOY.values())], ["*"]
    if "hosts=" in TOYS[name]:  # DCQCN of the others keeps its defaults
        values, hosts = [*values, *["0"] * (len(NIC_KNOBS) - len(TOY))], [*"0123"]
    rows = [f"nic {host} {' '.join(values)}" for host in hosts]
    totals = check_equal(scheme_programs, tmp_path, scenario(TOYS[name], TOY), rows)
    assert totals["cnps"] > 0


@pytest.mark.slow
def test_the_exported_folder_builds_by_cmake_alone_and_passes_its_tests(
    scheme_programs: tuple[Path, Path],
) -> None:
    ctest = str(Path(sys.executable).with_name("ctest"))
    folder = str(scheme_programs[1].parent)
    command = [ctest, "--test-dir", folder, "--output-on-failure", "--no-tests=error"]
    subprocess.run(command, check=True)
