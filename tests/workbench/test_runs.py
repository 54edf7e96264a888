"""The workbench over a folder of runs: what is listed, in which numbers, and what is left out."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.answer import SIZES
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.workbench.changes import changes
from dcqcn_gym.extras.workbench.page import write_workbench
from dcqcn_gym.extras.workbench.runs import Reader, ShownRun

FEW = ["--scenario", "mini-fb-hadoop", "--intervals", "4", "--eval-intervals", "4"]


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def typed(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of each kind."""
    root = tmp_path_factory.mktemp("bench") / "runs"
    typed("tune", *FEW, "--tuner", "random", "--quiet", "--out", root / "tuned")
    typed("compare", *FEW, "--tuners", "default,advise", "--seeds", 2, "--eval-seeds", 2,
          "--jobs", 1, "--out", root / "compared")  # fmt: skip
    typed("sweep", *FEW[:4], "--knob", "kmin=20,100", "--seeds", 2, "--jobs", 1,
          "--out", root / "swept")  # fmt: skip
    typed("simulate", *FEW[:4], "--set", "kmin=20", "--out", root / "simulated")
    return root


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, ShownRun]:
    return {run.name: run for run in Reader().runs(root)}


def page_data(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="workbench">(.*?)</script>', page)
    found: dict[str, Any] = json.loads(text)
    return found


def test_every_kind_is_there_with_the_settings_that_it_tried(runs: dict[str, ShownRun]) -> None:
    assert {name: run.kind for name, run in runs.items()} == {
        "compared": "compare", "simulated": "simulate", "swept": "sweep", "tuned": "tune",
    }  # fmt: skip
    settings = {name: [s.name for s in run.settings] for name, run in runs.items()}
    assert settings["tuned"] == [
        "default", "expert", "candidate", "advise", "random while it searched",
    ]  # fmt: skip
    assert settings["compared"] == ["advise", "default"]
    assert settings["swept"] == ["kmin-100", "kmin-20"]
    assert settings["simulated"] == ["simulated"]
    assert [run.left_out for run in runs.values()] == [(), (), (), ()]


def test_the_answer_is_the_one_that_the_files_hold(root: Path, runs: dict[str, ShownRun]) -> None:
    best = json.loads((root / "tuned/best.json").read_text())["answer"]
    assert runs["tuned"].answer == best
    assert runs["tuned"].baseline == best["baseline"] == "default"
    said = json.loads((root / "compared/results.json").read_text())["figures"]["answers"]
    assert runs["compared"].answer == said["mini-fb-hadoop"]
    judged = {s.name: s.judged for s in runs["tuned"].settings}
    assert judged["expert"] == best["tried"]["expert"]["text"] != ""
    write_workbench(root)
    page = (root / "index.html").read_text()
    assert best["title"].replace("'", "&#39;") in page


def test_figures_are_those_of_other_pages(root: Path, runs: dict[str, ShownRun]) -> None:
    results = json.loads((root / "compared/results.json").read_text())
    for row in results["rows"]:
        (setting,) = [s for s in runs["compared"].settings if s.name == row["tuner"]]
        assert setting.figures.metrics["utility"] == pytest.approx(row["final"]["mean"])
        assert setting.figures.metrics["unfinished"] == pytest.approx(row["unfinished"]["mean"])
        for flag in (row["verdict"] or {}).get("flags", ()):
            what, _, key = flag["key"].partition(" ")
            for of in setting.figures.sizes:
                if of.key == key:
                    assert of.slowdown[what] == pytest.approx(flag["cost"]["ours"])
    summary = json.loads((root / "simulated/summary.json").read_text())
    (simulated,) = runs["simulated"].settings
    assert simulated.figures.metrics["utility"] == pytest.approx(summary["mean_utility"])
    assert simulated.figures.finished_only


def test_changes_are_grouped_by_what_changes_alike(runs: dict[str, ShownRun]) -> None:
    (simulated,) = runs["simulated"].settings
    assert [(c.devices, c.knob, c.before, c.after, c.unit) for c in simulated.changes] == [
        ("4 switches, all ports", "kmin", "100", "20", "KB")
    ]
    advise = next(s for s in runs["tuned"].settings if s.name == "advise")
    assert {c.devices for c in advise.changes} == {"all 16 hosts", "4 switches, all ports"}
    assert next(s for s in runs["tuned"].settings if s.name == "default").changes == ()
    # a sweep's points are against the setting in service, not each against itself
    swept = {s.name: [c.knob for c in s.changes] for s in runs["swept"].settings}
    assert swept == {"kmin-100": [], "kmin-20": ["kmin"]}


def test_devices_of_a_group_are_counted() -> None:
    scenario = load_scenario("mini-fb-hadoop")
    was = scenario.initial_setting()
    grouped = {
        "cluster": was,
        "nic:3": was.replace(rp_ai_rate=77),
        "tor-uplinks": was.replace(kmin=33),
        "spine": was.replace(kmax=444),
    }
    devices: Devices = scenario.fabric.devices
    found = {(c.devices, c.knob) for c in changes(grouped, scenario, was)}
    tors = [node for node, tier in devices.tiers.items() if tier == 0]
    ports = sum(node in tors for node in devices.port_node)
    assert found == {
        ("1 of 16 hosts: h3", "rp_ai_rate"),
        (f"2 switches, 4 of {ports} ports", "kmin"),
        ("2 switches, all ports", "kmax"),
    }


def test_the_page_holds_all_and_asks_for_nothing(root: Path, runs: dict[str, ShownRun]) -> None:
    pytest.importorskip("altair", reason="pip install 'dcqcn-gym[workbench]'")
    path, count = write_workbench(root)
    page = path.read_text()
    assert count == len(runs) == 4
    data = page_data(page)
    assert [one["run"] for one in data["settings"]].count("tuned") == 5
    assert set(data["charts"]) == {"by_size", "over_time"}
    shown = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"<(?:script|img|iframe)[^>]*src=|<link[^>]*href=\"(?!data:)", shown)
    first = path.read_bytes()
    assert write_workbench(root)[0].read_bytes() == first
    axes = [
        one["title"]
        for chart in data["charts"].values()
        for of in chart["concat"]
        for layer in of.get("layer", [of])
        for one in (layer["encoding"]["x"], layer["encoding"]["y"])
    ]
    assert len(axes) == 4 * 2 + 4 * 2 * 2
    assert all(axes)


def test_without_the_charts_library_the_page_says_what_draws_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    write_workbench(root)
    page = (root / "index.html").read_text()
    assert "No charts: drawing the workbench" in page
    assert "[workbench]" in page
    assert page_data(page)["charts"] == {}
    assert len(page) < 300_000


def test_what_cannot_be_read_is_listed_with_its_reason(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "tuned", tmp_path / "cut")
    log = tmp_path / "cut/run.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))
    (tmp_path / "cut/best.json").unlink()
    put(tmp_path / "broken/best.json", "{broken")
    put(tmp_path / "only/best.json", {"scenario": "mini", "answer": {"action": "keep"}})
    shutil.copytree(root / "compared", tmp_path / "short")
    log = next((tmp_path / "short").rglob("advise/seed1-held-out0.jsonl"))
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))
    runs = {run.name: run for run in Reader().runs(tmp_path)}
    assert sorted(runs) == ["broken", "cut", "only", "short"]
    assert runs["cut"].intervals == "2 of 4"
    assert runs["cut"].action == "not finished"
    assert "The log ends early" in runs["cut"].left_out[0]
    assert "expected the event log" in runs["broken"].left_out[0]
    assert runs["only"].action == "keep"
    assert runs["short"].left_out == (f"advise/{log.name}: the log has not come to its end",)
    page = write_workbench(tmp_path)[0].read_text()
    assert "expected the event log" in page
    assert "has not come to its end" in page


def test_only_what_changed_is_read_again(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "tuned", tmp_path / "tuned")
    reader = Reader()
    before = reader.runs(tmp_path)
    assert reader.runs(tmp_path)[0] is before[0]
    with (tmp_path / "tuned/run.jsonl").open("a") as log:
        log.write("\n")
    assert reader.runs(tmp_path)[0] is not before[0]


def test_a_folder_without_runs_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run"):
        write_workbench(tmp_path)
    with pytest.raises(ConfigError, match="is no folder"):
        write_workbench(root / "compared/compare.html")


def test_names_are_escaped(tmp_path: Path) -> None:
    why = "slowdowns are <b>40 %</b> lower"
    answer = {"action": "deploy", "setting": "advise", "title": why, "why": why}
    put(tmp_path / "<i>/best.json", {"scenario": "</script>", "answer": answer})
    page = write_workbench(tmp_path)[0].read_text()
    assert "&lt;b&gt;40" in page
    assert "<i>" not in page
    assert page_data(page)["settings"] == []


def test_the_classes_are_those_of_the_answer(runs: dict[str, ShownRun]) -> None:
    for run in runs.values():
        for setting in run.settings:
            assert [of.key for of in setting.figures.sizes] == list(SIZES)
