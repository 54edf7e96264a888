"""What schemes cost: figures that the model states, and the table of the docs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("dcqcn_gym._core")

from measure import app
from scheme_cost import cost_of, markdown

from dcqcn_gym import _core
from dcqcn_gym.core.knobs import schemes


@pytest.mark.parametrize("scheme", schemes())
def test_every_scheme_has_its_cost(scheme: str) -> None:
    cost = cost_of(scheme, instructions=False)
    assert cost.state["sender"] > 0
    assert cost.data_packets > 1000
    learns = scheme.startswith("dolce")
    assert (cost.state["connection"] > 0) == learns
    assert (cost.state["listed"] > 0) == (scheme == "dcqcn-plus")
    sends_cnps = scheme not in ("timely", "dolce-rc-plus")
    assert (cost.cnp_bytes_per_s > 0) == sends_cnps
    ride = [cost.state[name] for name in ("data_fields", "ack_fields")]
    assert (cost.field_bytes_per_s > 0) == any(ride)
    assert any(ride) or scheme != "dolce-rc-plus"
    if scheme == "dcqcn-plus":  # one CNP a microsecond for all queue pairs of the receiver
        assert cost.cnp_bytes_per_s <= 78e6
    assert f"`{scheme}`" in markdown([cost])


def test_the_table_of_the_docs_has_every_scheme() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/schemes.md").read_text(encoding="utf-8")
    table = page.split("<!-- cost: begin -->")[1].split("<!-- cost: end -->")[0]
    for scheme in schemes():
        line = next(line for line in table.splitlines() if f"`{scheme}`" in line)
        sizes = _core.scheme_sizes(scheme)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[1:4] == [str(sizes[n]) for n in ("sender", "receiver", "connection")]
        assert float(cells[-1]) > 100  # instructions


def test_an_unknown_scheme_is_refused() -> None:
    done = CliRunner().invoke(app, ["cost", "--scheme", "dcqn"])
    assert done.exit_code != 0
