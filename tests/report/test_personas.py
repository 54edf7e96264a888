"""Operators with traffic of every kind, each with its right answer, from the command line on.

Fabrics are small, so that each takes seconds; what is said and done is what `tune` does for any.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dcqcn_gym
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs.log import read_run

pytestmark = pytest.mark.usefixtures("in_threads")

SWITCH = '[topology]\nkind = "single-switch"\nhosts = 8\ngbps = 25\n'
POISSON = '[[workloads]]\nkind = "poisson"\ncdf = "FB_Hadoop"\nload = {}\n'
LEAVES = """[topology]
kind = "leaf-spine"
tors = 2
hosts_per_tor = 4
oversubscription = 1
host_gbps = 25
uplink_gbps = 25
"""
FLOWS = '[[workloads]]\nkind = "flows"\nflows = "flows.csv"\n'
SHORT = ("--intervals", "2", "--eval-seeds", "3", "--eval-intervals", "20")

Flow = tuple[float, int, int, int]
"""Start in seconds, source, target, bytes."""


def run(*words: str) -> str:
    result = CliRunner().invoke(app, [*words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def told(folder: Path, text: str, *options: str, tuner: str = "advise") -> tuple[Any, str]:
    """Return best.json and what was said of tuning a scenario."""
    (folder / "fabric.toml").write_text(text)
    out = ("--out", str(folder / "run"))
    said = run(
        "tune", "--scenario", str(folder / "fabric.toml"), "--tuner", tuner, "--no-report",
        *out, *options,
    )  # fmt: skip
    return json.loads((folder / "run/best.json").read_text()), said


def trace(seconds: float, load: float, *, gbps: float = 25, hosts: int = 8) -> list[Flow]:
    """Traffic like that of a cluster: flows of five sizes, and an incast every 2 ms."""
    draw = random.Random(3)
    sizes, shares = (4000, 30_000, 200_000, 1_000_000), (35, 30, 25, 10)
    gap = sum(s * p for s, p in zip(sizes, shares, strict=True)) / 100 * 8 / (gbps * 1e9 * load)
    flows: list[Flow] = []
    for host in range(hosts):
        at = draw.expovariate(1 / gap)
        while at < seconds:
            other = draw.choice([h for h in range(hosts) if h != host])
            flows.append((at, host, other, draw.choices(sizes, shares)[0]))
            at += draw.expovariate(1 / gap)
    return sorted(flows)


def write_csv(path: Path, flows: Iterable[Flow]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["start_us", "src", "dst", "bytes"])
        rows.writerows((f"{at * 1e6:.3f}", f"gpu-{s}", f"gpu-{d}", n) for at, s, d, n in flows)


def imported(folder: Path, flows: Sequence[Flow], *options: str) -> str:
    """Import flows as an operator does; names of all 8 hosts are known."""
    write_csv(folder / "seen.csv", flows)
    hosts = "name,host\n" + "".join(f"gpu-{h},h{h}\n" for h in range(8))
    (folder / "names.csv").write_text(hosts)
    return run(
        "traffic", "import", str(folder / "seen.csv"), "--out", str(folder), "--quiet",
        "--hosts", str(folder / "names.csv"), *options,
    )  # fmt: skip


@pytest.mark.slow
def test_a_capture_at_one_host(tmp_path: Path) -> None:
    flows = [flow for flow in trace(0.1, 0.5) if 3 in flow[1:3]]
    said = imported(tmp_path, flows)
    assert "this is a capture at one host" in said
    best, said = told(tmp_path, LEAVES + FLOWS)
    assert said.count("this is a capture at one host") == 2  # before the run, and as the answer
    assert best["answer"]["action"] == "cannot tell"
    assert "every leaf" in best["answer"]["next_step"]


@pytest.mark.slow
def test_sampled_netflow(tmp_path: Path) -> None:
    rows = [
        f"{1_750_000_000 + at:.3f},10.0.0.{s},10.0.0.{d},50000,4791,UDP,{-(-n // 1024)},{n}\n"
        for at, s, d, n in trace(0.02, 0.5)
    ]
    (tmp_path / "nf.csv").write_text("ts,sa,da,sp,dp,pr,ipkt,ibyt\n" + "".join(rows))
    said = run(
        "traffic", "import", str(tmp_path / "nf.csv"), "--sampling", "1000", "--quiet",
        "--out", str(tmp_path),
    )  # fmt: skip
    assert 'flows = "flows.csv" and sampled = 1000' in said
    best, _ = told(tmp_path, f"intervals = 2\n{LEAVES}{FLOWS}sampled = 1000\n")
    assert best["answer"]["action"] == "cannot tell"
    assert "one packet in 1000" in best["answer"]["why"]


@pytest.mark.slow
def test_a_short_trace_gets_a_session_that_fits(tmp_path: Path) -> None:
    imported(tmp_path, trace(0.04, 0.5))
    best, said = told(tmp_path, "intervals = 40\n" + LEAVES + FLOWS)
    assert "the trace has 39.98 ms, and 40 intervals with 5 parts of 6 need 100" in said
    assert "chose --intervals 40 --eval-seeds" not in said
    assert "chose --intervals" in said
    assert best["intervals"] < 40
    assert len(best["utility_on_held_out_seeds"]["seeds"]) >= 2
    assert best["answer"]["action"] == "cannot tell"  # of three parts of 4 ms
    assert "need" in best["answer"]["next_step"]
    assert "ms of trace, and there are 39.98" in best["answer"]["next_step"]


@pytest.mark.slow
def test_a_trace_that_is_too_short_for_anything_is_told_its_length(tmp_path: Path) -> None:
    imported(tmp_path, trace(0.012, 0.3))
    best, said = told(tmp_path, "intervals = 40\n" + LEAVES + FLOWS)
    assert "capture 100 ms" in said
    assert best["answer"]["action"] == "cannot tell"
    assert "capture 68 ms" in best["answer"]["next_step"]  # two parts: the least


TRACE = "intervals = 10\n" + LEAVES + FLOWS


def quiet_then_busy() -> list[Flow]:
    """Four seconds of a flow every 20 ms, but for a tenth of a second in the middle."""
    quiet = [(0.02 * i, i % 8, (i + 1) % 8, 30_000) for i in range(200)]
    return sorted([*quiet, *((2 + at, s, d, n) for at, s, d, n in trace(0.1, 0.6))])


@pytest.mark.slow
def test_of_a_long_trace_the_busiest_stretch_is_judged_and_named(tmp_path: Path) -> None:
    assert "busiest windows, for --window: 2" in imported(tmp_path, quiet_then_busy())
    best, said = told(tmp_path, TRACE)
    begin, end = map(float, re.findall(r"judged: (\S+) to (\S+) ms of the trace, the bus", said)[0])
    assert 1990 < begin < end < 2110
    assert best["answer"]["action"] == "deploy"
    python = dcqcn_gym.tune
    with pytest.warns(UserWarning, match=f"judged: {begin:g} to {end:g} ms"):
        same = python(tmp_path / "fabric.toml", "advise", out=tmp_path / "python")
    assert same == best  # one function chooses for both
    page = run("report", str(tmp_path / "run"))
    assert page
    assert f"{begin:g} to {end:g} of its" in (tmp_path / "run/report.html").read_text()
    said = run(
        "compare", "--scenario", str(tmp_path / "fabric.toml"), "--tuners", "default,advise",
        "--seeds", "2", "--eval-intervals", "4", "--out", str(tmp_path / "compare"),
    )  # fmt: skip
    assert "the busiest of" in said
    again = run("compare", "--out", str(tmp_path / "compare"), "--seeds", "3")
    assert "some share a part" in again
    assert re.findall(r"judged: (\S+ to \S+) ms", again) == re.findall(
        r"judged: (\S+ to \S+) ms", said
    )
    out = ("--out", str(tmp_path / "one"))
    assert "ms of the trace, the busiest" in run(
        "simulate", "-s", str(tmp_path / "fabric.toml"), *out
    )
    log = read_run(tmp_path / "run/run.jsonl").header["scenario"]["workloads"][0]
    assert log["stretch_ms"][:2] == pytest.approx([begin, end])


@pytest.mark.slow
def test_another_window_is_judged_where_one_is_named(tmp_path: Path) -> None:
    imported(tmp_path, quiet_then_busy())
    best, said = told(tmp_path, TRACE, "--window", "3:3.1")
    assert "busiest" not in said.partition("warming")[0]
    assert best["answer"]["action"] == "cannot tell"
    assert "nothing queued" in best["answer"]["why"]
    with pytest.raises(ConfigError, match="no flow starts from 9000 to 9100 ms"):
        told(tmp_path, TRACE, "--window", "9:9.1")
    with pytest.raises(ConfigError, match="has no trace"):
        told(tmp_path, LEAVES + POISSON.format(0.3), "--window", "0:1")


def test_no_way_of_running_passes_by_what_traffic_cannot_tell(tmp_path: Path) -> None:
    imported(tmp_path, [flow for flow in trace(0.01, 0.5) if 3 in flow[1:3]])
    (tmp_path / "fabric.toml").write_text(LEAVES + FLOWS)
    (tmp_path / "drawn.toml").write_text(LEAVES + POISSON.format(0.3))
    for number, words in enumerate((
        ("fabric.toml", "--until-done"),
        ("fabric.toml", "--intervals", "4"),
        ("drawn.toml", "--flows", str(tmp_path / "flows.csv")),
    )):  # fmt: skip
        out = ("--out", str(tmp_path / str(number)))
        said = run("simulate", "--scenario", str(tmp_path / words[0]), *words[1:], *out)
        assert "this is a capture at one host" in said


@pytest.mark.slow
def test_thresholds_in_bytes(tmp_path: Path) -> None:
    initial = "[initial]\nkmin = 400000\nkmax = 1600000\n"
    best, _ = told(tmp_path, initial + SWITCH + POISSON.format(0.4), *SHORT)
    assert best["answer"]["action"] == "cannot tell"
    assert "write kmin = 400" in best["answer"]["next_step"]
    assert "write kmin = 400" in run("advise", "--scenario", str(tmp_path / "fabric.toml"))
    out = ("--out", str(tmp_path / "one"), "--intervals", "2")
    said = run("simulate", "--scenario", str(tmp_path / "fabric.toml"), *out)
    assert "write kmin = 400" in said


BAD = """[initial]
kmin = 10
kmax = 20
pmax = 1.0
rp_ai_rate = 1
rp_time_reset = 1500
"""


@pytest.mark.slow
def test_a_bad_setting_in_service_is_weighed(tmp_path: Path) -> None:
    best, _ = told(tmp_path, BAD + LEAVES + POISSON.format(0.3), *SHORT)
    assert best["answer"]["action"] == "a choice"  # small flows pay for the others
    assert best["answer"]["baseline"] == "yours"
    assert "flows of 100 KB to 1 MB finish" in best["answer"]["gains"][0]
    assert "flows below 100 KB finish" in best["answer"]["costs"][0]


@pytest.mark.slow
def test_a_good_setting_in_service_stays(tmp_path: Path) -> None:
    scenario = LEAVES + POISSON.format(0.3)
    (tmp_path / "fabric.toml").write_text(scenario)
    lines = run("advise", "--scenario", str(tmp_path / "fabric.toml")).splitlines()
    good = [line.partition("(")[0].split()[:3] for line in lines if "(default" in line]
    initial = "[initial]\n" + "".join(f"{name} = {value}\n" for name, _, value in good)
    best, _ = told(tmp_path, initial + scenario, *SHORT, "--eval-seeds", "5")
    assert best["answer"]["baseline"] == "yours"
    assert best["answer"]["action"] == "keep"


@pytest.mark.slow
def test_a_known_better_setting_is_found(tmp_path: Path) -> None:
    best, _ = told(tmp_path, LEAVES + POISSON.format(0.5), *SHORT)
    assert best["answer"]["action"] == "deploy"
    assert best["answer"]["setting"] in ("advise", "candidate")
    assert best["answer"]["baseline"] == "default"


@pytest.mark.slow
def test_a_class_of_few_flows_is_not_tested_and_said(tmp_path: Path) -> None:
    initial = "[initial]\nRPG_AI_RATE = 50\nkmin = 100\nkmax = 400\n"
    five = ("--eval-seeds", "5")
    best, said = told(tmp_path, initial + SWITCH + POISSON.format(0.4), *SHORT, *five)
    assert best["answer"]["not_tested"] == ["flows from 1 MB (fewer than 30)"]
    assert "elephants not tested" in " ".join(said.split())
    assert "not tested, for want of flows: flows from 1 MB" in said


@pytest.mark.slow
def test_pairs_that_never_meet(tmp_path: Path) -> None:
    pairs = "[[0,1,1000000],[2,3,1000000],[4,5,1000000],[6,7,30000]]"
    workload = f'[[workloads]]\nkind = "pairs"\npairs = {pairs}\nrounds = 0\noff_us = 20\n'
    best, _ = told(tmp_path, SWITCH + workload, *SHORT)
    assert best["answer"]["action"] == "cannot tell"
    assert "nothing queued" in best["answer"]["why"]


@pytest.mark.slow
def test_a_difference_of_nothing_is_no_reason_to_deploy(tmp_path: Path) -> None:
    null = "[initial]\nkmin = 99\n" + SWITCH + POISSON.format(0.4)
    best, _ = told(tmp_path, null, *SHORT, tuner="default")
    tried = best["answer"]["tried"]
    assert tried["default"]["deploy"] == "no"
    assert best["answer"]["setting"] != "default"


SERVERS = """qp = "pair"
[servers]
gpus = 8
[topology]
kind = "single-switch"
hosts = 16
gbps = 100
[[workloads]]
kind = "job"
[workloads.graph.plan]
"""


@pytest.mark.slow
def test_a_job_inside_one_server(tmp_path: Path) -> None:
    plan = 'model = "llama-7b"\ntp = 8\nlayers = 1\nscale = 0.2\n'
    best, _ = told(tmp_path, SERVERS + plan, *SHORT)
    assert best["answer"]["action"] == "cannot tell"
    assert "inside one server" in best["answer"]["why"]


GPT = 'model = "gpt3-175b"\ntp = 8\ndp = 2\nbatch = 2\nlayers = 4\n'


def test_a_job_of_175_billion_weights_is_told_how_long_it_takes(tmp_path: Path) -> None:
    (tmp_path / "fabric.toml").write_text(SERVERS + GPT)
    out = ("--out", str(tmp_path / "one"), "--intervals", "1")
    said = run("simulate", "--scenario", str(tmp_path / "fabric.toml"), *out)
    assert "an iteration of the job takes at least" in said
    assert "--intervals" in said
    assert "scale = " in said


@pytest.mark.slow
def test_a_job_that_is_longer_than_the_run_is_scaled(tmp_path: Path) -> None:
    best, said = told(
        tmp_path, SERVERS + GPT, "--intervals", "5", "--eval-seeds", "3", "--eval-intervals", "10"
    )
    assert "chose scale = " in said
    assert best["answer"]["action"] == "keep"  # of iterations that end
    kept = SERVERS + GPT + "scale = 1.0\n"
    (tmp_path / "kept.toml").write_text(kept)
    out = ("--out", str(tmp_path / "two"), "--intervals", "5")
    said = run("simulate", "--scenario", str(tmp_path / "kept.toml"), *out)
    assert "chose" not in said
    assert "none would end" in said


@pytest.mark.slow
def test_one_giant_flow_does_not_make_an_answer(tmp_path: Path) -> None:
    imported(tmp_path, sorted([(0.0, 0, 5, 2 * 10**9), *trace(0.1, 0.02)]))
    best, said = told(tmp_path, TRACE)
    assert "judged: 0 to 66 ms" in said  # where it starts
    assert best["answer"]["action"] == "cannot tell"
    assert "ms of trace, and there are" in best["answer"]["next_step"]


def test_flows_in_one_direction_are_asked_about(tmp_path: Path) -> None:
    both = trace(0.02, 0.4)
    one = [(at, s % 4, 4 + d % 4, n) for at, s, d, n in both]
    assert "if hosts do, this is one direction of them" in imported(tmp_path, one)
    assert "one direction" not in imported(tmp_path, both)


def test_thresholds_that_are_swapped_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kmin = 400 KB is larger than kmax = 100 KB"):
        told(tmp_path, "[initial]\nkmin = 400\nkmax = 100\n" + SWITCH + POISSON.format(0.4))


@pytest.mark.slow
def test_a_capture_of_a_slower_fabric_asks_for_no_change(tmp_path: Path) -> None:
    imported(tmp_path, trace(0.03, 0.3, gbps=25))
    best, _ = told(tmp_path, "intervals = 5\n" + LEAVES.replace("25", "400") + FLOWS)
    assert best["answer"]["action"] in ("keep", "cannot tell")


@pytest.mark.slow
def test_a_capture_of_a_faster_fabric_is_not_of_this_one(tmp_path: Path) -> None:
    imported(tmp_path, trace(0.04, 0.8, gbps=100))
    best, said = told(tmp_path, "intervals = 5\n" + LEAVES + FLOWS)
    assert said.count("so they were not sent on this fabric") == 2  # before the run, as the answer
    assert best["answer"]["action"] == "cannot tell"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "seconds", "why"), [(1e3, 0.1, "nothing queued"), (1e-3, 0.03, "")]
)
def test_a_wrong_unit_of_time_makes_no_answer(
    tmp_path: Path, factor: float, seconds: float, why: str
) -> None:
    flows = [(at * factor, s, d, n) for at, s, d, n in trace(seconds, 0.2)]
    imported(tmp_path, flows if factor < 1 else flows[::10])
    best, _ = told(tmp_path, "intervals = 5\n" + LEAVES + FLOWS)
    assert best["answer"]["action"] == "cannot tell"
    assert why in best["answer"]["why"]


def test_a_capture_without_roce_is_refused_with_its_reason(tmp_path: Path) -> None:
    rows = "1750000000,10.0.0.1,10.0.0.2,1,443,TCP,10,900\n"
    (tmp_path / "web.csv").write_text(f"ts,sa,da,sp,dp,pr,ipkt,ibyt\n{rows}")
    with pytest.raises(ConfigError, match="1 records are of other protocols than RoCE"):
        run("traffic", "import", str(tmp_path / "web.csv"), "--out", str(tmp_path))


def test_records_that_appear_twice_are_said(tmp_path: Path) -> None:
    flows = trace(0.01, 0.3)
    assert f"{len(flows)} records appear twice" in imported(tmp_path, sorted(flows * 2))


def test_hosts_that_are_not_in_the_fabric_are_named(tmp_path: Path) -> None:
    flows = trace(0.01, 0.3, hosts=12)
    said = imported(tmp_path, flows)
    taken = sum(max(s, d) < 8 for _, s, d, _ in flows)
    assert f"{taken} were taken and {len(flows) - taken} left out" in said
    write_csv(tmp_path / "seen.csv", flows)
    run("traffic", "import", str(tmp_path / "seen.csv"), "--out", str(tmp_path), "--quiet")
    with pytest.raises(ConfigError, match="is not a host; expected 0 to 7"):
        told(tmp_path, TRACE)
