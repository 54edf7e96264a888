"""A network that was read as a scenario, the names of its hosts, and its picture."""

from __future__ import annotations

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.traffic.hosts import HOSTS_HEADER
from dcqcn_gym.extras.traffic.network.found import Joined
from dcqcn_gym.report.fabric_picture import fabric_file

SCENARIO, HOSTS, PICTURE = "scenario.toml", "hosts.csv", "fabric.svg"
LOAD = 0.3
"""Of the host links: the traffic that a new scenario has until it gets its own."""


def written(joined: Joined, source: str) -> dict[str, str]:
    """Return the files, by name; the picture is missing where the network is too wide for it."""
    tables = {
        "description": f"{len(joined.hosts)} hosts, {len(joined.switches)} switches, from {source}",
        "intervals": 60,
        "weights": {"tp": 0.4, "rtt": 0.4, "pfc": 0.2},
        "topology": joined.topology(),
        "workloads": [{"kind": "poisson", "cdf": "FB_Hadoop", "load": LOAD}],
    }
    scenario = validate({"name": "imported", **tables}, Scenario, source=source)
    rows = [f"{name},h{number}\n" for name, number in joined.hosts.items()]
    files = {SCENARIO: toml_text(tables), HOSTS: "".join([f"{HOSTS_HEADER}\n", *rows])}
    if picture := fabric_file(scenario.fabric):
        files[PICTURE] = picture
    return files
