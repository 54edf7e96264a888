"""Which of many drawn scenarios a suite keeps: those on which settings differ, each in its own way.

The criterion, written before any candidate was looked at. A fixed panel of settings runs on every
candidate, 30 intervals on seed 1, and S against the default is taken of each.

1. *Alive*: the best of the panel gains at least :data:`LEAST_GAIN`, and best and worst are at least
   :data:`LEAST_SPREAD` apart. A candidate on which nobody can win, or nothing differs, is out.
2. *Cheap*: the default's run carries at most :data:`MOST_HOPS` packet hops an interval; the panel
   does not run on others.
3. *Different*: starting with the candidate of the widest spread, the next is always the one that
   gives those kept the largest effective number (:func:`effective_number`); at most
   :data:`MOST_OF_A_KIND` of one kind of traffic. Ties go to the smaller index.

Added when 520 candidates held the same scenario twice: one that equals an earlier one is out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.generator import Drawn
from dcqcn_gym.benchmarks.leaderboard.kinds import INTERVALS as INTERVALS_OF_A_RUN
from dcqcn_gym.benchmarks.leaderboard.kinds import KINDS, draw
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.verdict import scores
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.runs.entries import reference_settings
from dcqcn_gym.runs.whole_file import write_atomically

FloatArray = npt.NDArray[np.float64]

INTERVALS = 30
SEED = 1
LEAST_GAIN = 0.02
LEAST_SPREAD = 0.1
MOST_HOPS = 150_000
MOST_OF_A_KIND = 5
CLIP = 1.5
"""S is cut there, so that one extreme setting does not make a scenario's pattern alone."""

PICKED_FILE = Path(__file__).with_name("picked.json")
"""What the criterion kept, by salt; the command ``leaderboard pick`` of maintainers writes it."""

Change = Mapping[str, float]
_PANEL: tuple[Change, ...] = (
    {"min_rate": 0.01}, {"min_rate": 0.1}, {"ecn": 0.125}, {"ecn": 0.5}, {"ecn": 4},
    {"pmax": 0.02}, {"pmax": 1.0}, {"rp_ai_rate": 50}, {"rp_ai_rate": 50, "rp_hai_rate": 500},
    {"rp_time_reset": 30}, {"rp_time_reset": 1500}, {"rp_byte_reset": 1000},
    {"rp_rate_reduce_monitor_period": 80}, {"np_min_time_between_cnps": 96},
    {"rp_min_dec_fac": 90}, {"rp_gd": 13}, {"rp_dce_tcp_g": 900}, {"rp_clamp_tgt_rate": 1},
    {"ecn": 0.125, "rp_ai_rate": 100, "rp_time_reset": 50},
    {"ecn": 4, "rp_rate_reduce_monitor_period": 80, "min_rate": 0.05},
)  # fmt: skip
"""Changes of the default: ``ecn`` scales both thresholds, ``min_rate`` is a share of the line rate,
others are values in NVIDIA's units. The experts' setting is in the panel as well."""


def panel(scenario: Scenario) -> list[Setting]:
    """Return the default, the experts' setting, and the others of the panel."""
    base, expert = reference_settings(scenario).values()
    found = [base, expert]
    for change in _PANEL:
        values: dict[str, float] = {}
        for name, value in change.items():
            if name == "ecn":
                values |= {"kmin": base["kmin"] * value, "kmax": base["kmax"] * value}
            elif name == "min_rate":
                values["rp_min_rate"] = round(scenario.line_rate_bps / 1e6 * value)
            else:
                values[name] = value
        found.append(base.replace(**values))
    return found


@dataclass(frozen=True)
class Candidate:
    """A drawn scenario: what the panel scores on it, and what it costs."""

    index: int
    kind: str
    scores: tuple[float, ...]
    hops: int

    @property
    def alive(self) -> bool:
        """True if somebody can win there, and settings differ."""
        gain = max(self.scores)
        return gain >= LEAST_GAIN and max(gain, 0.0) - min(0.0, *self.scores) >= LEAST_SPREAD

    @property
    def spread(self) -> float:
        """The standard deviation of the panel's scores."""
        return float(np.std(self.scores))


def scenario_of(drawn: Drawn) -> Scenario:
    """Return a drawn scenario, checked."""
    return validate({"name": drawn.name, **drawn.table}, Scenario, source=drawn.name)


def measure(drawn: Drawn, index: int) -> Candidate:
    """Run the panel on a candidate; S is 0 where nothing can be said, or where it is not cheap."""
    scenario, kind = scenario_of(drawn), list(KINDS)[index % len(KINDS)]
    hops = _hops(scenario)
    if hops > MOST_HOPS:
        return Candidate(index, kind, (0.0,) * len(_PANEL), hops)
    default, *others = (
        runs[0] for runs in evaluate(panel(scenario), [scenario], [SEED], INTERVALS, threads=1)
    )
    found = [scores(one, default) for one in others]
    values = tuple(
        float(np.clip(s.mean, -CLIP, CLIP)) if s.n and math.isfinite(s.mean) else 0.0 for s in found
    )
    return Candidate(index, kind, values, hops)


def _hops(scenario: Scenario) -> int:
    """Return the packet hops of an interval under the default, from the first ten."""
    with closing(NativeBackend()) as backend:
        backend.open(scenario, SEED)
        backend.apply(scenario.initial_setting())
        backend.advance(scenario.warmup_ps)
        seen = [int(backend.advance().packet_hops) for _ in range(10)]
    return max(seen)


def effective_number(matrix: FloatArray) -> float:
    """Return of how many independent scenarios a matrix (entries, scenarios) of scores speaks.

    The participation ratio of the eigenvalues of the scenarios' correlation matrix,
    (sum w)^2 / sum w^2. A scenario on which all entries score alike counts as none.
    """
    centred = matrix - matrix.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))
    unit = centred[:, size > 0] / size[size > 0]
    correlation = unit.T @ unit
    return float(np.trace(correlation) ** 2 / (correlation**2).sum()) if unit.size else 0.0


def pick(candidates: Sequence[Candidate], count: int) -> list[int]:
    """Return the indices of those that are kept, in order of the index; fewer if too few fit."""
    able = [one for one in candidates if one.alive and one.hops <= MOST_HOPS]
    if not able:
        return []
    kept = [max(able, key=lambda one: (one.spread, -one.index))]
    while len(kept) < count:
        left = [
            one for one in able
            if one not in kept and [k.kind for k in kept].count(one.kind) < MOST_OF_A_KIND
        ]  # fmt: skip
        if not left:
            break
        kept.append(max(left, key=lambda one: (_effective([*kept, one]), -one.index)))
    return sorted(one.index for one in kept)


def _effective(some: Sequence[Candidate]) -> float:
    return effective_number(np.array([one.scores for one in some]).T)


def pick_suite(
    salt: str, candidates: int, count: int, intervals: int, executor: Executor,
    said: Callable[[Candidate], object] = lambda _: None,
) -> tuple[list[int], float]:  # fmt: skip
    """Draw ``candidates`` scenarios of a salt; return what is kept, and its effective number."""
    drawn = _unlike(draw(salt, index, intervals) for index in range(candidates))
    found = []
    for one in executor.map(measure, drawn.values(), drawn):
        said(one)
        found.append(one)
    chosen = pick(found, count)
    return chosen, _effective([one for one in found if one.index in chosen])


def _unlike(drawn: Iterable[Drawn]) -> dict[int, Drawn]:
    """Return the scenarios by index, each that equals an earlier one left out."""
    first: dict[str, tuple[int, Drawn]] = {}
    for index, one in enumerate(drawn):
        first.setdefault(json.dumps(one.table, sort_keys=True), (index, one))
    return dict(first.values())


def write_picked(salt: str, candidates: int, count: int, executor: Executor) -> dict[str, Any]:
    """Pick the scenarios of a suite, and put what is kept into :data:`PICKED_FILE`."""
    chosen, number = pick_suite(salt, candidates, count, INTERVALS_OF_A_RUN, executor)
    found = {"candidates": candidates, "picked": chosen, "effective_number": round(number, 2)}
    known = parse_json(read_text(PICKED_FILE)) if PICKED_FILE.exists() else {}
    text = json.dumps({**known, salt: found}, indent=1, sort_keys=True)
    write_atomically(PICKED_FILE, f"{text}\n".encode())
    return found


def picked(salt: str) -> list[int]:
    """Return the indices that the criterion kept of a salt, as committed."""
    return [int(i) for i in parse_json(read_text(PICKED_FILE))[salt]["picked"]]
