"""Recipes that change the engine: a knob, a scheme, a monitor and a figure of reports.

All are carried out in one copy, which is built once, and then tried one by one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from copied import ROOT, Copy
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.version import code_versions

pytestmark = pytest.mark.slow

MINI = ROOT / "configs" / "scenarios" / "mini-fb-hadoop.toml"

KNOB = """    {{.name = "np_extra_gap",
      .group = "np",
      .unit = kMicroseconds,
      .initial = 0,
      .legal = {0, 131071},
      .tuned = {0, 1000},
      .step = 16,
      .direction = 1,
      .help = "time added to the shortest gap between two CNPs",
      .tried_si = {1e-7, 1e-3},
      .source = "ours"},
     [](NicSetting& s, double v) { s.extra_gap = picoseconds(v); }},
"""


def add_knob(tree: Copy) -> None:
    """Add ``np_extra_gap``, which lengthens the gap between CNPs."""
    end = "});\nstatic_assert(sound(kDcqcnKnobs));"
    tree.change("engine/model/schemes/dcqcn_knobs.hpp", end, KNOB + end)
    member = "  Time cnp_gap;\n"
    tree.change("engine/model/settings/settings.hpp", member, f"{member}  Time extra_gap;\n")
    gap = "at.setting.cnp_gap"
    tree.change("engine/model/schemes/dcqcn.hpp", gap, f"{gap} + at.setting.extra_gap")
    tests = "engine/tests/knobs_test.cpp"
    tree.change(tests, "real(s.cnp_gap)};", "real(s.cnp_gap), real(s.extra_gap)};")
    tree.change(tests, "1023, 4e6};", "1023, 4e6, 0};")
    tree.change("tests/core/test_knobs.py", "(20, 17, 3, 14)", "(21, 18, 3, 14)")


SCHEME = '''class Toy(SchemeModel):
    """The toy of the engine's tests."""

    name: Literal["toy"] = "toy"
    pace: Literal["fast", "slow"] = "fast"

    def options(self) -> dict[str, object]:
        """Return how fast a queue pair starts."""
        return {"pace": self.pace}


'''


def add_scheme(tree: Copy) -> None:
    """Add the toy scheme as one of the engine's own."""
    tree.copy("engine/tests/toy/toy_scheme.hpp", "engine/model/schemes/toy.hpp", {})
    path = "engine/model/schemes/list.hpp"
    last = '#include "model/schemes/timely.hpp"\n'
    tree.change(path, last, f'{last}#include "model/schemes/toy.hpp"\n')
    tree.change(path, "DolceRc, DolcePlus>", "DolceRc, DolcePlus, Toy>")
    path = "envs/scenario/scheme.py"
    tree.change(path, "def _by_name", f"{SCHEME}def _by_name")
    tree.change(path, "DolceRc | DolceRcPlus\n", "DolceRc | DolceRcPlus | Toy\n")
    section = "## What they cost\n"
    tree.change("docs/reference/schemes.md", section, f"## Toy\n\nUses every hook.\n\n{section}")
    path = "tests/simulate/test_scheme_events.py"
    tree.change(path, '"dolce-rc-plus": {', '"toy": {"cut"}, "dolce-rc-plus": {')
    tree.change(path, '"dolce-rc-plus": [', '"toy": ["rate", "listed"], "dolce-rc-plus": [')


MONITOR = '''class SampledMonitor(NetflowMonitor):
    """Sampled packets, as NetFlow."""

    summary = "sampled packets"
    kind: Literal["sampled"] = "sampled"


'''


def add_monitor(tree: Copy) -> None:
    """Add ``sampled``, which counts like ``netflow``."""
    changes = {"Netflow": "Sampled", '"netflow"': '"sampled"'}
    tree.copy("engine/model/monitors/netflow.hpp", "engine/model/monitors/sampled.hpp", changes)
    path = "engine/model/monitors/list.hpp"
    last = '#include "model/monitors/none.hpp"\n'
    tree.change(path, last, f'{last}#include "model/monitors/sampled.hpp"\n')
    tree.change(path, "FlowLog>;", "Sampled, FlowLog>;")
    path = "envs/scenario/monitor.py"
    tree.change(path, "class ChameleonMonitor", f"{MONITOR}class ChameleonMonitor")
    tree.change(
        path, "        NetflowMonitor,\n", "        NetflowMonitor,\n        SampledMonitor,\n"
    )
    line = '    | Annotated[NetflowMonitor, Tag("netflow")]\n'
    tree.change(path, line, f'{line}    | Annotated[SampledMonitor, Tag("sampled")]\n')


FIGURE = """    ReportField{"control_packets", "packets", "ACKs and CNPs sent",
                [](const Totals& t) { return t.acks + t.cnps; }, "log info csv sum", false},
"""


def add_figure(tree: Copy) -> None:
    """Add ``control_packets``, which follows from other counters."""
    table = "inline constexpr std::tuple kTotalsFields{\n"
    tree.change("engine/sim/report_fields.hpp", table, table + FIGURE)
    acks = "    acks: int\n"
    tree.change("src/dcqcn_gym/core/interval.py", acks, f"{acks}    control_packets: int\n")
    line = '    control_packets: Annotated[Count, _meaning("control_packets")]\n'
    tree.change("envs/info.py", "    seed: Annotated", f"{line}    seed: Annotated")


RECIPES = {
    "a knob": add_knob,
    "a scheme": add_scheme,
    "a monitor": add_monitor,
    "a figure of reports": add_figure,
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Return a copy with all of them, built as the recipes say."""
    pytest.importorskip("nanobind", reason="the engine is compiled")
    copied = Copy(tmp_path_factory.mktemp("copied"))
    for title, carry_out in RECIPES.items():
        copied.changed.clear()
        carry_out(copied)
        copied.check_named(title)
    assert len(copied.changed) <= 5  # places of a figure of reports
    for module in (copied.root / "src" / "dcqcn_gym").glob("_core*.so"):
        module.unlink()
    quickly = "UNITY_BUILD=ON", "UNITY_BUILD_BATCH_SIZE=0", "CXX_FLAGS_RELEASE=-O1"
    options = " ".join(f"-DCMAKE_{option}" for option in quickly)
    copied.run(f"CMAKE_ARGS='{options}' make rebuild-core schemas docs")
    return copied


def simulated(tree: Copy, options: str, out: str) -> dict[str, Any]:
    """Return the summary of a simulation."""
    tree.run(f"dcqcn-gym simulate {options} --intervals 3 --out runs/{out}")
    return dict(json.loads(tree.read(f"runs/{out}/summary.json")))


def test_a_knob(tree: Copy) -> None:
    (built,) = (tree.root / "build").glob("*/libdcqcn_engine.a")
    options = f"-DDCQCN_GYM_PYTHON=OFF -DDCQCN_GYM_TESTS=ON -DDCQCN_GYM_ENGINE={built}"
    tree.run(f"cmake -S . -B build/tests -G Ninja {options}")
    tree.run("cmake --build build/tests --target knobs_test && build/tests/knobs_test")
    for place in ("configs/schema/knobs.json", "docs/reference/knobs.md"):
        assert "np_extra_gap" in tree.read(place)
        assert "np_extra_gap" not in (ROOT / place).read_text(encoding="utf-8")
    few, usual = (
        simulated(tree, f"--scenario mini-fb-hadoop --set np_extra_gap={gap}", f"gap-{gap}")
        for gap in (1000, 0)
    )
    assert 0 < few["cnps"] < usual["cnps"]
    tree.run("python tools/golden_runs.py tests/golden")
    tree.run("python tools/run_digests.py --write mini-fb-hadoop")
    tests = ("core/test_knobs.py", "package/test_docs.py",
             "tuners/test_pretrained.py", "tuners/test_policy_files.py", "envs/test_golden.py",
             "core/test_space.py")  # fmt: skip
    assert tree.test(*(f"tests/{name}" for name in tests), "-m 'not slow'") > 100


def test_a_scheme(tree: Copy) -> None:
    assert '"toy"' in tree.read("configs/schema/scenario.json")
    assert "toy_step" in tree.run("dcqcn-gym knobs --scheme toy")
    found = {}
    for pace in ("fast", "slow"):
        line = f'scheme = {{ name = "toy", pace = "{pace}" }}\n'
        tree.add(f"{pace}.toml", line + MINI.read_text(encoding="utf-8"))
        found[pace] = simulated(tree, f"--scenario {pace}.toml", f"toy-{pace}")
    fast, slow = found["fast"], found["slow"]
    assert fast["rate_cuts"] > 0
    assert fast["delivered_bytes"] > slow["delivered_bytes"] > 0
    if shutil.which("valgrind"):
        page = "docs/reference/schemes.md"
        tree.run(f"python tools/speed/measure.py cost --scheme toy --write {page}")
        (row,) = (line for line in tree.read(page).splitlines() if line.startswith("| `toy` |"))
        assert float(row.strip("|").split("|")[-1]) > 100  # instructions per data packet
    tests = ("simulate/test_scheme_events.py", "envs/test_scheme_refusals.py",
             "tools/test_engine_cost.py", "core/test_knobs.py")  # fmt: skip
    assert tree.test(*(f"tests/{name}" for name in tests), "-k toy") >= 4


def test_a_monitor_of_the_engine(tree: Copy) -> None:
    seen = {}
    for kind in ("sampled", "netflow"):
        table = f'[monitor]\nkind = "{kind}"\nsample_one_in = 2\nexport_us = 1\n'
        tree.add(f"{kind}.toml", MINI.read_text(encoding="utf-8") + table)
        seen[kind] = [line["fsd"] for line in tree.tuned(f"--scenario {kind}.toml", kind)]
    assert seen["sampled"] == seen["netflow"]
    assert all(fsd["known"] and fsd["mice"] > 0 for fsd in seen["sampled"])
    assert '"sampled"' in tree.read("configs/schema/scenario.json")


PROGRAM = """
import json
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
for backend in ("native", "fake"):
    env = DcqcnEnv(load_scenario("mini-fb-hadoop"), backend=backend)
    env.reset(seed=1)
    print(env.step(env.initial_setting)[-1]["control_packets"])
"""


def test_a_figure_of_reports(tree: Copy) -> None:
    assert "control_packets" in tree.read("configs/schema/report_fields.json")
    for backend, some in (("native", True), ("fake", False)):
        options = f"--scenario mini-fb-hadoop --backend {backend}"
        summary = simulated(tree, options, f"figure-{backend}")
        header, *rows = tree.read(f"runs/figure-{backend}/intervals.csv").splitlines()
        at = header.split(",").index("control_packets")
        found = summary["control_packets"]
        assert found == sum(int(row.split(",")[at]) for row in rows)
        assert found == (summary["acks"] + summary["cnps"] if some else 0)
        log = [line["control_packets"] for line in tree.tuned(options, f"log-{backend}")]
        assert [n > 0 for n in log] == [some] * 4
    tree.add("program.py", PROGRAM)
    native, fake = map(int, tree.run("python program.py").split())
    assert native > 0 == fake
    assert tree.test("tests/core/test_report_fields.py", "tests/package/test_stub.py") > 5


def test_another_engine_is_other_code(tree: Copy, tmp_path: Path) -> None:
    """What a checkout with other dynamics has made is refused here, with what both are."""
    mine, words = code_versions(), "--scenario mini-fb-hadoop --intervals 3"
    said = tree.run(f"dcqcn-gym simulate {words} --out runs/versions")
    theirs = json.loads(tree.read("runs/versions/summary.json"))["versions"]
    assert theirs["engine"] != mine["engine"]
    assert f"engine {theirs['engine']}\n" in said
    assert theirs["engine"] in tree.run("dcqcn-gym --version")

    tree.run(f"dcqcn-gym tune {words} --tuner random --eval-seeds 0 --quiet --out runs/other")
    out = str(tree.root / "runs" / "other")
    done = CliRunner().invoke(
        app, ["tune", *words.split(), "--tuner", "random", "--eval-seeds", "0", "--out", out]
    )
    assert isinstance(done.exception, RunError)
    for digest in (mine["engine"], theirs["engine"]):
        assert digest in str(done.exception)
