"""Mutated logs and timings of a run: read, continued, and made into a page."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzz_harness import ODD, damage

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report import build_report
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.recorded import check_same
from dcqcn_gym.runs.spec import RunSpec

SPEC = RunSpec(load_scenario("mini-fb-hadoop"), "random", 1, 3)  # native: it tells unfinished flows


@cache
def _whole() -> Path:
    """A run directory with everything in it, made once."""
    root = Path(tempfile.mkdtemp(prefix="fuzz-run-"))
    for folder in ("reference", "evaluation"):
        (root / folder).mkdir()
    run(SPEC, root / "run.jsonl")
    for name in ("default", "expert"):
        shutil.copy(root / "run.jsonl", root / "reference" / f"{name}.jsonl")
    for name in ("default", "expert", "recommended"):
        shutil.copy(root / "run.jsonl", root / "evaluation" / f"{name}-seed7.jsonl")
    (root / "timing.json").write_text('{"run": {"wall_s": 1.0, "cpu_s": 2.0}}')
    return root


def logs(random: Random, folder: Path) -> None:
    """One file of a run directory changed in one or two places."""
    root = folder / "run"
    shutil.copytree(_whole(), root)
    path = random.choice([*root.rglob("*.jsonl"), root / "run.jsonl", root / "timing.json"])
    path.write_bytes(_changed(random, path.read_bytes()))
    try:
        build_report(root)
    except RunError:
        assert not list(root.glob("report.html*"))
        if path.name == "timing.json":
            raise AssertionError("timing.json must never stop a page") from None
    recorded = read_run(root / "run.jsonl")
    check_same(recorded, SPEC)
    if not recorded.complete:
        run(SPEC, root / "run.jsonl", replay=recorded)


def _changed(random: Random, data: bytes) -> bytes:
    if random.random() < 0.25:
        return damage(random, data)
    lines = data.split(b"\n")
    at = random.randrange(len(lines) - 1) if len(lines) > 1 else 0
    how = random.randrange(8)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(at, lines[at])
    elif how == 2:
        lines[at] = b"[" * 100_000 + b"]" * 100_000
    else:
        lines[at] = _encode(_odd(random, json.loads(lines[at])))
    if random.random() < 0.3:  # no end: the run is continued
        lines = [*lines[:-2], b""]
    return b"\n".join(lines)


def _encode(value: Any) -> bytes:
    return json.dumps(value, default=str).encode()


def _odd(random: Random, value: Any) -> Any:
    """Return the value with one place in it replaced, removed or added."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        how = random.randrange(6)
        if how == 0:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _odd(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.7:
        at = random.randrange(len(value))
        if random.random() < 0.3:
            return value[:at]
        return [*value[:at], _odd(random, value[at]), *value[at + 1 :]]
    odd = [v for v in ODD if not isinstance(v, bytes | complex)]
    return random.choice(odd)
