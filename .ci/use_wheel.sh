#!/usr/bin/env bash
# Uses an installed wheel the way a person would, from an empty folder: use_wheel.sh VENV/bin
set -euo pipefail
bin=$1

"$bin/python" - <<'PY'
import importlib.util as util
from importlib import resources

import gymnasium
import dcqcn_gym
import dcqcn_gym._core

leaked = [n for n in ("envs", "tuners", "hw", "benchmarks", "configs") if util.find_spec(n)]
assert not leaked, leaked
configs = resources.files("dcqcn_gym") / "configs"
assert (configs / "scenarios" / "fb-hadoop.toml").is_file(), "configs are not in the wheel"
ids = [i for i, s in gymnasium.registry.items() if "dcqcn_gym" in str(s.entry_point)]
env = gymnasium.make("dcqcn/MiniFBHadoop-v0")
env.reset(seed=1)
for _ in range(3):
    env.step(env.action_space.sample())
env.close()
print(len(ids), "environments registered; three steps taken")
PY

"$bin/dcqcn-gym" --help >/dev/null
for table in scenarios tuners knobs; do "$bin/dcqcn-gym" "$table" >/dev/null; done
"$bin/dcqcn-gym" tune --scenario mini-fb-hadoop --tuner paraleon --seed 1 --intervals 5 --out run
test -s run/run.jsonl
"$bin/dcqcn-gym" simulate --scenario mini-fb-hadoop --intervals 5 --out sim
head -n 2 sim/flows.csv

# ns-3: the sources in the wheel, a cache of its own; pip keeps the download of the ns3 wheel
"$bin/python" -m pip install -qq "dcqcn-gym[ns3]"
export DCQCN_GYM_CACHE=$PWD/cache
"$bin/dcqcn-gym" ns3 build
"$bin/dcqcn-gym" ns3 build --check >/dev/null
"$bin/python" - <<'PY'
from pathlib import Path

import gymnasium
import numpy as np

import dcqcn_gym
from dcqcn_gym.extras.ns3.bridge.build import source_dirs

package = Path(dcqcn_gym.__file__).parent
assert "site-packages" in package.parts, package
assert all(folder.is_relative_to(package / "_sources") for folder in source_dirs())
rewards = {}
for backend in ("ns3", "native"):
    with gymnasium.make(
        "dcqcn_gym:dcqcn/Dcqcn-v0", scenario="mini-fb-hadoop", backend=backend
    ) as env:
        env.reset(seed=1)
        action = np.zeros(env.action_space.shape, np.float32)
        rewards[backend] = [env.step(action)[1] for _ in range(3)]
assert rewards["ns3"] == rewards["native"], rewards
print("three steps on ns-3, built from the wheel:", rewards["ns3"])
PY
echo "the wheel works"
