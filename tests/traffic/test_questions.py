"""Questions people ask, as docs/reference/questions.md answers them: what its commands say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from test_settings_check import ETHTOOL, RDMA, changed
from typer.testing import CliRunner

from dcqcn_gym.cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "questions.md"
ROWS = dict(re.findall(r"^\| ([^|]+\?) \| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.M))

HEAD = (
    'description = "x"\nintervals = 20\nmonitor_interval_us = 500\n'
    "weights = {tp=0.4, rtt=0.4, pfc=0.2}\n"
)


def fabric(
    tors: int, hosts: int, gbps: int, workloads: str, more: str = "", spines: int = 2
) -> str:
    return (
        f'{HEAD}{more}\n[topology]\nkind = "leaf-spine"\ntors = {tors}\nhosts_per_tor = {hosts}\n'
        f"spines = {spines}\nhost_gbps = {gbps}\nuplink_gbps = {gbps}\n{workloads}"
    )


def incast(hosts: int, size: int, rounds: int = 1) -> str:
    senders = list(range(1, hosts + 1))
    return (f'[[workloads]]\nkind = "incast"\ndst = 0\nhosts = {senders}\nbytes = {size}\n'
            f"rounds = {rounds}\n")  # fmt: skip


POISSON = '[[workloads]]\nkind = "poisson"\ncdf = "FB_Hadoop"\nload = 0.3\n'
STUCK = fabric(1, 8, 100, incast(7, 500_000), spines=1)
MIXED = (
    f'{HEAD}[topology]\nkind = "leaf-spine"\ntors = 1\nhosts_per_tor = 8\nspines = 2\n'
    "host_gbps = 25\nuplink_gbps = 100\n"
    "racks = [{ tors = 1, hosts_per_tor = 8, host_gbps = 100 }]\n" + incast(15, 2_000_000)
)


def ranks(hosts: int) -> str:
    # of eight, the racks hold four each: half of the traffic crosses the uplinks
    return fabric(2, 4, 100, f'[[workloads]]\nkind = "alltoall"\nhosts = {list(range(hosts))}\n'
                  "bytes = 1_000_000\noff_us = 200\n")  # fmt: skip


JOB = (
    f'{HEAD}[servers]\ngpus = 8\n[topology]\nkind = "servers"\nservers = 2\nattach = "rails"\n'
    'servers_per_unit = 2\nspines = 1\n[[workloads]]\nkind = "job"\n[workloads.graph.plan]\n'
    'model = "llama-7b"\nlayers = 2\ntp = 8\ndp = 2\nbatch = 2\nsequence = 512\n'
)
EARLY = changed(WRED_PROFILE={"LOSSLESS": {"green_min_threshold": "2000000",
                                           "green_max_threshold": "3000000"}})  # fmt: skip
Files = Mapping[str, str]
CASES: dict[str, tuple[Files, Callable[[str, Path], bool]]] = {
    "stuck": ({"stuck.toml": STUCK}, lambda said, _: "the largest cause is marks" in said),
    "although ECN": (
        {"leaf1.json": json.dumps(EARLY), "nic.txt": ETHTOOL + RDMA},
        lambda said, _: "pauses begin before marking" in said),
    "400G": (
        {"fabric400.toml": fabric(4, 8, 400, POISSON)},
        lambda said, _: "kmin = " in said and "kmax = " in said),
    "first CNP": (
        {"stuck.toml": STUCK},
        lambda said, at: _last_ns(at / "first") > 1.2 * _last_ns(at / "default")),
    "incast of 60": (
        {"incast60.toml": fabric(4, 16, 100, POISSON + incast(60, 100_000, 4))},
        lambda said, at: json.loads((at / "incast/best.json").read_text())["answer"]["action"] in (
            "deploy", "keep", "a choice", "cannot tell")),
    "25G": ({"mixed.toml": MIXED}, lambda said, _: "of the slowest port of 25000 Mb/s" in said),
    "8 nodes": (
        {"eight.toml": ranks(8), "four.toml": ranks(4)},
        lambda said, _: re.search(r"all-to-all of workload 0: .* \(\+", said) is not None),
    "CNPs": (
        {"rdma.txt": RDMA.replace("ignored 0", "ignored 512")},
        lambda said, _: "ignores CNPs: 512" in said),
    "iteration": (
        {"job.toml": JOB},
        lambda said, at: json.loads((at / "job/summary.json").read_text())["collectives"][0][
            "rounds"] > 0),
    "vendor": (
        {"eos.txt": "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 3 mbytes "
         "max-mark-probability 7\n"},
        lambda said, _: "kmin = 150.0" in said and "pmax = 0.07" in said),
    "headroom": (
        {"leaf1.json": json.dumps(changed(CABLE_LENGTH={"AZURE": {"Ethernet0": "2000m"}}))},
        lambda said, _: "a cable of 2000 m at 100 Gb/s needs at least 268200 B" in said),
    "a window": (
        {"window.toml": fabric(
            1, 101, 100, incast(100, 500_000), "transport = {window_bytes=60000}", spines=1)},
        lambda said, at: _pauses(at / "window") == 0),
}  # fmt: skip


def _last_ns(at: Path) -> float:
    return float(json.loads((at / "summary.json").read_text())["makespan_ns"])


def _pauses(at: Path) -> int:
    summary = json.loads((at / "summary.json").read_text())
    return int(summary["pfc_frames_to_hosts"] + summary["pfc_frames_to_switches"])


def test_the_page_has_twelve_questions() -> None:
    assert len(ROWS) == len(CASES) == 12


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n == "incast of 60" else []) for n in CASES],
)
def test_a_question_is_answered_by_its_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files, right = CASES[name]
    for file, text in files.items():
        Path(file).write_text(text)
    (line,) = (command for question, command in ROWS.items() if name.lower() in question.lower())
    said = ""
    for command in line.split(" && "):
        done = CliRunner().invoke(app, shlex.split(command)[1:], env={"COLUMNS": "200"})
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1), done.output  # 1: a check has found something
        said += done.output
    assert right(said, tmp_path), said
