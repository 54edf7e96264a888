"""Every fuzzer by its name."""

from __future__ import annotations

from fuzz_datagrams import headers, messages, netflow, sflow
from fuzz_harness import Fuzzer
from fuzz_imports import IMPORTS
from fuzz_jobs import GRAPHS
from fuzz_logs import logs
from fuzz_plans import comparisons, leaderboards
from fuzz_plugins import plugins, settings
from fuzz_policies import policies
from fuzz_scenarios import csv, toml

FUZZERS: dict[str, Fuzzer] = {
    "toml": toml, "csv": csv, "logs": logs, "policies": policies, "plugins": plugins,
    "settings": settings, "sflow": sflow, "netflow": netflow, "headers": headers,
    "messages": messages, "leaderboards": leaderboards, "comparisons": comparisons,
    **IMPORTS, **GRAPHS,
}  # fmt: skip
