"""Studies as data: every file of the package is runs, and its tables are of its own runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.comparison.plan import Plan, load_plan, study_names
from dcqcn_gym.comparison.tables import markdown, tables_of, write_results_of
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, UnknownNameError
from dcqcn_gym.envs.scenario.jobs.description import JobDescription
from dcqcn_gym.envs.scenario.jobs.figures import chain_ps
from dcqcn_gym.envs.scenario.scenario import Network, load_scenario
from dcqcn_gym.runs.campaign import FinishedJob
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.tuners.acc import load_network
from dcqcn_gym.tuners.acc_state import sizes
from dcqcn_gym.tuners.ddqn import new_layers
from made_study import produce

MINI = [{"scenario": "mini-fb-hadoop"}]


def recommended(*tuners: str, **values: object) -> Plan:
    """Return the study of recommendations on a small scenario of the fake backend."""
    entries = [{"name": name, "backend": "fake"} for name in ("default", "expert", *tuners)]
    small = {"intervals": 6, "held_out_seeds": 3, "held_out_intervals": 4, "cases": MINI}
    return load_plan("recommended").changed(**{**small, "entries": entries, **values})


@pytest.mark.parametrize("name", study_names())
def test_every_study_of_the_package_can_start(name: str, tmp_path: Path) -> None:
    study = load_plan(name)
    trials = study.trials(tmp_path)
    assert len({trial.log for several in trials.values() for trial in several}) == (
        len(study.cases) * len(study.entries) * study.seeds
    )
    of_case = next(iter(trials))[0]
    for (case, _), several in trials.items():
        if case == of_case:
            several[0].spec.check()


@pytest.mark.parametrize("name", study_names())
def test_entries_meet_the_same_network_and_traffic(name: str, tmp_path: Path) -> None:
    study = load_plan(name)
    assert study.cases
    assert study.seeds > 0
    for case in study.cases:
        met = set()
        for (title, _), several in study.trials(tmp_path).items():
            for trial in several if title == case.title else ():
                network = trial.spec.scenario.model_dump(
                    mode="json", include=set(Network.model_fields)
                )
                del network["monitor"]
                network.pop("scheme", None)  # which an entry may be
                met.add((json.dumps(network), trial.spec.seed))
        assert len(met) == study.seeds


def test_logs_tables_and_resume(tmp_path: Path) -> None:
    said: list[FinishedJob[Any]] = []
    study = recommended("random")
    trials = produce(study, tmp_path, said.append)
    logs = {p: p.read_bytes() for p in sorted(tmp_path.rglob("*.jsonl"))}
    assert len(logs) == len(said) == 3 * (1 + 3)
    text = markdown(study, "recommended", tables_of(study, trials))
    assert "(Student's t)" in text
    assert [line.split(" | ")[0] for line in text.splitlines()[-3:]] == [
        "| default", "| expert", "| random",
    ]  # fmt: skip
    trial = trials["mini-fb-hadoop", "random"][0]
    trial.held_out[0].unlink()
    trial.log.write_bytes(trial.log.read_bytes()[:-500])
    produce(study, tmp_path)
    assert {p: p.read_bytes() for p in sorted(tmp_path.rglob("*.jsonl"))} == logs
    write_results_of(study, trials, tmp_path)
    for row in json.loads((tmp_path / "results.json").read_text())["rows"]:
        ends = [
            json.loads(path.read_text().splitlines()[-1])["end"]["mean_utility"]
            for path in trials["mini-fb-hadoop", row["name"]][0].held_out
        ]
        assert row["utility"]["mean"] == pytest.approx(math.fsum(ends) / 3, abs=1e-12)


def test_a_setting_differs_from_itself_by_nothing(tmp_path: Path) -> None:
    entries = [{"name": name} for name in ("default", "do-nothing")]  # native: tells all flows
    tables = [{"kind": "held-out", "against": ["default"]}]
    study = recommended(entries=entries, tables=tables, intervals=2, held_out_seeds=2)
    (table,) = tables_of(study, produce(study, tmp_path))
    row = dict(zip(table.columns, table.rows[-1], strict=True))
    assert row["minus default"] == "+0.0000"
    assert row["against default"] == "+0.0 %"


def test_classes_during_and_after(tmp_path: Path) -> None:
    entries = [{"name": name} for name in ("default", "do-nothing", "expert")]
    tables = [{"kind": "classes", "against": ["default"]}]
    study = recommended(entries=entries, tables=tables, intervals=4, held_out_seeds=2)
    one, pooled = tables_of(study, produce(study, tmp_path))
    assert one.columns == pooled.columns
    assert one.columns[7:] == tuple(f"{name}, after" for name in one.columns[1:7])
    own, expert = (dict(zip(pooled.columns, row, strict=True)) for row in pooled.rows[1:])
    assert own["mean 0-100KB"] == own["p99 1MB-, after"] == "+0 %"
    assert expert["mean 0-100KB"] != "+0 %"
    (cell,) = [row[1] for row in one.rows if row[0] == "expert"]
    assert cell.split(", ")[1].split(" %")[0] == expert["mean 0-100KB"].removesuffix(" %")


def test_many_seeds_have_another_interval(tmp_path: Path) -> None:
    study = recommended(held_out_seeds=20, intervals=2, held_out_intervals=2)
    tables = tables_of(study, produce(study, tmp_path))
    assert "(BCa bootstrap)" in markdown(study, "recommended", tables)


def test_places_under_every_alpha(tmp_path: Path) -> None:
    alpha = load_plan("alpha")
    study = alpha.changed(
        seeds=1, intervals=2, entries=[{"name": "default"}],
        cases=[case.model_dump() for case in alpha.cases if case.scenario == "mini-storm"],
        tables=[{"kind": "places", "against": ["mini-storm, 1/8"]}],
    )  # fmt: skip
    trials = produce(study, tmp_path)
    (table,) = tables_of(study, trials)
    assert table.columns == ("mini-storm", "1/16", "1/8", "1/4", "1/2", "computed")
    assert [row[0] for row in table.rows] == ["default", "same order as 1/8"]
    assert len(set(table.rows[0][1:])) > 2  # alpha matters in a pause storm
    assert trials["mini-storm, 1/2", "default"][0].spec.scenario.alpha == 0.5


def test_the_untrained_network_is_where_a_training_begins() -> None:
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([1, 0xACC])))
    kept = load_network("acc-untrained")
    assert kept.meta.steps == 0
    for (weight, bias), (w, b) in zip(kept.layers, new_layers(sizes(0), random), strict=True):
        assert np.array_equal(weight, w.astype(np.float32))
        assert np.array_equal(bias, b.astype(np.float32))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"entries": [{"name": "parleon"}]}, "did you mean 'paraleon'"),
        ({"entries": [{"name": "a"}, {"name": "a"}]}, "both called 'a' and are the same"),
        ({"cases": [*MINI, *MINI]}, "both called 'mini-fb-hadoop' and are the same"),
        ({"tables": [{"kind": "held-out", "against": ["expart"]}]}, "did you mean 'expert'"),
        ({"seeds": 999, "held_out_seeds": 999}, "are .* runs; expected at most"),
        ({"cases": [{"scenario": "mini-storm", "changes": {"swich": {}}}]}, "unknown key 'swich'"),
    ],
)
def test_a_plan_that_is_wrong_leaves_nothing(
    values: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DcqcnGymError, match=said):
        produce(recommended(**{"tables": [{"kind": "held-out"}], **values}), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'description = "Mine."\nintervals = 9\nseeds = 2\n'
        '[[cases]]\nscenario = "mini-fb-hadoop"\n[[entries]]\nname = "default"\nbackend = "fake"\n'
        '[[entries]]\nname = "random"\nbackend = "fake"\n'
        '[[tables]]\nkind = "acting"\nagainst = ["default"]\n'
    )
    page = tmp_path / "page.md"
    page.write_text("<!-- study mine: begin -->\n<!-- study mine: end -->\n")
    out = tmp_path / "out"
    words = ["study", str(file), "--out", str(out), "--jobs", "1", "--intervals", "3"]
    done = CliRunner().invoke(app, [*words, "--write", str(page), "--quiet"])
    assert done.exit_code == 0, done.output
    assert "Runs of 3 intervals, seeds 1, 2." in page.read_text()
    assert json.loads((out / "study.json").read_text())["plan"]["intervals"] == 3
    with pytest.raises(UnknownNameError, match="did you mean 'recommended'"):
        load_plan("recommend")
    with pytest.raises(ConfigError, match="no such file"):
        load_plan(str(tmp_path / "none.toml"))


def test_iterations_of_jobs(tmp_path: Path) -> None:
    entries = [
        {"name": "default"},
        {"name": "slow", "tuner": "do-nothing", "changes": {"topology": {"host_gbps": 200}}},
    ]
    study = load_plan("jobs").changed(
        cases=[{"scenario": "job-checkpoint-40"}], entries=entries, seeds=2, intervals=12
    )
    trials = produce(study, tmp_path)
    (table,) = tables_of(study, trials)
    name, took, exposed, slow = table.rows[0]
    times = []
    for trial in trials[name, "default"]:
        lines = read_run(trial.log).intervals
        rounds = [one["time_ps"] for line in lines for one in line.get("rounds", ())]
        times.append(sum(rounds) / len(rounds))
    assert float(took) == pytest.approx(sum(times) / 2 * 1e-9, abs=1e-3)
    job = load_scenario(name).workloads[0].model_dump(mode="json")
    alone = chain_ps(JobDescription.model_validate(job["graph"]).job)
    assert int(exposed) == round(100 - 200 * alone / sum(times))
    assert float(slow.split()[0]) > 50
