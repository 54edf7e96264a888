"""Categories: what kind of thing an entry is, so that like is ranked among like.

A built-in tuner's category follows from its class, anybody else's is ``online`` unless a submission
says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from dcqcn_gym.benchmarks.leaderboard.bootstrap import ranks
from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.tuners import TUNERS
from dcqcn_gym.tuners.acc import AccTuner
from dcqcn_gym.tuners.fixed import AdviseTuner, StaticTuner
from dcqcn_gym.tuners.keeper import KeeperTuner
from dcqcn_gym.tuners.policy import PolicyTuner
from dcqcn_gym.tuners.pretrained import PretrainedTuner

Category: TypeAlias = Literal["static", "online", "pre-trained", "simulating", "scheme", "oracle"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
"""static: a setting that a person wrote down; online: learns only in the run; pre-trained: was
trained or searched for before; simulating: runs an engine of its own beside the network; scheme:
other hardware; oracle: knows what no tuner can know, and has no rank."""

APART = ("simulating", "scheme")
"""Categories with a division of their own: the one pays in computing time, the other in hardware.
"""


def divisions(categories: Mapping[str, str]) -> list[list[str]]:
    """Return names that are ranked among themselves, from each one's category.

    Oracles are in no division.
    """
    found: dict[str, list[str]] = {}
    for name, category in categories.items():
        if category != "oracle":
            found.setdefault(category if category in APART else "tuners", []).append(name)
    return list(found.values())


def ranks_within(categories: Mapping[str, str], scores: Mapping[str, FloatArray]) -> dict[str, int]:
    """Return the rank of every entry within its division: :func:`.bootstrap.ranks`."""
    found: dict[str, int] = {}
    for names in divisions(categories):
        found |= ranks({name: scores[name] for name in names})
    return found


def category_of_entry(entry: Entry) -> Category:
    """Return the category of an entry: on another scheme it competes with schemes."""
    return "scheme" if entry.changes else category_of(entry.tuner)


def category_of(tuner: str) -> Category:
    """Return the category of a tuner by its name; its code is loaded only if it is built in."""
    if tuner not in TUNERS.builtin:
        return "online"
    try:
        found = TUNERS.load(tuner)
    except DcqcnGymError:  # an extra is missing here
        return "online"
    if issubclass(found, PretrainedTuner | PolicyTuner | AccTuner | AdviseTuner | KeeperTuner):
        return "pre-trained"
    return "static" if issubclass(found, StaticTuner) else "online"
