"""Jobs in scenarios: the compiled lines, what reports say, and times by hand on both engines."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.report_dict import report_from_dict, report_to_dict
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.job_graph import JobGraph, JobGraphBuilder
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

FRAME_PS = 1062 * 20
"""Of 1000 bytes at 400 Gb/s."""
ACK_PS = 66 * 20
LINK_PS = 1_000_000


def scenario(graph: JobGraph, **job: Any) -> Scenario:
    fabric = {"kind": "servers", "servers": 4, "gpus": 2, "servers_per_unit": 2, "spines": 2}
    values = {
        "topology": fabric, "servers": {"gpus": 2}, "qp": "pair", "monitor_interval_us": 100,
        "workloads": [{"kind": "job", "graph": graph, "rounds": 1, **job}],
    }  # fmt: skip
    return validate(values, Scenario, source="job")


def reports_of(chosen: Scenario, n: int = 3) -> list[IntervalReport]:
    with closing(make_backend("native")) as backend:
        backend.open(chosen, 1)
        backend.apply(chosen.initial_setting())
        return [backend.advance() for _ in range(n)]


def ring(ranks: int, size: int) -> JobGraph:
    """A ring all-reduce of ``size`` bytes, with a label for each of its halves."""
    b = JobGraphBuilder(ranks)
    names = [b.label("reduce-scatter"), b.label("all-gather")]
    last: list[int] = []
    for step in range(2 * (ranks - 1)):
        half = names[step // (ranks - 1)]
        last = [
            b.transfer(r, (r + 1) % ranks, size // ranks, last and [last[r - 1]], label=half)
            for r in range(ranks)
        ]
    return b.build()


def test_a_ring_takes_its_steps_to_the_picosecond() -> None:
    """On one rail of a unit a step is a chunk of packets over two links, behind the last ACK."""
    chosen = scenario(ring(2, 8000), hosts=[0, 2])
    spans = reports_of(chosen)[0].job_spans
    step = 5 * FRAME_PS + 2 * LINK_PS  # 4 packets, one more at the switch
    end = 2 * step + ACK_PS
    assert spans.rows() == [
        *([0, 1, host, 0, step] for host in (0, 2)),
        [0, 0, -1, 0, end],
        *([0, 2, host, step, end] for host in (0, 2)),
    ]


@pytest.mark.parametrize("size", [80_000, 800_000, 8_000_000])
@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_a_ring_of_any_size_is_on_its_closed_form(ranks: int, size: int) -> None:
    """2 (n - 1) steps of a chunk: the time on the wire, one more frame and two links."""
    net = {"kind": "single-switch", "hosts": 16, "gbps": 400, "delay_us": 1}
    values = {
        "topology": net, "transport": {"ack_every": 64}, "monitor_interval_us": 100_000,
        "workloads": [{"kind": "job", "graph": ring(ranks, size), "rounds": 1}],
    }  # fmt: skip
    spans = reports_of(validate(values, Scenario, source="job"), 1)[0].job_spans
    (end,) = [row[4] for row in spans.rows() if row[2] == -1]
    whole, rest = divmod(size // ranks, 1000)
    wire = whole * FRAME_PS + (rest + 62) * 20 * bool(rest)
    assert end == pytest.approx(2 * (ranks - 1) * (wire + FRAME_PS + 2 * LINK_PS), rel=0.01)


def test_a_loop_and_its_unrolled_graph_give_the_same_packets() -> None:
    def graph(unrolled: bool) -> JobGraph:
        b = JobGraphBuilder(8)
        after: list[int] = []
        for _ in range(3 if unrolled else 1):
            with b.repeat(1 if unrolled else 3, after) as loop:
                start = b.delay(3, 777)
                parts = [b.transfer(3, d, 30_000, [start]) for d in (0, 4, 5)]
                b.local(4, 5, 5000, parts)
            after = [loop.end]
        return b.build()

    def flows(g: JobGraph) -> Any:
        f = reports_of(scenario(g))[0].finished
        return np.stack([f.src, f.dst, f.bytes, f.start_ps, f.fct_ps]).tolist()

    assert flows(graph(unrolled=False)) == flows(graph(unrolled=True))
    assert len(flows(graph(unrolled=True))[0]) == 9


def after_an_incast(connection: int, qp: str = "pair", **job: Any) -> int:
    """Return the time of a message whose sender was one of three to that receiver just before."""
    b = JobGraphBuilder(8)
    first = [b.transfer(sender, 4, 2_000_000) for sender in (0, 2, 6)]
    b.transfer(0, 4, 200_000, first, connection=connection)
    chosen = scenario(b.build(), **job).model_copy(update={"qp": qp})
    flows = [report.finished for report in reports_of(chosen, 5)]
    (found,) = [t for f in flows for t in f.fct_ps[f.bytes == 200_000].tolist()]
    return int(found)


def test_queue_pairs_of_a_connection_keep_their_rate_and_take_turns() -> None:
    slow, fresh = after_an_incast(0), after_an_incast(1)
    assert slow > 1.2 * fresh
    assert after_an_incast(0, qp="flow") == fresh
    assert after_an_incast(0, qps=2) == fresh  # the second one's turn


def test_reports_with_spans_survive_dictionaries() -> None:
    report = reports_of(scenario(ring(4, 8000)), 1)[0]
    assert len(report.job_spans) == 9
    assert report_from_dict(report_to_dict(report)) == report
    with pytest.raises(ConfigError, match="'job_spans': expected rows"):
        report_from_dict({**report_to_dict(report), "job_spans": [[1, 2]]})


def test_a_recorded_scenario_holds_the_graph(tmp_path: Path) -> None:
    ring(4, 8000).to_file(tmp_path / "ring.job")
    (tmp_path / "mine.toml").write_text(
        '[topology]\nkind = "single-switch"\nhosts = 4\n'
        '[[workloads]]\nkind = "job"\ngraph = "ring.job"\nrounds = 2\n'
    )
    chosen = load_scenario(tmp_path / "mine.toml")
    again = Scenario.model_validate(chosen.model_dump(mode="json"))
    assert again == chosen
    assert compile_scenario(again) == compile_scenario(chosen)
    assert "servers" not in chosen.model_dump(mode="json")


@pytest.mark.parametrize(
    ("build", "job", "words"),
    [
        (lambda b: b.local(1, 2, 5), {}, "which are not in one server of 2 GPUs"),
        (lambda b: b.transfer(0, 1, 5, connection=40_000), {"qps": 2}, "connections x qps"),
        (lambda b: b.delay(0, 5), {"hosts": [0, 1, 2]}, "8 endpoints on 3 hosts"),
        (lambda b: b.transfer(0, 1, 2**45), {}, "packets"),
    ],
)
def test_what_cannot_be_placed_is_one_sentence(build: Any, job: Any, words: str) -> None:
    b = JobGraphBuilder(8)
    build(b)
    with pytest.raises(ConfigError, match=words):
        scenario(b.build(), **job)


def test_rails_and_tors() -> None:
    rails = scenario(ring(4, 8000)).fabric
    assert (rails.n_hosts, rails.tiers) == (8, (0, 0, 0, 0, 1, 1))
    assert [rails.tor(h) - 8 for h in range(8)] == [0, 1, 0, 1, 2, 3, 2, 3]
    fabric = {"kind": "servers", "servers": 4, "gpus": 2, "servers_per_unit": 1, "spines": 1}
    tors = Scenario.model_validate({
        "topology": {**fabric, "attach": "tor"},
        "workloads": [{"kind": "incast", "bytes": 1000}],
    }).fabric  # fmt: skip
    assert [tors.tor(h) - 8 for h in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(tors.links) == 8 + 4
    with pytest.raises(ConfigError, match=r"a divisor of servers = 4"):
        validate(
            {"topology": {**fabric, "servers_per_unit": 3}, "workloads": []}, Scenario, source=""
        )
