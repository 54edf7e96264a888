"""A scheme from outside runs on ns-3 with the bytes of the native engine.

The scheme is ``engine/tests/toy``: a header and its list line. Both programs are compiled with
``DCQCN_GYM_EXTRA_SCHEMES``, as CONTRIBUTING says; ``toy_scheme_test`` itself compares the native
engines.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from scheme_jobs import LOSSY, check_equal, scenario

from dcqcn_gym.core.knobs import NIC_KNOBS

TOY = {"toy_scan_period": 2e-6, "toy_step": 1e9}
CASES = {
    "alone": "scheme name=toy",
    "a CNP in the ACK": "scheme name=toy\nwire payload=1000 data=48 ack=60 cnp=60 pfc=43 "
    "cnp_in_ack=1",
    "lossy": f"scheme name=toy\n{LOSSY}transport qp=flow rto_ps=100000000",
    "beside DCQCN": "scheme name=toy hosts=0,1,2,3\ncnp scope=qp delay_ps=3000000",
}


def rows_of(mixed: bool) -> list[str]:
    """Return the ``nic`` rows of the toy's hosts; DCQCN keeps its defaults."""
    row = [*map(repr, TOY.values()), *["0"] * (len(NIC_KNOBS) - len(TOY) if mixed else 0)]
    return [f"nic {h} {' '.join(row)}" for h in (range(4) if mixed else "*")]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_equal_bytes_on_ns3(scheme_programs: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    rows = rows_of(mixed="hosts=" in CASES[name])
    totals = check_equal(scheme_programs, tmp_path, scenario(CASES[name], TOY), rows)
    assert totals["cnps"] > 0
