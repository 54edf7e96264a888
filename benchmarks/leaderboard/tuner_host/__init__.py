"""Plug-in tuners in a process of their own, at the other end of one pipe.

:mod:`.protocol` is what goes over the pipe and :mod:`.values` how settings and measurements are
written there; :mod:`.server` is the program at the far end, :mod:`.process` the near end,
:mod:`.tuner` what :mod:`dcqcn_gym.runs.plugin_host` loads, and :mod:`.enclosure` is the sandbox
around the far end. docs/tuner-authors.md is the protocol for people.
"""

from __future__ import annotations

from dcqcn_gym.benchmarks.leaderboard.tuner_host.enclosure import Enclosure, sandbox_problem

__all__ = ["Enclosure", "sandbox_problem"]
