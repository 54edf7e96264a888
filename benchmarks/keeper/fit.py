"""``python -m dcqcn_gym.benchmarks.keeper.fit FILE``: find the rule's numbers and write them.

One number after the other over a few values each, on the training kinds of the bank, every
candidate on the same traffic. The worth of a candidate is the mean over the scenarios of S less
:data:`PRICE` for each limit of the verdict that it crosses. Same bank, same bytes; the CPU seconds
that it took are printed, not written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dcqcn_gym.benchmarks.keeper.bank import Part, bank
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.verdict import Measured, flags, scores
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.evaluated import evaluate
from dcqcn_gym.runs.whole_file import write_atomically
from dcqcn_gym.tuners.advice import RuleFile, RuleTerms, Territory, advise

PRICE = 0.1
"""S that a crossed limit costs."""

SALT, COUNT, MOST_HOSTS, INTERVALS, SEEDS = "fit", 30, 128, 10, (1,)

START = {"floor_share": 0.77, "floor_cap": 0.06, "time_reset_us": 100, "g": 960, "ecn": 1.0,
         "pmax": 1.0}  # fmt: skip
"""Where the search begins: the best of about 35 settings tried by hand on the same bank."""

VALUES: Mapping[str, Sequence[float]] = {
    "ecn": (0.5, 0.7),
    "pmax": (0.2, 0.5),
    "g": (900, 1000),
    "time_reset_us": (75, 150),
    "floor_share": (0.4,),
    "floor_cap": (0.03, 0.1),
}
"""What is tried for each number beside the value that it has, in this order."""

TERRITORY = Territory(
    line_rate_gbps=(10, 400), hosts=(12, 128), base_rtt_us=(5, 100), oversubscription=(1, 8),
    schemes=("dcqcn",),
)  # fmt: skip
"""What these scenarios cover, with the validation kinds; 12 hosts are those of ``dev-v1``."""


@dataclass(frozen=True)
class Worth:
    """What a rule is worth on some scenarios: S and crossed limits of each, by name."""

    scores: Mapping[str, float]
    crossed: Mapping[str, Sequence[str]]

    @cached_property
    def score(self) -> float:
        """Mean S."""
        return mean(list(self.scores.values()))

    @cached_property
    def value(self) -> float:
        """Mean of S less the price of what is crossed."""
        return mean([s - PRICE * len(self.crossed[name]) for name, s in self.scores.items()])


class Ground:
    """Scenarios with the default's runs on them."""

    def __init__(
        self, scenarios: Sequence[Scenario], seeds: Sequence[int], intervals: int | None
    ) -> None:
        self.scenarios = scenarios
        self._how = seeds, intervals
        self._default = [self._runs(s, s.default_setting()) for s in scenarios]

    def _runs(self, scenario: Scenario, setting: object) -> list[Measured]:
        return evaluate([setting], [scenario], *self._how)[0][0]  # type: ignore[list-item]

    def worth(self, terms: Mapping[str, float]) -> Worth:
        """Return what the rule with these numbers is worth here."""
        file = _file(terms)
        scores_of, crossed = {}, {}
        for scenario, theirs in zip(self.scenarios, self._default, strict=True):
            setting = advise(facts_of(scenario), scenario.default_setting(), file).setting
            ours = self._runs(scenario, setting)
            found = scores(ours, theirs)
            scores_of[scenario.name] = found.mean if found.n else 0.0
            crossed[scenario.name] = [
                f.key for f in flags(ours, theirs)
                if f.state != "few" and f.cost.harm.n and f.cost.harm.mean > f.limit
            ]  # fmt: skip
        return Worth(scores_of, crossed)


def ground(part: Part, count: int = COUNT) -> Ground:
    """Return the scenarios of a part of the bank that are small enough to be tried often."""
    chosen = [s for s in bank(SALT, count, part) if s.n_hosts <= MOST_HOSTS]
    return Ground(chosen, SEEDS, INTERVALS)


def found_terms(on: Ground) -> dict[str, float]:
    """Return the numbers, each the best of its values while the others stay."""
    terms = dict(START)
    best = on.worth(terms)
    _tell(terms, best)
    for name, values in VALUES.items():
        for value in values:
            tried = {**terms, name: value}
            worth = on.worth(tried)
            _tell(tried, worth)
            if worth.value > best.value:
                terms, best = tried, worth
    return terms


def _file(terms: Mapping[str, float]) -> RuleFile:
    made_by = "python -m dcqcn_gym.benchmarks.keeper.fit configs/tuners/advise.toml"
    return RuleFile(made_by=made_by, terms=RuleTerms(**terms), territory=TERRITORY)


def _tell(terms: Mapping[str, float], worth: Worth) -> None:
    crossed = len([key for keys in worth.crossed.values() for key in keys])
    said = ", ".join(f"{name} {value:g}" for name, value in terms.items())
    print(f"{said}: worth {worth.value:+.3f}, S {worth.score:+.3f}, {crossed} limits", flush=True)


def text_of(terms: Mapping[str, float]) -> str:
    """Return the file of these numbers."""
    file = _file(terms)
    lines = [
        "# The rule of `advise` and `keeper`; written, not edited. docs/keeper.md explains it."
    ]
    lines += [f'made_by = "{file.made_by}"', "", "[terms]"]
    lines += [f"{name} = {value}" for name, value in file.terms.model_dump().items()]
    lines += ["", "[territory]"]
    for name, value in file.territory.model_dump().items():
        lines.append(f"{name} = {list(value)}".replace("'", '"'))
    return "\n".join([*lines, ""])


def main(path: Path) -> None:
    """Fit, validate, write."""
    began = time.process_time()
    terms = found_terms(ground("training"))
    print("on the validation kinds:")
    _tell(terms, ground("validation", 24).worth(terms))
    write_atomically(path, text_of(terms).encode())
    print(f"{time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
