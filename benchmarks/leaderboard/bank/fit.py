"""``python -m dcqcn_gym.benchmarks.leaderboard.bank.fit FILE``: find the rule's numbers.

CMA-ES over the terms of the rule (in their logarithms) on the training kinds of the bank, every
candidate on the same traffic. The worth of a candidate is the mean over the scenarios of S less
what it costs: :data:`PRICE` for each limit of the verdict, in proportion from half the limit on. At
the end the middle of the search is measured beside the start on another seed; the better is
written. Same bank, same bytes; the CPU seconds that it took are printed, not written.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from cmaes import CMA

from dcqcn_gym.benchmarks.leaderboard.bank.bank import Part, bank
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.core.verdict import Measured, flags, scores
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.tuners.rule import RuleFile, RuleTerms, Territory, advise

PRICE = 0.2
"""S that harm at a limit costs; nothing at half of it, three times as much at most."""

SALT, COUNT, MOST_HOSTS = "fit-4", 30, 64
GENERATIONS, CANDIDATES, SPREAD = 1, 10, 0.05

RANGES: Mapping[str, tuple[float, float, float]] = {
    "floor_share": (0.01, 0.06, 0.0217),
    "step_mbps": (5, 1000, 140),
    "fan_in_power": (1.0, 3.0, 1.41),
    "time_reset_us": (5, 300, 30),
    "g": (500, 1020, 780),
    "kmin": (0.05, 2.0, 0.185),
    "kmax": (0.2, 3.0, 0.6),
    "pmax": (0.05, 1.0, 0.4),
    "rtt_power": (0.05, 1.5, 0.3),
    "buffer_share": (0.02, 1.0, 0.495),
}
"""Lowest, highest and first value of each term. The first are where earlier searches went: of 140
settings on small scenarios, of 170 rules on scenarios of the bank, and three by hand."""

TERRITORY = Territory(
    line_rate_gbps=(10, 400), hosts=(12, 128), base_rtt_us=(5, 100), oversubscription=(1, 8),
    schemes=("dcqcn",),
)  # fmt: skip
"""What these scenarios cover, with the validation kinds."""

Terms = Mapping[str, float]


@dataclass(frozen=True)
class Worth:
    """What a rule is worth on some scenarios, by name: S, and each limit's share that is used."""

    scores: Mapping[str, float]
    used: Mapping[str, Mapping[str, float]]

    @cached_property
    def score(self) -> float:
        """Mean S."""
        return mean(list(self.scores.values()))

    @property
    def crossed(self) -> int:
        """How many limits are crossed, of all scenarios."""
        return count(share > 1 for used in self.used.values() for share in used.values())

    @cached_property
    def value(self) -> float:
        """Mean of S less the price of harm."""
        return mean([s - self._price(self.used[name]) for name, s in self.scores.items()])

    @staticmethod
    def _price(used: Mapping[str, float]) -> float:
        return math.fsum(2 * PRICE * min(max(share - 0.5, 0.0), 1.5) for share in used.values())


class FitGround:
    """Scenarios with the default's runs on them."""

    def __init__(self, scenarios: Sequence[Scenario], seeds: Sequence[int]) -> None:
        self.scenarios = scenarios
        self._seeds = seeds
        self._default = [self._runs(s, s.default_setting()) for s in scenarios]

    def _runs(self, scenario: Scenario, setting: object) -> list[Measured]:
        return evaluate([setting], [scenario], self._seeds)[0][0]  # type: ignore[list-item]

    def worth(self, terms: Terms) -> Worth:
        """Return what the rule with these numbers is worth here."""
        file = _file(terms)
        scores_of, used = {}, {}
        for scenario, theirs in zip(self.scenarios, self._default, strict=True):
            setting = advise(facts_of(scenario), scenario.default_setting(), file).setting
            ours = self._runs(scenario, setting)
            found = scores(ours, theirs)
            scores_of[scenario.name] = found.mean if found.n else 0.0
            used[scenario.name] = {
                f.key: f.cost.harm.mean / f.limit
                for f in flags(ours, theirs) if f.state != "few" and f.cost.harm.n
            }  # fmt: skip
        return Worth(scores_of, used)


def ground(part: Part, seeds: Sequence[int] = (1,), drawn: int = COUNT) -> FitGround:
    """Return the scenarios of a part of the bank that are small enough to be tried often."""
    chosen = [s for s in bank(SALT, drawn, part) if s.n_hosts <= MOST_HOSTS]
    return FitGround(chosen, seeds)


def found_terms(on: FitGround, generations: int = GENERATIONS) -> dict[str, float]:
    """Return the middle of the last generation."""
    search = CMA(
        mean=_place({name: first for name, (_, _, first) in RANGES.items()}), sigma=SPREAD,
        bounds=np.array([[0.0, 1.0]] * len(RANGES)), population_size=CANDIDATES, seed=1,
    )  # fmt: skip
    for _ in range(generations):
        tried = []
        for _ in range(CANDIDATES):
            at = search.ask()
            tried.append((at, -on.worth(_terms(at)).value))
        search.tell(tried)
        best = -min(value for _, value in tried)
        _tell(f"best {best:+.3f}; middle", _terms(search.mean))
    return _terms(search.mean)


def _place(terms: Terms) -> FloatArray:
    """Return where the terms stand within their ranges, by their logarithms."""
    return np.array(
        [
            math.log(terms[name] / low) / math.log(high / low)
            for name, (low, high, _) in RANGES.items()
        ]
    )


def _terms(place: FloatArray) -> dict[str, float]:
    """Return the terms of a place, three digits of each."""
    return {
        name: float(f"{low * (high / low) ** float(at):.{4 if name == 'g' else 3}g}")
        for (name, (low, high, _)), at in zip(RANGES.items(), np.clip(place, 0, 1), strict=True)
    }


def _file(terms: Terms) -> RuleFile:
    made_by = "python -m dcqcn_gym.benchmarks.leaderboard.bank.fit configs/tuners/advise.toml"
    return RuleFile(made_by=made_by, terms=RuleTerms(**terms), territory=TERRITORY)


def _tell(what: str, terms: Terms, worth: Worth | None = None) -> None:
    said = f"{what}: {', '.join(f'{name} {value:g}' for name, value in terms.items())}"
    if worth is not None:
        said += f": worth {worth.value:+.3f}, S {worth.score:+.3f}, {worth.crossed} limits"
    print(said, flush=True)


def text_of(terms: Terms) -> str:
    """Return the file of these numbers."""
    file = _file(terms)
    lines = ["# The rule of `advise` and `keeper`; written, not edited. docs/measured/keeper.md."]
    lines += [f'made_by = "{file.made_by}"', "", "[terms]"]
    lines += [f"{name} = {value}" for name, value in file.terms.model_dump().items()]
    lines += ["", "[territory]"]
    for name, value in file.territory.model_dump().items():
        lines.append(f"{name} = {list(value)}".replace("'", '"'))
    return "\n".join([*lines, ""])


def main(path: Path) -> None:
    """Fit, measure on another seed and on the validation kinds, write."""
    began = time.process_time()
    start = _terms(_place({name: first for name, (_, _, first) in RANGES.items()}))
    found = found_terms(ground("training"))
    again = ground("training", (2,))
    worths = {"the start": (start, again.worth(start)), "the middle": (found, again.worth(found))}
    for what, (terms, worth) in worths.items():
        _tell(f"on another seed, {what}", terms, worth)
    chosen, _ = max(worths.values(), key=lambda one: one[1].value)
    _tell("on the validation kinds", chosen, ground("validation", drawn=18).worth(chosen))
    write_atomically(path, text_of(chosen).encode())
    print(f"{time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
