"""Other networks for the same flows: max-min shares by definition, same arrivals, the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from explain import app
from fluid import Fluid, arrivals, fluid_traffic, max_min
from histories import HISTORIES, history_table, relabel
from other_networks import (
    NETWORKS,
    Account,
    Network,
    explanation,
    network_jobs,
)
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import Seen
from dcqcn_gym.benchmarks.papers.monitor_study.study import Plan
from dcqcn_gym.benchmarks.papers.monitor_study.traces import (
    Packets,
    Probe,
    judge,
    keys_of,
    replay,
    simulate,
)
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

MS = 1_000_000_000
US = 1_000_000
MINI = load_scenario("mini-fb-hadoop")
LINE = 25e9 / 8e12  # bytes per picosecond


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


# -- fair shares -----------------------------------------------------------------------------


def test_shares_by_hand() -> None:
    """Two flows over a link of 10, one of them over a link of 3 too; a third wants little."""
    paths = np.array([[0, 2], [0, 1], [2, 1]])
    capacity = np.array([10.0, 3.0, np.inf])
    much = np.full(3, 100.0)
    assert max_min(paths, much, capacity).tolist() == [8.5, 1.5, 1.5]
    assert max_min(paths, np.array([4.0, 100.0, 0.5]), capacity).tolist() == [4.0, 2.5, 0.5]
    assert len(max_min(paths[:0], much[:0], capacity)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_max_min(seed: int) -> None:
    """Who gets less than wanted crosses a full link on which nobody gets more."""
    random = np.random.default_rng(seed)
    capacity = np.append(random.uniform(1, 20, 12), np.inf)
    paths = np.array([random.choice(13, 4, replace=False) for _ in range(60)])
    wanted = random.exponential(2.0, 60)
    given = max_min(paths, wanted, capacity)
    load = np.bincount(paths.ravel(), weights=np.repeat(given, 4), minlength=13)
    assert np.all(load <= capacity * (1 + 1e-9))
    assert np.all((given > 0) & (given <= wanted))
    for flow in np.flatnonzero(given < wanted * (1 - 1e-9)):
        full = [k for k in paths[flow] if load[k] > capacity[k] * (1 - 1e-9)]
        most = [given[(paths == k).any(axis=1)].max() for k in full]
        assert min(most, default=np.inf) <= given[flow] * (1 + 1e-9)


# -- the fluid -------------------------------------------------------------------------------


def two_flows() -> dict[str, np.ndarray]:
    """Both of 1 MB into host 1, the second 100 us later."""
    return {
        "src": ints(0, 8),
        "dst": ints(1, 1),
        "ordinal": ints(0, 0),
        "bytes": ints(1_000_000, 1_000_000),
        "start_ps": ints(0, 100 * US),
    }


def test_two_flows_share_a_link_by_hand() -> None:
    bare = Network("", bare=True).scenario(MINI)
    rate = LINE * 1000 / 1001  # an ACK still takes a byte
    fluid = Fluid(bare, two_flows(), seed=1)
    alone = fluid.send(0, 100 * US)
    assert alone[0].tolist() == [0]
    assert alone[1] == pytest.approx(rate * 100 * US)
    flows, given = fluid.send(100 * US, 200 * US)
    assert flows.tolist() == [0, 1]
    assert given == pytest.approx([rate * 50 * US] * 2)
    assert sum(float(fluid.send(i * MS, (i + 1) * MS)[1].sum()) for i in (1, 2)) == pytest.approx(
        2e6 - rate * 200 * US
    )
    assert fluid.left.tolist() == [0, 0]
    headers = Fluid(MINI, two_flows(), seed=1)
    assert headers.capacity[0] == pytest.approx(LINE * 1000 / (1000 + 62 + 66))


def test_arrivals_are_those_of_the_engine() -> None:
    """The same flows whatever the network makes of them, and all of them."""
    study = Packets(MINI, 3, MS, 0, 4 * MS)
    quick = arrivals(study)
    assert quick["src"].size
    exact = [network for network in NETWORKS.values() if network.rates != "fluid"]
    assert len(exact) > 1
    for network in exact:
        real = Packets(network.scenario(MINI), 3, MS, 0, 4 * MS)
        parts = [known for *_, known in simulate(real)]
        keys = np.concatenate([keys_of(part) for part in parts])
        order = np.argsort(keys)
        mine = np.argsort(keys_of(quick))
        assert np.array_equal(keys[order], keys_of(quick)[mine])
        for name in ("src", "dst", "bytes", "start_ps"):
            column = np.concatenate([part[name] for part in parts])
            assert np.array_equal(column[order], quick[name][mine])


def test_the_fluid_is_counted_to_the_byte() -> None:
    """What the ToRs count is what was sent; a flow is never counted beyond its size."""
    study = Packets(MINI, 2, MS, 0, 5 * MS)
    probe = Probe("exact", MS, {"kind": "exact"})
    flows = replay(study, [probe], fluid_traffic)
    size = dict(zip(*flows.tolist(), strict=True))
    known = arrivals(study)
    started = dict(zip(keys_of(known).tolist(), known["start_ps"].tolist(), strict=True))
    tor = {k: s // 8 for k, s in zip(keys_of(known).tolist(), known["src"].tolist(), strict=True)}
    for now, trace, _ in fluid_traffic(study):
        assert [tor[k] for k in trace.get("key", ints()).tolist()] == trace.get(
            "tor", ints()
        ).tolist()
        assert all(started[k] < now for k in trace.get("key", ints()).tolist())
        assert np.all(trace.get("payload_bytes", ints()) > 0)
    for seen in probe.seen:
        assert all(b <= size[k] for k, b in zip(seen.key.tolist(), seen.total_bytes, strict=True))
    mice = [k for k in size if size[k] < 1000 and started[k] < 4 * MS]
    counted = np.concatenate([seen.key for seen in probe.seen]).tolist()
    assert len(mice) > 10
    assert set(mice) <= set(counted)


def test_fluid_and_engine_agree_where_nothing_queues() -> None:
    """One flow at a time over an idle network: the same bytes per millisecond but for one delay."""
    data = MINI.model_dump(mode="json")
    flow = {"src": 0, "dst": 9, "bytes": 6_000_000, "start_ns": 0}
    data["workloads"] = [{"kind": "flows", "flows": [flow]}]
    data["wire"]["ack_bytes"] = 1
    study = Packets(Scenario.model_validate(data, context={}), 1, MS, 0, 2 * MS)
    sent = [
        [int(np.sum(trace["payload_bytes"], dtype=np.int64)) for _, trace, _ in traffic(study)
         if trace]
        for traffic in (simulate, fluid_traffic)
    ]  # fmt: skip
    assert sent[0] == pytest.approx(sent[1], rel=0.01)


def test_three_tiers_are_refused() -> None:
    with pytest.raises(ConfigError, match="two tiers"):
        Fluid(load_scenario("fat-tree-1024"), two_flows(), 1)
    with pytest.raises(ConfigError, match="no leaf-spine"):
        Network("", one_uplink=True).scenario(load_scenario("fat-tree-1024"))


# -- the networks ------------------------------------------------------------------------------


def test_a_network_changes_what_it_says() -> None:
    base = load_scenario("fb-hadoop")
    assert NETWORKS["engine"].scenario(base) == base
    one = NETWORKS["one-pfc"].scenario(base)
    assert one.fabric.uplink_bps == base.fabric.uplink_bps
    assert [link.rate_bps for link in one.fabric.links[-8:]] == [400e9] * 8
    assert one.initial_setting()["kmin"] == 4e6
    sizes = NETWORKS["bare"].scenario(base).wire.sizes()
    assert (sizes["data"], sizes["ack"], sizes["cnp"]) == (0, 1, 1)


def test_ideal_networks_are_easier_to_label() -> None:
    """Fair shares of payload alone: fewer elephants are under way than with DCQCN."""
    probes = {}
    for name, traffic in (("engine", simulate), ("fluid-one-bare", fluid_traffic)):
        probe = Probe("exact", MS, {"kind": "exact"})
        study = Packets(NETWORKS[name].scenario(MINI), 1, MS, 4 * MS, 12 * MS)
        found = judge(probe, replay(study, [probe], traffic), 1_000_000)
        probes[name] = float(np.mean([a.label for a in found if a is not None]))
    assert probes["fluid-one-bare"] > probes["engine"]


# -- how long flows are remembered -----------------------------------------------------------


def test_the_usual_history_labels_as_the_engine_does() -> None:
    """Weight by weight, although it is written anew; a longer one forgets fewer elephants."""
    probe = Probe("exact", MS, {"kind": "exact"})
    _, sizes = flows = replay(Packets(MINI, 1, MS, 0, 30 * MS), [probe])
    assert np.any(sizes >= 1_000_000)
    same, small = relabel(probe.seen, 3, 3, 1_000_000)
    for ours, engines in zip(same, probe.seen, strict=True):
        assert np.array_equal(ours.elephant_share, engines.elephant_share)
    kept, large = relabel(probe.seen, 1000, 3, 1_000_000)
    assert large > small
    assert all(
        np.all(b.elephant_share[a.elephant_share >= 1] >= 1)
        for a, b in zip(same, kept, strict=True)
    )
    probe.seen = kept
    assert all(a is None or 0 <= a.label <= 1 for a in judge(probe, flows, 1_000_000))


def test_a_flow_that_pauses_is_remembered_or_not_by_hand() -> None:
    """600 KB, five idle intervals, 600 KB: an elephant only if it was not forgotten."""

    def active(total: int) -> Seen:
        return Seen(ints(7), ints(total), ints(1), np.zeros(1), 0.5)

    nothing = Seen(ints(), ints(), ints(), np.zeros(0), 0.5)
    seen = [active(600_000), *[nothing] * 5, active(1_200_000)]
    last = {forget: relabel(seen, forget, 3, 1_000_000)[0][-1] for forget in (3, 5, 6)}
    assert {forget: at.elephant_share.tolist() for forget, at in last.items()} == {
        3: [0.0], 5: [0.0], 6: [1.0]
    }  # fmt: skip


def test_seeds_without_an_elephant_do_not_count_as_none_found() -> None:
    """They had a recall of 0, which pulled the mean down."""
    plan = Plan(loads=(20,), seeds=(1, 2))
    some = [Account("engine", 20, seed, 0.9, recall, 0.8, 10.0, 1.0)
            for seed, recall in ((1, 0.8), (2, None))]  # fmt: skip
    assert "| 0.900 0.900 | 0.80 |" in explanation(plan, some)
    none = [Account("engine", 20, seed, 0.9, None, 0.8, 10.0, 0.0) for seed in (1, 2)]
    assert "| 0.900 0.900 | – |" in explanation(plan, none)
    rows = [
        {"load": 20, "seed": seed, "forget": forget, "label": 0.9, "recall": recall, "largest": 3}
        for seed, recall in ((1, 0.8), (2, None))
        for forget in HISTORIES
    ]
    table = history_table(plan, [{"rows": rows}])
    assert table.count("| 0.900 0.900 | 0.80 |") == len(HISTORIES)


@pytest.mark.parametrize(
    ("loads", "said"), [((0,), "load 0: expected 1 to 100"), ((20, 20), "load 20 is given twice")]
)
def test_a_load_that_is_none_is_named(loads: tuple[int, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        network_jobs(Plan(loads=loads))


def test_a_page_without_the_marks_is_refused_before_anything_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n")
    found = CliRunner().invoke(app, ["--out", str(tmp_path / "out"), "--write", str(page)])
    assert isinstance(found.exception, RunError), found.output
    assert "lacks the marks" in str(found.exception)
    assert list(tmp_path.iterdir()) == [page]


def test_the_command_prints_the_table_and_resumes(tmp_path: Path) -> None:
    words = ["--out", str(tmp_path), "--scenario",
             "mini-fb-hadoop", "--load", "20", "--seeds", "1", "--warmup", "1", "--length", "2",
             "--jobs", "1"]  # fmt: skip
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    lines = first.stdout.strip().splitlines()
    assert len(lines) == 2 + len(NETWORKS) + 1 + 2 + len(HISTORIES)
    assert all(network.what in first.stdout for network in NETWORKS.values())
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(written) == len(NETWORKS) + 2
    again = CliRunner().invoke(app, words)
    assert again.stdout == first.stdout
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written
