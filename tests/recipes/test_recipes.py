"""Recipes of CONTRIBUTING carried out in a copy of the tree, by nothing but what they say."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("src", "envs", "tuners", "hw", "benchmarks/__init__.py", "configs")

BROADCAST = """
\"\"\"One host sends to all others at once.\"\"\"

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from dcqcn_gym.envs.scenario.hosts import Bytes, HostNumber, Timed
from dcqcn_gym.envs.scenario.tables import Cdf
from dcqcn_gym.envs.scenario.topology import Fabric, us_to_ps
from dcqcn_gym.envs.scenario.workload import items, listed, stop_ps


class Broadcast(Timed):
    \"\"\"Host ``root`` sends ``bytes`` to every other host, once.\"\"\"

    kind: Literal["broadcast"] = "broadcast"
    bytes: Bytes
    root: HostNumber = 0

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        return tuple(host for host in range(net.n_hosts) if host != self.root)

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        pairs = listed(f"{self.root}>{host}:{self.bytes}" for host in self.resolve(net))
        yield "workload pairs " + items(
            pairs=pairs, messages=1, off_ps=0, start_ps=us_to_ps(self.start_us),
            stop_ps=stop_ps(self.stop_us), rounds=1, priority=self.priority,
        )

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        return self.bytes, 1
"""

STAR = """
\"\"\"Switches in a star, with hosts at each but the middle one.\"\"\"

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.rates import Link


class Star(StrictModel):
    \"\"\"``arms`` switches of one host each around a switch in the middle; 100 Gb/s, 1 us.\"\"\"

    kind: Literal["star"] = "star"
    arms: Annotated[int, Field(ge=2)]

    def size(self) -> tuple[int, int, int]:
        return self.arms, self.arms + 1, 2 * self.arms

    def expand(self) -> Fabric:
        n = self.arms
        links = [Link(h, n + h, 80, 1_000_000) for h in range(n)]
        links += [Link(n + h, 2 * n, 80, 1_000_000) for h in range(n)]
        return Fabric(n, (*[0] * n, 1), tuple(links))
"""

SCENARIO = """
warmup_us = 0
[topology]
kind = "star"
arms = 4
[[workloads]]
kind = "broadcast"
bytes = 20000
root = 1
"""

RUN = """
import sys
from dcqcn_gym.core.config import json_object
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.simulate.run import endless
scenario = load_scenario("own.toml")
line = "workload pairs pairs=1>0:20000,1>2:20000,1>3:20000 messages=1 off_ps=0 start_ps=0"
assert line + " stop_ps=-1 rounds=1 priority=3" in compile_scenario(scenario).splitlines()
assert not endless(scenario)
with DcqcnEnv(scenario) as env:
    env.reset(seed=1)
    flows = env.step(env.action_space.sample())[4]["reports"][0].finished
print(sys.modules["dcqcn_gym"].__file__, sorted(zip(flows.src.tolist(), flows.dst.tolist())))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the package with the engine that is installed."""
    root = tmp_path / "tree"
    for part in PARTS:
        if (ROOT / part).is_dir():
            skip = shutil.ignore_patterns("*.pyc", "__pycache__")
            shutil.copytree(ROOT / part, root / part, symlinks=True, ignore=skip)
        else:
            (root / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, root / part)
    found = importlib.util.find_spec("dcqcn_gym._core")
    assert found is not None
    assert found.origin is not None
    shutil.copy(found.origin, root / "src" / "dcqcn_gym" / Path(found.origin).name)
    return root


def added(path: Path, module: str, name: str, union: str) -> None:
    """Put a class of ``module`` into a union of a file, as the recipes say."""
    text = path.read_text(encoding="utf-8")
    assert text.count(union) == 1
    last = "from dcqcn_gym.envs.scenario"
    at = text.index(last)
    text = f"{text[:at]}from dcqcn_gym.envs.scenario.{module} import {name}\n{text[at:]}"
    path.write_text(text.replace(union, f"{name} | {union}"), encoding="utf-8")


def test_a_workload_and_a_topology(tree: Path, tmp_path: Path) -> None:
    folder = tree / "envs" / "scenario"
    (folder / "broadcast.py").write_text(BROADCAST, encoding="utf-8")
    (folder / "star.py").write_text(STAR, encoding="utf-8")
    added(folder / "workloads.py", "broadcast", "Broadcast", "Poisson\n    | AllToAll")
    union = "SingleSwitch | LeafSpine | Dumbbell | FatTree | Graph, Field"
    added(folder / "topology.py", "star", "Star", union)
    (tmp_path / "own.toml").write_text(SCENARIO, encoding="utf-8")
    paths = (tree / "src", sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    # an editable installation is found by a hook of site.py, ahead of PYTHONPATH: so no site
    done = subprocess.run(
        [sys.executable, "-S", "-c", RUN], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(" ", 1) == [
        str(tree / "src" / "dcqcn_gym" / "__init__.py"), "[(1, 0), (1, 2), (1, 3)]\n",
    ]  # fmt: skip
