"""One table of report fields: Python goes by it."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from dcqcn_gym.core.interval import (
    REPORT_FIELDS,
    FinishedFlows,
    FlowSizeDistribution,
    IntervalReport,
    fields_shown,
)
from dcqcn_gym.envs.info import PlainInfo
from dcqcn_gym.simulation.run import INTERVAL_COLUMNS
from hand_made import blank_report

PARTS = {"": IntervalReport, "fsd": FlowSizeDistribution, "finished": FinishedFlows}
BESIDE = {"fsd", "finished", "unknown", "scheme_counters", "unlimited_flows", "job_spans"}
"""What a report has beside figures."""


@pytest.mark.parametrize("part", PARTS)
def test_classes_declare_the_fields_of_the_table(part: str) -> None:
    declared = {f.name: str(f.type) for f in fields(PARTS[part]) if f.name not in BESIDE}
    table = {
        path.rpartition(".")[2]: field.kind
        for path, field in REPORT_FIELDS.items()
        if path.rpartition(".")[0] == part
    }
    assert declared == table


def test_every_field_has_a_meaning_and_known_places() -> None:
    assert len(REPORT_FIELDS) > 50
    assert [f.name for f in REPORT_FIELDS.values() if not f.meaning] == []
    places = {place for f in REPORT_FIELDS.values() for place in f.shown}
    assert places == {"log", "info", "csv", "sum"}


def test_info_declares_what_the_table_shows_there() -> None:
    shown = {f.flat for f in REPORT_FIELDS.values() if "info" in f.shown}
    assert {"marks", "fsd_kl"} <= shown
    assert shown <= set(PlainInfo.__annotations__)
    about = {f.flat for f in REPORT_FIELDS.values()} & set(PlainInfo.__annotations__)
    assert about - shown == {"start_ps", "end_ps"}


def test_columns_are_those_of_the_table() -> None:
    assert {"marks", "fsd_mice"} <= set(INTERVAL_COLUMNS)
    assert len(set(INTERVAL_COLUMNS)) == len(INTERVAL_COLUMNS)


def test_figures_are_json_values() -> None:
    report = blank_report(marks=3)
    found = {name: field.of(report) for name, field in fields_shown("log").items()}
    assert found["marks"] == 3
    assert json.loads(json.dumps(found)) == found
