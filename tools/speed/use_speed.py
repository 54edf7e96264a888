"""What a user waits for: answers of the command line, a step of ``fake``, a page, set-up."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
Figure = tuple[str, float, str]
"""What, the figure, and what was asked of it."""


def command_cpu_s(words: list[str], repeats: int) -> float:
    """Return the median CPU seconds of a command of this environment; bytecode is there."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [str(Path(sys.executable).parent / "dcqcn-gym"), *words]
    times = []
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(times[1:])


def fake_step_us(steps: int = 2000) -> float:
    """Return CPU microseconds of a step of the environment on the backend ``fake``, unwrapped."""
    from dcqcn_gym.envs.dcqcn import DcqcnEnv

    env = DcqcnEnv("mini-fb-hadoop", "fake", intervals=steps + 100)
    env.reset(seed=1)
    action = env.action_space.sample()
    for _ in range(100):
        env.step(action)
    begin = time.process_time()
    for _ in range(steps):
        env.step(action)
    return (time.process_time() - begin) / steps * 1e6


def pages_s(repeats: int) -> list[Figure]:
    """Return seconds from opening a page to its load event and first frame, in Chromium."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "pages")]
    from browser import browser, found, show

    from dcqcn_gym.extras.workbench.page import write_workbench
    from dcqcn_gym.report import build_report
    from synthetic_run import write_run

    if not found():
        return []
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        report = build_report(write_run(Path(folder, "run"), intervals=1000, seeds=5))
        for n in range(100):
            best = {"scenario": "mini", "tuner": "tpe", "seed": n, "intervals": 60}
            Path(folder, "runs", f"{n}").mkdir(parents=True)
            Path(folder, "runs", f"{n}", "best.json").write_text(json.dumps(best))
        pages = {
            "report of 1,000 intervals": Path(report),
            "workbench over 100 runs": write_workbench(Path(folder, "runs"))[0],
        }
        found_s = []
        for name, page in pages.items():
            times = []
            for _ in range(repeats):
                show(driver, page)
                times.append(float(driver.execute_async_script(_DRAWN)) * 1e-3)
            found_s.append((f"{name}, drawn, s", median(times), "1"))
    return found_s


_DRAWN = """
const done = arguments[arguments.length - 1];
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
"""
"""Milliseconds since the page was asked for, once its first frame is drawn."""


def setup_mb() -> float:
    """Return the megabytes of packages that ``make tune`` downloads for its set-up."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        import tomllib

        said = tomllib.load(file)
    needs = [*said["build-system"]["requires"], *said["project"]["dependencies"], "cmake>=3.20"]
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-qq", "--no-cache-dir", "-d", folder]
        subprocess.run([*pip, *needs, "ninja>=1.11"], check=True)
        return sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6


def use_figures(repeats: int) -> list[Figure]:
    """Return every figure, with what was asked."""
    return [
        ("dcqcn-gym --help, CPU s", command_cpu_s(["--help"], repeats), "0.3"),
        ("dcqcn-gym --version, CPU s", command_cpu_s(["--version"], repeats), ""),
        ("a step of fake, CPU us", median(fake_step_us() for _ in range(repeats)), "100"),
        *pages_s(repeats),
        ("packages of make tune, MB", setup_mb(), "60"),
    ]
