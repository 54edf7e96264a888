"""Networks that files describe: what is read, what is decided, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.three_tier import ThreeTier
from dcqcn_gym.envs.scenario.topology import LeafSpine, fabric
from dcqcn_gym.extras.traffic.network.found import Found, Joined, gbps_of
from dcqcn_gym.extras.traffic.network.reading import read_networks
from dcqcn_gym.extras.traffic.network.writing import written


def joined(*links: tuple[str, str, float | None], hosts: str | None = None) -> tuple[Joined, Found]:
    found = Found()
    for a, b, gbps in links:
        found.link(a, b, gbps, "file")
    return found.settle(hosts, 100.0), found


def test_both_ends_of_a_link_count_once_and_parallel_ones_twice() -> None:
    found = Found()
    for source in ("leaf", "spine"):
        for _ in range(2):
            found.link("leaf", "spine", None, source)
    for host in ("a", "b"):
        found.link(host, "leaf", 25.0, "leaf")
    links = found.settle(None, 40.0).topology()["links"]
    assert links == [
        {"ends": ["h0", "s0"], "gbps": 25.0}, {"ends": ["h1", "s0"], "gbps": 25.0},
        {"ends": ["s0", "s1"], "gbps": 40.0, "parallel": 2},
    ]  # fmt: skip
    assert found.tally.of("links").left_out == {"reports are of the other end of a link": 2}
    assert found.tally.notes == {"links say no speed: taken as 40 Gb/s": 2}


def test_a_host_with_two_links_becomes_two_and_tiers_are_counted_from_hosts() -> None:
    net, found = joined(
        ("gpu-2", "rail0", 400), ("gpu-2", "rail1", 400), ("gpu-10", "rail0", 400),
        ("rail0", "agg", 400), ("rail1", "agg", 400), ("agg", "core", 800), hosts="gpu-*",
    )  # fmt: skip
    assert net.hosts == {"gpu-2:0": 0, "gpu-2:1": 1, "gpu-10": 2}
    assert net.switches == {"rail0": 0, "rail1": 1, "agg": 2, "core": 3}
    assert net.tiers == (0, 0, 1, 2)
    assert "1 hosts have several links: each is a host of its own" in found.tally.lines()[0]


def test_what_is_apart_or_joins_hosts_or_itself_is_counted() -> None:
    net, found = joined(
        ("a", "s", 10), ("b", "s", 10), ("s", "t", 10), ("c", "t", 10), ("u", "u", 10),
        ("x", "y", 10), ("p", "q", 10), ("q", "r", 10),
    )  # fmt: skip
    assert (len(net.hosts), len(net.switches)) == (3, 2)
    said = " ".join(found.tally.lines())
    assert "2 links are not joined to the largest part" in said
    assert "1 links join two hosts, for example 'x y'" in said
    assert "1 links join a device with itself, for example 'u'" in said


def test_odd_speeds_are_rounded_to_whole_picoseconds() -> None:
    net, _ = joined(("a", "s", 56.0), ("b", "s", 100.0))
    assert "'ps_per_byte': 143" in str(net.topology()["links"])
    assert [gbps_of(t) for t in ("100G", "40000", "1e11", "100GBASE-CR4", "fast", "2.5 Tbps")] == [
        100.0, 40.0, 100.0, 100.0, None, None,
    ]  # fmt: skip


def test_hopeless_networks_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--hosts gpu: no device has such a name; there are a"):
        joined(("a", "s", 10), ("b", "s", 10), hosts="gpu")
    with pytest.raises(ConfigError, match="every device is a host"):
        joined(("a", "b", 10))
    with pytest.raises(ConfigError, match="fewer than two hosts"):
        joined(("a", "s", 10), ("s", "t", 10), ("t", "u", 10), ("u", "s", 10), hosts="a")
    with pytest.raises(ConfigError, match="no links between two devices"):
        Found().settle(None, 100.0)
    file = tmp_path / "a.xml"
    file.write_text('<!DOCTYPE x [<!ENTITY a "b">]><graphml/>')
    with pytest.raises(ConfigError, match="declares entities"):
        read_networks([file])
    file.write_text("<html/>")
    with pytest.raises(ConfigError, match="begins with 'html'; expected graphml"):
        read_networks([file])


def test_a_network_that_was_read_is_a_scenario_with_a_picture() -> None:
    net, _ = joined(("a", "s", 25), ("b", "s", 25), ("s", "t", 100), ("c", "t", 25))
    files = written(net, "drawing")
    assert set(files) == {"scenario.toml", "hosts.csv", "fabric.svg"}
    assert files["hosts.csv"] == "name,host\na,h0\nb,h1\nc,h2\n"
    assert "2 x 25G" in files["fabric.svg"]
    assert "var(--" not in files["fabric.svg"]


def test_racks_of_other_speeds_and_three_tiers() -> None:
    mixed = LeafSpine.model_validate(
        {"tors": 2, "hosts_per_tor": 2, "spines": 2, "host_gbps": 25, "racks": [
            {"tors": 1, "hosts_per_tor": 3, "host_gbps": 100, "uplink_gbps": 400}]}
    )  # fmt: skip
    net = fabric(mixed)
    assert (net.n_hosts, len(net.tiers), len(net.links)) == mixed.size() == (7, 5, 13)
    assert [round(link.rate_bps / 1e9) for link in net.host_link] == [25] * 4 + [100] * 3
    assert net.uplink_bps[net.tor(6)] == 8e11
    assert LeafSpine.model_validate(mixed.model_dump()) == mixed
    assert "racks" not in LeafSpine(tors=1, hosts_per_tor=2, spines=1).model_dump()
    three = ThreeTier(pods=3, tors_per_pod=2, hosts_per_tor=2, aggs_per_pod=2, cores_per_agg=2)
    net = fabric(three)
    assert (net.n_hosts, len(net.tiers), len(net.links)) == three.size() == (12, 16, 36)
    first_core = net.n_hosts + 6 + 6
    assert sorted(net.peers[first_core]) == [18, 20, 22]  # the first aggregation switch of each pod
