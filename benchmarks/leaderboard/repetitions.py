"""How often a submitted entry has run: as often as its suite asks, less often only if it is slow.

With few repetitions the bounds of the safety flags are wide, so that an entry that harms has none:
whoever hands in an entry must not choose their number.
"""

from __future__ import annotations

from dataclasses import replace

from dcqcn_gym.benchmarks.leaderboard.cost import cost_of
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.suite import SuiteFile
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs.entries import Entry


def check_repetitions(suite: SuiteFile, made: int, source: str) -> None:
    """Raise ConfigError, which begins with ``source``, for a number that the suite does not ask."""
    if made not in (suite.repetitions, suite.slow_repetitions):
        raise ConfigError(
            f"{source}: has {made} repetitions; suite {suite.name!r} asks {suite.repetitions}, "
            f"or {suite.slow_repetitions} of a tuner that needs more than {suite.slow_ms:g} ms "
            "a decision"
        )


def check_slow(board: Leaderboard, entry: Entry, source: str) -> None:
    """Raise ConfigError for an entry with fewer repetitions whose runs in ``board`` were not slow.

    What counts are the seconds beside its logs. They are nobody's promise, but all that is gained
    by wasting them is an entry without a rank.
    """
    suite = board.suite.file
    made = board.repeated(entry.name)
    if made >= suite.repetitions:
        return
    (cost,) = cost_of(replace(board, entries=[entry]))
    ms = cost.tuner_ms_per_interval
    if ms is None or ms <= suite.slow_ms:
        told = "an unknown time" if ms is None else f"{ms:.3g} ms"
        raise ConfigError(
            f"{source}: has {made} of {suite.repetitions} repetitions, but its tuner needs {told} "
            f"a decision; fewer are for those that need more than {suite.slow_ms:g} ms: run it "
            "without --slow and --repetitions"
        )
