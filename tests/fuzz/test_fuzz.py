"""Random bad input: an answer in one line, or success; never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fuzz_harness import fuzz
from fuzzers import FUZZERS

import dcqcn_gym

CASES = [
    pytest.param(range(50), id="50"),
    pytest.param(range(50, 250), id="200", marks=pytest.mark.slow),
]
"""Thousands are struck by ``tools/fuzz.py``."""


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("name", FUZZERS)
def test_no_input_ends_in_a_traceback(name: str, cases: range) -> None:
    outcome = fuzz(name, FUZZERS[name], cases)
    assert not outcome.failures, "\n".join(report for _, report in outcome.failures[:3])
    assert outcome.refused > len(cases) / 10  # the input is bad indeed
    assert outcome.accepted > len(cases) / 100  # and not all of it


def test_a_traceback_is_noticed() -> None:
    def breaks(random: object, folder: object) -> None:
        raise KeyError("x")

    outcome = fuzz("breaks", breaks, range(3))
    assert len(outcome.failures) == 3


READERS: dict[str, tuple[str, ...]] = {
    "traffic/dump_files.py": ("wred", "junos", "nvue", "eos", "bnxt", "switch", "counters"),
    "traffic/network/reading.py": ("config_db", "lldp", "minigraph", "graphml", "topology"),
    "traffic/simulators.py": ("hpcc_flows", "htsim"),
    "traffic/tables.py": ("table", "own_flows", "json_list", "cloud", "packed"),
    "traffic/reading.py": ("table",),
    "traffic/hosts.py": ("csv",),
    "traffic/frames.py": ("roce", "pcapng", "netflow5", "netflow9", "ipfix", "samples"),
    "traffic/exchange/htsim.py": ("htsim-run",),
    "traffic/exchange/hpcc_config.py": ("hpcc-run",),
    "traffic/exchange/hpcc_topology.py": ("hpcc-run", "topology"),
    "traffic/calibration/measured.py": ("measured-text", "measured-json", "measured-prometheus",
                                        "measured-snapshots", "measured-cnps"),
    "traffic/nccl.py": ("nccl",),
    "jobs/chakra.py": ("chakra",), "jobs/simai.py": ("simai",),
    "jobs/aicb.py": ("aicb",),
    "jobs/flight_recorder.py": ("recorder", "recorder_pickle"),
}  # fmt: skip
"""Every module that opens a stranger's file, and what damages its forms."""


def test_every_reader_of_strangers_files_is_damaged_and_balanced() -> None:
    opens = re.compile(r"\b(?:read_file|read_text|open_text|open_bytes|read_bytes|lines_of)\(")
    root = Path(dcqcn_gym.__file__).parent / "extras"
    found = {
        path.relative_to(root).as_posix()
        for folder in ("traffic", "jobs")
        for path in (root / folder).rglob("*.py")
        if opens.search(path.read_text())
    }
    assert found == set(READERS)
    assert {name for names in READERS.values() for name in names} <= set(FUZZERS)
