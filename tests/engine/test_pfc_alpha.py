"""The optional knob ``pfc_alpha``: a column behind the marking curve, alike in both engines."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from engine_worlds import ENGINES, PFC, US, add_report, compiled, flow_list

from dcqcn_gym._core import Simulation  # noqa: TID251 - the tests of this folder are about it
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.core.knobs import default_setting

LINKS = [(h, 4, 80, US) for h in range(4)]
BUFFER = 4 * (4096 + 37_500) + 60_000
MARKLESS = default_setting().replace(kmin=4e6, kmax=4e6)
FLOWS = flow_list([(h, 3, 400_000, h * 1000) for h in range(3)] + [(0, 3, 300_000, 50 * US)])


def _play(engine: str, alphas: list[np.ndarray | None], alpha: float = 0.125) -> str:
    """Return the digest of one interval of 25 us for each of ``alphas``, one value a port."""
    pfc = PFC.replace("alpha=0.125", f"alpha={alpha!r}")
    sim = Simulation(compiled(4, LINKS, [FLOWS], buffer=BUFFER, pfc=pfc), 1, engine)
    nic, ecn = same_everywhere(MARKLESS, sim.n_hosts, sim.n_ports)
    digest = hashlib.sha256()
    for i, column in enumerate(alphas):
        sim.apply(nic, ecn if column is None else np.column_stack([ecn, column]))
        sim.advance((i + 1) * 25 * US)
        add_report(digest, sim.report())
    return digest.hexdigest()


def _everywhere(alpha: float) -> np.ndarray:
    return np.full(8, alpha)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_knob_is_the_alpha_of_the_scenario(engine: str) -> None:
    plain = _play(engine, [None] * 4)
    assert _play(engine, [_everywhere(0.125)] * 4) == plain
    half = _play(engine, [None] * 4, alpha=0.5)
    assert half != plain
    assert _play(engine, [_everywhere(0.5)] * 4) == half
    assert _play(engine, [_everywhere(0.5)] + [None] * 3) == half  # it stays until another comes


def test_engines_agree_when_it_changes_port_by_port() -> None:
    ports = _everywhere(0.0625)
    ports[4:6] = 0.5  # the switch's ports towards hosts 0 and 1
    changes: list[np.ndarray | None] = [_everywhere(0.5), ports, _everywhere(0.03125), ports[::-1]]
    one, other = (_play(engine, changes) for engine in ENGINES)
    assert one == other
    assert one != _play(ENGINES[0], [_everywhere(0.5)] * 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_port_with_a_larger_share_is_paused_later(engine: str) -> None:
    sim = Simulation(compiled(4, LINKS, [FLOWS], buffer=BUFFER), 1, engine)
    nic, ecn = same_everywhere(MARKLESS, sim.n_hosts, sim.n_ports)
    alphas = _everywhere(0.0625)
    alphas[4] = 1.0  # of host 0 alone
    sim.apply(nic, np.column_stack([ecn, alphas]))
    sim.advance(25 * US)
    paused = sim.report()["port_pause_ps"]
    assert paused[0] < 0.7 * min(paused[1], paused[2])


def test_refused() -> None:
    sim = Simulation(compiled(4, LINKS, [FLOWS], buffer=BUFFER), 1)
    nic, ecn = same_everywhere(default_setting(), sim.n_hosts, sim.n_ports)
    with pytest.raises(ValueError, match="pfc_alpha must be above 0"):
        sim.apply(nic, np.column_stack([ecn, _everywhere(0.0)]))
    with pytest.raises(ValueError, match="expected 3 ECN columns, got 5"):
        sim.apply(nic, np.column_stack([ecn, _everywhere(1.0), _everywhere(1.0)]))
