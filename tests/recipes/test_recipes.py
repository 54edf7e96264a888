"""Recipes of what a scenario is made of: a workload, a topology, and a scenario with both."""

from __future__ import annotations

import pytest
from copied import Copy

pytestmark = pytest.mark.slow

FOLDER = "envs/scenario"
BROADCAST = '''"""One host sends to all others at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from dcqcn_gym.envs.scenario.hosts import Bytes, HostNumber, Timed
from dcqcn_gym.envs.scenario.tables import Cdf
from dcqcn_gym.envs.scenario.topology import Fabric, us_to_ps
from dcqcn_gym.envs.scenario.workload import items, listed, stop_ps


class Broadcast(Timed):
    """Host ``root`` sends ``bytes`` to every other host, once."""

    kind: Literal["broadcast"] = "broadcast"
    bytes: Bytes
    root: HostNumber = 0

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        """Return who receives."""
        return tuple(host for host in range(net.n_hosts) if host != self.root)

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Return one line of pairs."""
        pairs = listed(f"{self.root}>{host}:{self.bytes}" for host in self.resolve(net))
        yield "workload pairs " + items(
            pairs=pairs, messages=1, off_ps=0, start_ps=us_to_ps(self.start_us),
            stop_ps=stop_ps(self.stop_us), rounds=1, priority=self.priority,
        )  # fmt: skip

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return bytes and messages of a flow."""
        return self.bytes, 1
'''

STAR = '''"""Switches in a star, with hosts at each but the middle one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.rates import Link


class Star(StrictModel):
    """``arms`` switches of one host each around a switch in the middle; 100 Gb/s, 1 us."""

    kind: Literal["star"] = "star"
    arms: Annotated[int, Field(ge=2)]

    def size(self) -> tuple[int, int, int]:
        """Return hosts, switches and links."""
        return self.arms, self.arms + 1, 2 * self.arms

    def expand(self) -> Fabric:
        """Return the network."""
        n = self.arms
        links = [Link(h, n + h, 80, 1_000_000) for h in range(n)]
        links += [Link(n + h, 2 * n, 80, 1_000_000) for h in range(n)]
        return Fabric(n, (*[0] * n, 1), tuple(links))
'''

SCENARIO = """# dcqcn-gym tune --scenario star-broadcast --tuner random --seed 1 --out runs/star
description = "One of 4 hosts of a star sends to all others"
intervals = 2
warmup_us = 0
[topology]
kind = "star"
arms = 4
[[workloads]]
kind = "broadcast"
bytes = 20000
root = 1
"""
NAME = "star-broadcast"
FILE = f"configs/scenarios/{NAME}.toml"

COMPILED = """

def test_a_broadcast() -> None:
    scenario = load_scenario("configs/scenarios/star-broadcast.toml")
    line = "workload pairs pairs=1>0:20000,1>2:20000,1>3:20000 messages=1 off_ps=0 start_ps=0"
    assert line + " stop_ps=-1 rounds=1 priority=3" in compile_scenario(scenario).splitlines()
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Return a copy with the workload, the topology and a scenario of both."""
    copied = Copy(tmp_path_factory.mktemp("copied"))
    copied.add(f"{FOLDER}/broadcast.py", BROADCAST)
    line = '    "alltoall": "dcqcn_gym.envs.scenario.rounds:AllToAll",\n'
    own = '    "broadcast": "dcqcn_gym.envs.scenario.broadcast:Broadcast",\n'
    copied.change(f"{FOLDER}/workloads.py", line, line + own)
    end = copied.read("tests/envs/test_compile.py")[-80:]
    copied.change("tests/envs/test_compile.py", end, end + COMPILED)
    assert sum(copied.changed.values()) <= 3, "places of a workload"
    copied.check_named("a workload")
    copied.changed.clear()
    copied.add(f"{FOLDER}/star.py", STAR)
    own = "from dcqcn_gym.envs.scenario.star import Star\n"
    union(
        copied,
        "topology.py",
        own,
        "    SingleSwitch | LeafSpine |",
        "    Star | SingleSwitch | LeafSpine |",
    )
    copied.check_named("a topology")
    copied.changed.clear()
    copied.add(FILE, SCENARIO)
    copied.run("make schemas")
    return copied


def union(tree: Copy, name: str, line: str, old: str, new: str) -> None:
    """Put a class into the union of a file, with its import before the first one of its package."""
    path = f"{FOLDER}/{name}"
    first = next(x for x in tree.read(path).splitlines() if x.startswith("from dcqcn_gym.envs"))
    tree.change(path, f"\n{first}\n", f"\n{line}{first}\n")
    tree.changed[path] -= 1  # an import is of the same place
    tree.change(path, old, new)


def test_a_workload_and_a_topology(tree: Copy) -> None:
    for kind in ("broadcast", "star"):
        assert f'"{kind}"' in tree.read("configs/schema/scenario.json")
    tree.run(f"dcqcn-gym simulate --scenario {FILE} --out runs/star")
    flows = tree.read("runs/star/flows.csv").splitlines()
    at = [flows[0].split(",").index(name) for name in ("src", "dst")]
    found = sorted(tuple(int(row.split(",")[i]) for i in at) for row in flows[1:])
    assert found == [(1, 0), (1, 2), (1, 3)]
    assert tree.test("tests/envs/test_compile.py", "-k test_a_broadcast") == 1


def test_a_scenario(tree: Copy) -> None:
    tree.run(f"dcqcn-gym scenarios {FILE}")
    assert NAME in tree.run("dcqcn-gym scenarios")
    tree.run(f"dcqcn-gym simulate --scenario {NAME} --out runs/named")
    tree.run("make docs")
    assert f"| `{NAME}` |" in tree.read("docs/scenarios.md")
    tree.run(f"python tools/run_digests.py --write {NAME}")
    assert f"{NAME} paraleon" in tree.read("tests/digests/runs.txt")
    tree.run(f"python tools/environment_ids.py {NAME}")
    tests = ("envs/test_scenarios.py", "envs/test_backends.py", "envs/test_determinism.py",
             "envs/test_ids.py", "core/test_digests.py")  # fmt: skip
    chosen = f"-k '{NAME} or every_run_but or of_the_docs'"
    assert tree.test(*(f"tests/{name}" for name in tests), chosen) == 6
