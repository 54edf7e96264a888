"""The measurement of the multi-agent environment's speed."""

from __future__ import annotations

import json

import pytest
from agents_speed import agents_speed
from measure import app
from typer.testing import CliRunner

from dcqcn_gym.core.errors import ConfigError


def test_a_measurement_counts_agents_steps_and_the_engine() -> None:
    found = agents_speed("mini-llm-alltoall", "port", 3, 500.0)
    assert (found.agents, found.steps) == (24, 3)
    assert 0 < found.engine_s < found.cpu_s
    assert found.per_cpu_s == pytest.approx(3 / found.cpu_s)
    assert 0 < found.outside_share < 1
    with pytest.raises(ConfigError, match="did you mean 'port'"):
        agents_speed("mini-llm-alltoall", "ports", 3, None)


def test_the_command_prints_a_line_per_kind() -> None:
    words = ["agents", "--scenario", "mini-llm-alltoall", "--steps", "2", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["kind"], row["agents"]) for row in rows] == [
        ("switch", 4), ("port", 24), ("nic", 16),
    ]  # fmt: skip
