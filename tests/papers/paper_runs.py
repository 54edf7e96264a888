"""Running figures of papers in tests: by the command, and in this process."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dcqcn_gym.benchmarks.papers.figure import Figure
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.results import produce


def command(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    every = [sys.executable, "-m", "dcqcn_gym", "paper", *words]
    return subprocess.run(every, capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


def smoke(figure: Figure, folder: Path) -> FigureResults:
    """Run a figure in this process, where it starts at once."""
    with ThreadPoolExecutor(1) as pool:
        return produce(figure, "smoke", folder, executor=pool)
