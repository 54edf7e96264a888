"""Reports as dictionaries: every field is there, of its type, finite, of its table's length."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import REPORT_FIELDS, IntervalReport
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.measured import measure
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import terms
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.backends.report_dict import (
    ReportReader,
    read_reports,
    report_from_dict,
    report_to_dict,
    write_reports,
)
from dcqcn_gym.envs.observation import bounds, observe
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import encode_line
from dcqcn_gym.runs.log_line import interval_line

MINI = load_scenario("mini-fb-hadoop")
KINDS = {field.kind for field in REPORT_FIELDS.values()}
WRONG: dict[str, list[Any]] = {
    "IntArray": [None, 3, "1,2", [0.5], [True], [[1], [2]], [[1], [2, 3]], ["a"], [10**30], {}],
    "FloatArray": [None, 1.0, [float("nan")], [float("inf")], ["1"], [[1.0]], [None], [10**400]],
    "int": [None, 1.5, "1", True, [1], 10**30],
    "float": [None, "0", True, float("nan"), float("-inf"), [0.0], 10**400],
    "bool": [None, 0, 1, "true", [True]],
}


def a_report() -> IntervalReport:
    backend = FakeBackend()
    backend.open(MINI, 4)
    backend.apply(MINI.initial_setting())
    backend.advance()
    return backend.advance()


@cache
def as_json() -> str:
    return json.dumps(report_to_dict(a_report()))


def plain() -> dict[str, Any]:
    values: dict[str, Any] = json.loads(as_json())
    return values


def at(values: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    part, _, name = path.rpartition(".")
    return (values[part] if part else values), name


def test_there_and_back() -> None:
    assert report_from_dict(plain()) == a_report()
    assert set(WRONG) == KINDS
    whole = {**plain(), "fsd": {**plain()["fsd"], "kl": 0}}  # JSON writes 0 for 0.0
    assert report_from_dict(whole).fsd.kl == 0.0


@pytest.mark.parametrize("path", REPORT_FIELDS)
def test_a_missing_field_is_named(path: str) -> None:
    values = plain()
    inside, name = at(values, path)
    del inside[name]
    with pytest.raises(ConfigError, match=re.escape(f"'{path}' is missing; expected")):
        report_from_dict(values)


@pytest.mark.parametrize("path", REPORT_FIELDS)
def test_a_misspelt_field_is_named_with_the_right_one(path: str) -> None:
    values = plain()
    inside, name = at(values, path)
    inside[name + "x"] = inside.pop(name)
    with pytest.raises(
        ConfigError, match=rf"unknown report field '{path}x'; did you mean .*{name}"
    ):
        report_from_dict(values)


@pytest.mark.parametrize("path", REPORT_FIELDS)
def test_a_wrong_value_is_named_and_quoted_short(path: str) -> None:
    for wrong in (*WRONG[REPORT_FIELDS[path].kind], "x" * 500):
        values = plain()
        inside, name = at(values, path)
        inside[name] = wrong
        with pytest.raises(ConfigError, match=rf"field '{path}': expected .*; got ") as caught:
            report_from_dict(values)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "path", [p for p, f in REPORT_FIELDS.items() if f.kind.endswith("Array") and "fsd" not in p]
)
def test_a_ragged_table_is_named(path: str) -> None:
    values = plain()
    inside, name = at(values, path)
    inside[name] = [*inside[name], 1]
    with pytest.raises(ConfigError, match="columns of one table have one length"):
        report_from_dict(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fsd": None}, "'fsd': expected an object"),
        ({"finished": [1]}, "'finished': expected an object"),
        ({"unknown": 3}, "'unknown': expected names"),
        ({"unknown": ["fsd.ki"]}, "unknown report field in 'unknown' 'fsd.ki'; did you mean"),
        ({"unknown": ["start_ps"]}, "'start_ps' cannot be unknown"),
        ({"unknown": ["rtt_sum_ps"]}, "'rtt_sum_ps' is unknown but 'rtt_src' is not"),
        ({"unknown": ["data_packets"]}, "'data_packets' is named in 'unknown' but holds a figure"),
    ],
)
def test_other_mistakes(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        report_from_dict({**plain(), **change})
    values = plain()
    values["fsd"]["bins"] = [1.0]
    with pytest.raises(ConfigError, match=r"'fsd\.bins' has 1 entries; expected 16"):
        report_from_dict(values)
    with pytest.raises(ConfigError, match="a report is an object"):
        report_from_dict([1])  # type: ignore[arg-type]


def test_a_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_reports(path, [a_report()])
    for broken in ('{"index": 1}', "[" * 100_000, "NaN", '{"fsd": {"kl": NaN}}'):
        path.write_text(json.dumps(plain()) + "\n" + broken + "\n")
        with pytest.raises(ConfigError, match="line 2"):
            read_reports(path)


def test_a_reader_checks_the_first_report_and_every_change_of_fields() -> None:
    reader, report = ReportReader(), a_report()
    values = {k: v for k, v in vars(report).items() if k != "unknown"}
    values |= {"fsd": dict(vars(report.fsd)), "finished": dict(vars(report.finished))}
    assert [reader.read(values) for _ in range(3)] == [report] * 3
    broken = copy.copy(values)
    broken["fsd"] = {k: v for k, v in values["fsd"].items() if k != "kl"}
    with pytest.raises(ConfigError, match=r"'fsd\.kl' is missing"):
        reader.read(broken)
    with pytest.raises(ConfigError, match="'finished': expected an object"):
        reader.read({**values, "finished": None})
    with pytest.raises(ConfigError, match="'acks': expected a whole number"):
        ReportReader().read({**values, "acks": 1.5})


def without(*names: str) -> IntervalReport:
    values = plain()
    for path in names:
        inside, name = at(values, path)
        del inside[name]
    return report_from_dict({**values, "unknown": list(names)})


RTT = tuple(p for p in REPORT_FIELDS if p.startswith("rtt_"))
FINISHED = tuple(p for p in REPORT_FIELDS if p.startswith("finished."))


def test_unknown_figures_hold_zeros_and_come_back(tmp_path: Path) -> None:
    names = (*RTT, *FINISHED, "port_pause_ps", "fsd.kl", "drops", "host_tx_bytes", "fsd.bins")
    report = without(*names)
    assert report.unknown == frozenset(names)
    assert not report.port_pause_ps.any()
    assert len(report.port_pause_ps) == len(report.port_node)
    assert len(report.host_tx_bytes) == len(report.host_rate_bps)
    assert len(report.rtt_src) == len(report.finished.src) == 0
    assert "drops" not in report_to_dict(report)
    write_reports(tmp_path / "r.jsonl", [report])
    assert read_reports(tmp_path / "r.jsonl") == [report]
    with pytest.raises(ConfigError, match="did you mean"):
        replace(report, unknown=frozenset({"dropps"}))


@pytest.mark.parametrize(
    ("names", "term"), [(RTT, "rtt"), (("port_pause_ps",), "pfc"), (("host_tx_bytes",), "tp")]
)
def test_a_term_of_unknown_figures_is_one_and_the_others_stay(
    names: tuple[str, ...], term: str
) -> None:
    known, found = vars(terms(a_report())), vars(terms(without(*names)))
    assert found == {**known, term: 1.0}
    assert known[term] < 1.0 or term == "pfc"


def test_what_is_unknown_is_no_evidence_of_idleness() -> None:
    assert not without("data_packets").idle
    assert not without("host_tx_bytes", "data_packets").idle
    quiet = replace(a_report(), host_tx_bytes=a_report().host_tx_bytes * 0)
    assert quiet.idle


def test_the_observation_of_unknown_figures_is_inside_its_bounds_and_the_log_names_them() -> None:
    always = ("index", "start_ps", "end_ps", "host_rate_bps", "port_node", "port_rate_bps")
    everything = [path for path in REPORT_FIELDS if path not in always]
    report = without(*everything)
    setting = default_setting(MINI.line_rate_bps)
    vector = observe(report, setting, KnobSpace(line_rate_bps=MINI.line_rate_bps))
    low, high = bounds()
    assert np.all((low <= vector) & (vector <= high))
    line = interval_line(measure(report, MINI, number=1, setting=setting))
    assert line["unknown"] == sorted(everything)
    assert "worst_pause_ps" not in line
    assert encode_line(line)
