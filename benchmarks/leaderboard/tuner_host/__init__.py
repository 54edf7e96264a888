"""Plug-in tuners in a process of their own, at the other end of one pipe.

:mod:`.protocol` is what goes over the pipe and :mod:`.values` how settings and measurements are
written there; :mod:`.server` is the program at the far end, :mod:`.process` the near end,
:mod:`.tuner` what the main path sees of it, :mod:`.plugins` says who has a process of its own, and
:mod:`.enclosure` is the sandbox around the far end. docs/tuner-host.md is the protocol for people.
"""

from __future__ import annotations

from dcqcn_gym.benchmarks.leaderboard.tuner_host.enclosure import Enclosure, sandbox_problem
from dcqcn_gym.benchmarks.leaderboard.tuner_host.plugins import plugins_of
from dcqcn_gym.benchmarks.leaderboard.tuner_host.tuner import Hosting, described, guarded_tuner

__all__ = [
    "Enclosure",
    "Hosting",
    "described",
    "guarded_tuner",
    "plugins_of",
    "sandbox_problem",
]
