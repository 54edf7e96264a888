"""The bank is wide, follows from its salt, and shares no kind or fabric with what it must not."""

from __future__ import annotations

import hashlib
import json

from dcqcn_gym.benchmarks.leaderboard.bank import fit
from dcqcn_gym.benchmarks.leaderboard.bank.bank import TRAINING, VALIDATION, bank
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite, suite_names
from dcqcn_gym.envs.scenario.rounds import Incast


def test_the_salt_alone_decides() -> None:
    one, two = (bank("a", 10) for _ in range(2))
    assert one == two
    assert one != bank("b", 10)
    assert one != bank("a", 10, "validation")


def test_the_rule_was_fitted_on_these_scenarios() -> None:
    """Suites are drawn by the same code: what is changed for them must not change the bank."""
    drawn = [*bank(fit.SALT, fit.COUNT), *bank(fit.SALT, 18, "validation")]
    text = json.dumps([one.model_dump(mode="json", exclude_defaults=True) for one in drawn])
    assert hashlib.sha256(text.encode()).hexdigest().startswith("b8e262509f3b1981")


def test_parts_share_no_kind() -> None:
    assert not set(TRAINING) & set(VALIDATION)


def test_it_is_wide() -> None:
    scenarios = bank("wide", 60) + bank("wide", 60, "validation")
    hosts = {s.n_hosts for s in scenarios}
    assert min(hosts) == 12
    assert max(hosts) == 1024
    assert {s.line_rate_bps for s in scenarios} == {1e10, 2.5e10, 5e10, 1e11, 2e11, 4e11}
    incasts = [w for s in scenarios for w in s.workloads if isinstance(w, Incast)]
    assert max(len(w.hosts) for w in incasts if isinstance(w.hosts, tuple | list)) == 255


def test_no_scenario_has_the_fabric_of_a_suite() -> None:
    drawn = bank("apart", 60) + bank("apart", 60, "validation")
    suites = [s for name in suite_names() for s in load_suite(name).scenarios.values()]
    assert drawn
    assert not {repr(s.topology) for s in drawn} & {repr(s.topology) for s in suites}
