"""Beside the papers' figures: one case of each on ns-3, one figure with ACKs among the data."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.benchmarks.papers import catalog
from dcqcn_gym.benchmarks.papers.acks import FOLDER, as_asked, has_data_acks, with_data_acks
from dcqcn_gym.benchmarks.papers.checks import (
    CONFIRMED_FILE,
    acks_text,
    confirmed_table,
    read_confirmed,
)
from dcqcn_gym.benchmarks.papers.claims import Outcome
from dcqcn_gym.benchmarks.papers.committed import commit_results, committed_checks
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.paraleon import through_influx
from dcqcn_gym.benchmarks.papers.results import RESULTS_FILE, produce, read_results
from dcqcn_gym.benchmarks.papers.tuned import carried_out
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.extras.ns3.parity import Comparison, compare
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.spec import RunSpec
from paper_confirm import CASES, Case, case, confirm, judged

ROOT = Path(__file__).resolve().parents[2]
KEPT = catalog.results_folder()
CONFIRMED = read_confirmed(KEPT / CONFIRMED_FILE)
PAPERS = [paper.name for paper in catalog.PAPERS]


# --- ns-3


def test_every_paper_has_a_case_that_was_identical_on_ns3() -> None:
    assert sorted(one.paper for one in CASES) == sorted(CONFIRMED) == sorted(PAPERS)
    for one in CASES:
        assert catalog.row_of(one.figure).paper == one.paper
        found = CONFIRMED[one.paper]
        assert (found.verdict, found.comparison["identical"]) == ("identical", True)
        assert (found.figure, found.what) == (one.figure, one.what)
        assert min(found.comparison["flows"]) > 50
        assert min(found.comparison["marks"]) > 500


@pytest.mark.parametrize("one", CASES, ids=lambda c: c.paper)
def test_the_engine_repeats_what_was_compared_with_ns3(one: Case) -> None:
    spec = one.make()
    now = carried_out(spec)
    same = compare(spec.scenario, spec.seed, now.reports, now.reports)
    assert json.loads(json.dumps(same.row())) == CONFIRMED[one.paper].comparison


@pytest.mark.parametrize("paper", ["paraleon", "chameleon", "acc"])
def test_in_the_cases_of_tuners_the_tuner_acts(paper: str) -> None:
    assert len({str(setting) for setting in carried_out(case(paper).make()).settings}) > 3


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["paraleon", "dolce-rc"])
def test_ns3_says_the_same_as_the_committed_file(paper: str) -> None:
    assert json.loads(json.dumps(vars(confirm(case(paper))))) == vars(CONFIRMED[paper])


def test_a_world_that_differs_is_apart() -> None:
    """Other settings, other completion times: each of them shows."""
    one = case("paraleon")
    same = Comparison(**CONFIRMED["paraleon"].comparison)
    for found, settings, verdict in (
        (same, True, "identical"),
        (same, False, "APART"),
        (replace(same, identical=False, fct_of_mean=0.02), True, "APART"),
        (replace(same, identical=False, fct_of_mean=0.005), True, "within bounds"),
    ):
        assert judged(one, "paraleon", found, same_settings=settings).verdict == verdict


def test_other_traffic_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = case("chameleon")
    runs = iter([1, 2])

    def other_seed(spec: RunSpec) -> object:
        return carried_out(replace(spec, seed=next(runs), backend="native"))

    monkeypatch.setattr("paper_confirm.carried_out", other_seed)
    assert confirm(one).verdict == "APART"


def test_a_case_against_itself_is_shown_as_identical(tmp_path: Path) -> None:
    (line,) = confirmed_table([confirm(case("chameleon"), "native")]).rows
    assert (line[0], line[-1]) == ("chameleon", "identical")
    with pytest.raises(UnknownNameError, match="did you mean 'paraleon'"):
        case("paralon")
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(RunError, match=r"does not hold what tools/paper_confirm\.py writes"):
        read_confirmed(tmp_path / "b.json")


# --- ACKs and CNPs in the class of their data


def test_one_figure_of_each_paper_was_measured_in_both_ways() -> None:
    kept = committed_checks(KEPT).acks
    assert {catalog.figure(name).paper for name in kept} == set(PAPERS)
    for name, (usual, data) in kept.items():
        figure = with_data_acks(catalog.figure(name))
        assert has_data_acks(data)
        assert not has_data_acks(usual)
        size = figure.sizes[data.size]
        cells = [(c.row, c.x, c.seed) for c in size.cells()]
        assert [(o["row"], o["x"], o["seed"]) for o in data.lines] == cells
        for line in data.lines:
            assert line["revision"] == figure.revision
            assert (line["length_ms"], line["more"]) == (size.length_ms, dict(size.more))
        assert sum(len(claim.cells) for claim in figure.claims) >= 4


def quick(name: str, folder: Path, *, data: bool) -> FigureResults:
    figure = with_data_acks(catalog.figure(name)) if data else catalog.figure(name)
    with ThreadPoolExecutor(1) as pool:
        return produce(figure, "smoke", folder, executor=pool)


def test_the_class_is_asked_for_and_changes_what_is_measured(tmp_path: Path) -> None:
    """WebSearch goes both ways, so that ACKs meet data; the rows are those of the figure."""
    usual = quick("A-fig12", tmp_path / "a", data=False)
    data = quick("A-fig12", tmp_path / "b", data=True)
    figure = catalog.figure("A-fig12")
    shared = [place for place in usual.places if place[0] in figure.data_acks]
    assert shared == list(data.places)
    assert [o["values"] for o in usual.lines] != [o["values"] for o in data.lines]
    page = acks_text(figure, usual, data)
    assert "--acks data" in page
    assert f"of {len(figure.claims)} verdicts changed" in page
    path = commit_results(tmp_path / "b", tmp_path)
    assert path == tmp_path / FOLDER / "A-fig12-smoke.jsonl"
    assert read_results(path) == read_results(tmp_path / "b" / RESULTS_FILE)


def test_the_scenario_says_where_acks_wait() -> None:
    spec = case("acc").make()
    plain, other = (
        figure.sizes["quick"]
        for figure in (catalog.figure("A-fig12"), with_data_acks(catalog.figure("A-fig12")))
    )
    assert as_asked(spec.scenario, plain) is spec.scenario
    asked = as_asked(spec.scenario, other)
    assert (spec.scenario.switch.ack_class, asked.switch.ack_class) == ("control", "data")
    assert asked.model_copy(update={"switch": spec.scenario.switch}) == spec.scenario


def test_a_figure_without_such_rows_is_refused() -> None:
    with pytest.raises(ConfigError, match="D-fig5 is not measured with ACKs in the class"):
        with_data_acks(catalog.figure("D-fig5"))


# A cause that says how much holds only if all of that is found: half of it, which is enough of a
# paper's effect, is not.
@pytest.mark.parametrize(
    ("name", "part", "less"),
    [
        ("P-fig9", "than Pretrained 2", -0.3),  # "two fifths are missing"
        ("P-fig10b", "completion times: elephants", -0.3),  # "several times as quick"
        ("D-fig4", "40 Gb/s: likewise", 5.0),  # "ten times as long"
    ],
)
def test_a_cause_that_says_how_much_is_held_to_it(name: str, part: str, less: float) -> None:
    claims = [one for one in catalog.figure(name).claims if part in one.text and one.cause]
    assert claims
    assert claims[0].cause is not None
    rule = claims[0].cause.rule
    assert rule.verdict(less - 0.01, less, less + 0.01) is not Outcome.REPRODUCED


def test_alpha_that_stays_where_it_is_does_not_grow_with_beta() -> None:
    (claim,) = (
        one for one in catalog.figure("R-fig3").claims if "alpha grows with beta" in one.text
    )
    assert claim.rule.verdict(0.0, 0.0, 0.0) is Outcome.NOT


def test_after_an_influx_is_from_a_sixth_of_its_length_on() -> None:
    size = catalog.figure("P-fig9").sizes["smoke"]
    begin, length = size.more["begin_ms"], size.more["influx_ms"]
    run, figures = through_influx(Entry("default"), 1, size)
    start = run.column("start_ps") * 1e-9
    late = run.busy & (start >= begin + length + length / 6)
    assert 0 < np.count_nonzero(late) < np.count_nonzero(run.busy & (start >= begin + length))
    assert figures["rtt after"] == pytest.approx(
        float(np.nanmean(run.column("rtt_mean_ps")[late])) * 1e-12
    )


def test_results_of_brackets_alone_are_refused(tmp_path: Path) -> None:
    path = tmp_path / RESULTS_FILE
    path.write_text("[" * 60_000 + "\n")
    with pytest.raises(RunError, match="does not hold results"):
        read_results(path)
