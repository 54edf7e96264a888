"""Simulate one setting on one scenario, without a tuner, and what it leaves on disk.

The package can be called, so that ``dcqcn_gym.simulate(...)`` is its one function.
"""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from dcqcn_gym.simulate.run import simulate

__all__ = ["simulate"]


class _Package(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Mapping[str, Any]:
        return simulate(*arguments, **options)


sys.modules[__name__].__class__ = _Package
