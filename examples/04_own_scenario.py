# %% [markdown]
"""
# A scenario of your own

A TOML file: eight hosts on one switch, seven senders to one receiver. Run it:
`python examples/04_own_scenario.py`, or open it as a notebook (jupytext's percent format).
"""

# %%
from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.simulation.run import simulate

SCENARIO = """
description = "7:1 incast at 100 Gb/s"

[weights]
tp = 0.4
rtt = 0.3
pfc = 0.3

[topology]
kind = "single-switch"
hosts = 8
gbps = 100

[[workloads]]
kind = "incast"
bytes = 1_000_000
rounds = 3
"""

# %% [markdown]
# Simulate until every flow is delivered, under two marking thresholds.

# %%
with TemporaryDirectory() as folder:
    path = Path(folder) / "incast-8.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    scenario = load_scenario(str(path))
    for kmin in (50, 400):
        setting = scenario.default_setting().replace({"kmin": kmin})
        summary = simulate(scenario, Path(folder) / f"kmin-{kmin}", setting=setting)
        print(
            f"kmin {kmin:3} KB: {summary['finished_flows']} flows in "
            f"{summary['makespan_ns'] / 1e6:.2f} ms, {summary['marks']} marks, "
            f"{summary['pauses']} pauses, largest queue {summary['max_queue_bytes']} B"
        )
