"""Run folders of HPCC's simulator and htsim: taken whole, told line by line, and back exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_folders import CONFIG, TOPO, flow_list, hpcc_folder, htsim_folder
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.tables import Flow
from dcqcn_gym.envs.scenario.workloads import Flows
from dcqcn_gym.extras.traffic.exchange.exporting import EXPORTS
from dcqcn_gym.extras.traffic.exchange.hpcc_folder import import_hpcc
from dcqcn_gym.extras.traffic.exchange.htsim import import_htsim
from dcqcn_gym.extras.traffic.exchange.ledger import Ledger
from dcqcn_gym.extras.traffic.incast import incast_flows

READERS = {"hpcc": import_hpcc, "htsim": import_htsim}


def written(files: dict[str, str], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def taken(folder: Path, out: Path, form: str = "hpcc") -> tuple[Scenario, Ledger]:
    files, said = READERS[form](folder)
    return load_scenario(written(files, out) / "scenario.toml"), said


def listed(scenario: Scenario) -> tuple[Flow, ...]:
    workload = scenario.workloads[0]
    assert isinstance(workload, Flows)
    return workload.flows


def became(said: Ledger, key: str) -> str:
    (text,) = (line[3] for line in said.lines if line[2].split()[:1] == [key])
    return text


def test_a_folder_is_taken_whole(tmp_path: Path) -> None:
    scenario, _ = taken(hpcc_folder(tmp_path / "run"), tmp_path / "out")
    net = scenario.fabric
    assert (net.n_hosts, net.tiers, len(net.links)) == (16, (0, 0, 1, 1), 20)
    assert {(x.ps_per_byte, x.delay_ps) for x in net.links} == {(80, 10**6), (20, 10**6)}
    setting = scenario.initial_setting()
    expected = {"rp_ai_rate": 20, "rp_hai_rate": 200, "rp_min_rate": 1000, "rp_time_reset": 300,
                "rp_dce_tcp_g": 1020, "rp_dce_tcp_rtt": 1, "rp_threshold": 1, "rp_byte_reset": 0,
                "rp_rate_reduce_monitor_period": 4, "np_min_time_between_cnps": 0,
                "kmin": 100, "kmax": 400, "pmax": 0.2}  # fmt: skip
    assert {name: setting[name] for name in expected} == expected
    assert scenario.buffer_bytes == 32 * 2**20
    assert (scenario.wire.profile, scenario.switch.ack_class) == ("hpcc", "data")
    assert (scenario.intervals, scenario.transport.window_bytes) == (6, 0)
    flows = listed(scenario)
    assert flows[3] == Flow(3, 15, 300_000, 3000.0)
    assert flows[-1] == Flow(1, 9, 70_000, 100_500.0)
    assert (tmp_path / "out" / "sizes-WebSearch.csv").is_file()


def test_every_line_is_said_and_the_sum_holds(tmp_path: Path) -> None:
    _, said = taken(hpcc_folder(tmp_path / "run", {"NEW_KEY": "7"}), tmp_path / "out")
    texts = {line[2].split()[0] for line in said.lines if line[0] == "config.txt"}
    assert texts == {*CONFIG, "NEW_KEY"}
    balance = said.tally.of("lines of config.txt")
    assert (balance.came, balance.missing) == (len(CONFIG) + 1, 0)
    assert balance.left_out["keys are not known"] == 1
    assert balance.left_out["keys say what that program writes"] == 7
    assert "those of 400000000000 bit/s are left out" in became(said, "KMIN_MAP")
    assert said.tally.of("links").taken == 20
    assert said.tally.of("records").taken == 10


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("EWMA_GAIN", None, "rp_dce_tcp_g = 960, the default there"),
        ("RP_TIMER", None, "rp_time_reset = 1500, the default there"),
        ("RP_TIMER", "55.5", "whole here; exactly 55.5"),
        ("ERROR_RATE_PER_LINK", "0.001", "left out: keys ask for random loss"),
        ("LINK_DOWN", "2000000 3 17", "left out: keys ask for a link that goes down"),
        ("USE_DYNAMIC_PFC_THRESHOLD", "0", "left out: keys ask for thresholds of PFC that stay"),
        ("NIC_TOTAL_PAUSE_TIME", "0", "left out: keys are of a pause's length"),
        ("HAS_WIN", "1", "transport.window_bytes = 102500"),
    ],
)
def test_a_line_says_what_it_became(tmp_path: Path, key: str, value: str | None, says: str) -> None:
    _, said = taken(hpcc_folder(tmp_path / "run", {key: value}), tmp_path / "out")
    assert says in became(said, key)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("CC_MODE", "3", "'3' is HPCC; expected 1"), ("CC_MODE", "7", "TIMELY"),
        ("ENABLE_QCN", "0", "without marks"), ("KMIN_MAP", "1 25000000000 100", "100000000000"),
        ("KMAX_MAP", "2 100000000000 400", "KMAX_MAP"), ("RATE_AI", "fast", "RATE_AI 'fast'"),
        ("MIN_RATE", None, ""), ("RP_TIMER", "-1", "RP_TIMER '-1'"),
        ("RATE_AI", "900Gb/s", "rp_ai_rate"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, key: str, value: str | None, says: str) -> None:
    folder = hpcc_folder(tmp_path / "run", {key: value})
    if not says:
        assert import_hpcc(folder)
        return
    with pytest.raises(ConfigError, match=says.replace(" ", r"\s")):
        import_hpcc(folder)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("24 8 2 4 40 A100\n16 17 18 19 20 21\n", "SimAI's has six words"),
        ("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 fast 1us 0\n", "1 2 fast 1us 0"),
        ("3 1 2\n2\n0 2 100Gbps 1us 0\n0 2 100Gbps 1us 0\n", "h0 has 2 links"),
        ("3 1 2\n2\n0 2 900Gbps 1us 0\n", "expected 1 to 800 Gb/s"),
        ("3 1 2\n7\n0 2 100Gbps 1us 0\n", "different nodes of 0 to 2"),
        ("999999999 1 2\n2\n0 2 100Gbps 1us 0\n", "no topology"),
    ],
)
def test_a_topology_that_cannot_be_is_refused(tmp_path: Path, text: str, says: str) -> None:
    folder = hpcc_folder(tmp_path)
    (folder / "topology.txt").write_text(text)
    with pytest.raises(ConfigError, match=says):
        import_hpcc(folder)


def test_flows_that_cannot_be_are_counted(tmp_path: Path) -> None:
    text = flow_list([
        (0, 9, 3, 1000, "2.1"), (0, 9, 0, 1000, "2.1"), (0, 17, 3, 1000, "2.1"),
        (4, 4, 3, 1000, "2.1"), (0, 9, 3, 0, "2.1"), (2, 3, 5, 8, "2.2"),
    ]) + "what is this\n"  # fmt: skip
    scenario, said = taken(hpcc_folder(tmp_path / "run", flows=text), tmp_path / "out")
    balance = said.tally.of("records")
    assert (balance.came, balance.taken, balance.missing) == (7, 2, 0)
    assert [w.priority for w in scenario.workloads] == [3, 5]
    assert scenario.switch.lossless == (3, 5)


def test_a_folder_returns_exactly(tmp_path: Path) -> None:
    first, _ = taken(hpcc_folder(tmp_path / "run"), tmp_path / "a")
    files, unsaid = EXPORTS["hpcc"](first)
    assert unsaid == []
    second, said = taken(written(files, tmp_path / "back"), tmp_path / "b")
    assert second.model_dump(exclude={"name"}) == first.model_dump(exclude={"name"})
    assert not said.tally.of("lines of config.txt").left_out["keys are not known"]


@st.composite
def fabrics(draw: st.DrawFn) -> dict[str, object]:
    """Return a graph whose tiers are steps from the hosts: racks below spines, any rates."""
    leaves, spines = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    step, delay = st.integers(10, 8000), st.integers(1000, 10**8).map(lambda ps: ps / 1e6)

    def link(a: str, b: str) -> dict[str, object]:
        return {"ends": [a, b], "ps_per_byte": draw(step), "delay_us": draw(delay)}

    racks = draw(st.lists(st.integers(0, leaves - 1), min_size=2, max_size=9))
    racks = [*range(leaves), *racks]
    links = [link(f"h{i}", f"s{rack}") for i, rack in enumerate(racks)]
    links += [link(f"s{a}", f"s{leaves + b}") for a in range(leaves) for b in range(spines)]
    order = draw(st.permutations(links))
    tiers = [0] * leaves + [1] * spines
    return {"kind": "graph", "hosts": len(racks), "switches": leaves + spines, "tiers": tiers,
            "links": order}  # fmt: skip


@st.composite
def flow_lists(draw: st.DrawFn, hosts: int, step_ps: int) -> list[Flow]:
    pairs = st.tuples(st.integers(0, hosts - 1), st.integers(1, hosts - 1))
    size, start = st.integers(1, 10**12), st.integers(0, 10**14 // step_ps)
    one = st.tuples(pairs, size, start)
    drawn = draw(st.lists(one, min_size=1, max_size=20))
    flows = [Flow(a, (a + d) % hosts, n, at * step_ps / 1000) for (a, d), n, at in drawn]
    return sorted(flows, key=lambda flow: flow.start_ns)


MUTE = {
    "rp_clamp_tgt_rate_ati": 1, "rp_byte_reset": 0, "rp_gd": 11, "rp_min_dec_fac": 50,
    "rp_initial_alpha_value": 1023, "np_min_time_between_cnps": 0,
}  # fmt: skip
"""Knobs that HPCC's files cannot say, at that program's constants."""
KNOBS = st.fixed_dictionaries({
    "rp_time_reset": st.integers(1, 131071), "rp_threshold": st.integers(0, 31),
    "rp_ai_rate": st.integers(1, 900), "rp_hai_rate": st.integers(1, 900),
    "rp_min_rate": st.integers(1, 900), "rp_dce_tcp_g": st.integers(0, 1023),
    "rp_dce_tcp_rtt": st.integers(1, 131071), "rp_clamp_tgt_rate": st.integers(0, 1),
    "rp_rate_reduce_monitor_period": st.integers(1, 131071),
    "kmin": st.floats(0, 1000), "kmax": st.floats(1000, 4000), "pmax": st.floats(0, 1),
})  # fmt: skip
SOME = settings(
    max_examples=40, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip


@SOME
@given(data=st.data())
def test_any_fabric_flows_and_setting_return_exactly(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table, knobs = data.draw(fabrics()), data.draw(KNOBS)
    flows = data.draw(flow_lists(int(str(table["hosts"])), 1))
    first = Scenario.model_validate({
        "topology": table, "initial": {**MUTE, **knobs}, "warmup_us": 0,
        "intervals": data.draw(st.integers(1, 10**6)), "switch": {"buffer_bytes": 2**40},
        "workloads": [{"kind": "flows", "flows": flows}],
    })  # fmt: skip
    folder = tmp_path_factory.mktemp("run")
    files, _ = EXPORTS["hpcc"](first)
    second, said = taken(written(files, folder), folder / "out")
    assert second.fabric == first.fabric
    assert second.initial_setting() == first.initial_setting()
    assert (second.intervals, second.buffer_bytes) == (first.intervals, first.buffer_bytes)
    assert listed(second) == listed(first)
    assert said.tally.of("records").taken == len(flows)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, object]:
    few, gbps = st.integers(1, 4), st.sampled_from([10.0, 25.0, 100.0, 400.0])
    delay = st.integers(1, 9999).map(lambda ns: ns / 1000)
    if draw(st.booleans()):
        return {"kind": "leaf-spine", "tors": draw(few), "hosts_per_tor": draw(st.integers(2, 5)),
                "spines": draw(few), "host_gbps": draw(gbps), "uplink_gbps": draw(gbps),
                "host_delay_us": draw(delay), "uplink_delay_us": draw(delay)}  # fmt: skip
    if draw(st.booleans()):
        return {"kind": "fat-tree", "k": 4, "host_gbps": draw(gbps), "delay_us": draw(delay)}
    return {"kind": "three-tier", "pods": draw(few), "tors_per_pod": draw(few),
            "hosts_per_tor": draw(st.integers(2, 4)), "aggs_per_pod": draw(few),
            "cores_per_agg": draw(few), "host_gbps": draw(gbps), "tor_gbps": draw(gbps),
            "core_gbps": draw(gbps), "delay_us": draw(delay)}  # fmt: skip


@SOME
@given(data=st.data())
def test_any_tree_and_flows_return_exactly_from_htsim(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = {"topology": data.draw(trees()), "switch": {"pfc": False}}
    one = [{"kind": "flows", "flows": [(0, 1, 1, 0)]}]
    hosts = Scenario.model_validate({**base, "workloads": one}).n_hosts
    flows = data.draw(flow_lists(hosts, 1))
    workloads = [{"kind": "flows", "flows": flows}]
    first = Scenario.model_validate({**base, "workloads": workloads})
    folder = tmp_path_factory.mktemp("run")
    files, unsaid = EXPORTS["htsim"](first)
    second, _ = taken(written(files, folder), folder / "out", "htsim")
    assert second.fabric == first.fabric
    assert listed(second) == listed(first)
    assert unsaid


def test_a_folder_of_htsim_is_taken_and_counted(tmp_path: Path) -> None:
    scenario, said = taken(htsim_folder(tmp_path / "run"), tmp_path / "out", "htsim")
    assert (scenario.n_hosts, len(scenario.fabric.tiers)) == (32, 6)
    assert listed(scenario)[1] == Flow(1, 4, 9, 100.5)
    assert said.tally.of("lines of fabric.topo").left_out.total() == 4
    assert said.tally.of("records").left_out == {"connections start by a trigger, not at a time": 1}


@pytest.mark.parametrize(
    ("old", "new"),
    [("Nodes 32", "Nodes 31"), ("Bundle 1", "Bundle 2"), ("Tier 1", "Tier 2"),
     ("Radix_Up 2", ""), ("Tiers 2", "Tiers 3"), ("Podsize 32", "Podsize x")],
)  # fmt: skip
def test_a_topo_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str) -> None:
    folder = htsim_folder(tmp_path, TOPO.replace(old, new))
    with pytest.raises(ConfigError, match=r"fabric\.topo"):
        import_htsim(folder)


def test_what_files_cannot_say_is_told(tmp_path: Path) -> None:
    base = {"topology": {"kind": "single-switch", "hosts": 4}}
    one = {"workloads": [{"kind": "flows", "flows": [(0, 1, 1000, 0)]}]}
    _, unsaid = EXPORTS["hpcc"](Scenario.model_validate({**base, **one}))
    told = " ".join(unsaid)
    for word in ("rp_byte_reset", "np_min_time_between_cnps", "ack_class", "frames"):
        assert word in told
    with pytest.raises(ConfigError, match="single-switch"):
        EXPORTS["htsim"](Scenario.model_validate({**base, **one}))
    endless = {"workloads": [{"kind": "streams", "flows": 2, "hosts": 1, "dsts": [2]}]}
    for export in EXPORTS.values():
        with pytest.raises(ConfigError, match="without an end"):
            export(Scenario.model_validate({**base, **endless}))


def test_other_workloads_are_the_flows_of_a_run(tmp_path: Path) -> None:
    scenario = Scenario.model_validate({
        "topology": {"kind": "leaf-spine", "tors": 2, "hosts_per_tor": 2, "spines": 1},
        "intervals": 1, "warmup_us": 100, "switch": {"lossless": [3, 4]},
        "workloads": [
            {"kind": "alltoall", "bytes": 9000, "rounds": 2, "off_us": 50},
            {"kind": "incast", "bytes": 10**9, "rounds": 1, "priority": 4},
        ],
    })  # fmt: skip
    for name, export in EXPORTS.items():
        files, unsaid = export(scenario)
        assert "seed 1" in " ".join(unsaid)
        found, _ = taken(written(files, tmp_path / name), tmp_path / name / "out", name)
        flows = [flow for w in found.workloads if isinstance(w, Flows) for flow in w.flows]
        assert len(flows) == 2 * 12 + 3
        assert sum(flow.bytes == 10**9 for flow in flows) == 3
        assert max(flow.start_ns for flow in flows) > 50_000


def test_the_commands(tmp_path: Path) -> None:
    run, mine, back = hpcc_folder(tmp_path / "run"), tmp_path / "mine", tmp_path / "back"
    done = CliRunner().invoke(app, ["network", "import", str(run), "--out", str(mine)])
    assert done.exit_code == 0, done.output
    assert "config.txt line 1: ENABLE_QCN 1 -> marking is on" in done.output
    assert "there a frame takes whole nanoseconds" in done.output
    scenario = str(mine / "scenario.toml")
    done = CliRunner().invoke(
        app, ["network", "export", "-s", scenario, "--to", "hpcc", "--out", str(back)]
    )
    assert done.exit_code == 0, done.output
    flows = [
        [line.split() for line in (f / "flow.txt").read_text().splitlines()] for f in (run, back)
    ]
    assert [[*map(float, words)] for words in flows[0]] == [[*map(float, w)] for w in flows[1]]
    incast = tmp_path / "incast"
    words = ["--load", "0.02", "--senders", "9", "--bytes", "5000", "--ms", "1"]
    done = CliRunner().invoke(
        app, ["traffic", "incast", "-s", scenario, *words, "--out", str(incast)]
    )
    assert done.exit_code == 0, done.output
    assert (incast / "flows.csv").is_file()


def test_incasts_have_their_load_senders_and_receivers() -> None:
    net = Scenario.model_validate({
        "topology": {"kind": "single-switch", "hosts": 40},
        "workloads": [{"kind": "alltoall", "bytes": 1}],
    }).fabric  # fmt: skip
    flows = incast_flows(net, senders=20, size=10_000, load=0.1, span_ms=100, seed=3)
    offered = sum(int(flow.bytes) for flow in flows) * 8 / 0.1
    assert offered == pytest.approx(0.1 * 40 * 100e9, rel=0.05)
    for at in range(0, len(flows), 20):
        one = flows[at : at + 20]
        assert len({flow.src for flow in one}) == 20
        assert len({(flow.dst, flow.start_ns) for flow in one}) == 1
    assert len({flow.dst for flow in flows}) == len({flow.src for flow in flows}) == 40
    assert flows == incast_flows(net, senders=20, size=10_000, load=0.1, span_ms=100, seed=3)
    with pytest.raises(ConfigError, match="40 senders"):
        incast_flows(net, senders=40, size=1, load=0.1, span_ms=1, seed=1)
