"""Mutated scenario files and tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz_harness import damage

from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.scenario.tables import read_cdf, read_flows

_GOOD = Path(__file__).parents[1] / "schemas" / "good"
_SCENARIOS = [
    path.read_text(encoding="utf-8")
    for path in sorted([*(CONFIGS / "scenarios").glob("mini*.toml"), *_GOOD.glob("*.toml")])
]
_TABLES = [p.read_text(encoding="utf-8") for p in sorted((CONFIGS / "workloads").glob("*.csv"))]
_VALUES = (
    "true", "false", "-1", "0", "1e308", "5e-324", "inf", "nan", '"x"', '""', "[]", "[1, 2]", "{}",
    "9223372036854775807", "9223372036854775808", "1" * 401, "1" * 5001, "[" * 3000, '"[/x]"',
    '"../../escape"', '"/dev/zero"', '"/"', '"\\u001b[31m"', "1979-05-27", "{a = 1, a = 2}",
    "[[0, 1, 9223372036854775807]]", "[[0, 1]]", '"<b>"', "65536", "[3, 3]", "0x" + "f" * 300,
)  # fmt: skip


def toml(random: Random, folder: Path) -> None:
    """A scenario file with a few lines changed."""
    text = random.choice(_SCENARIOS)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        text = _change(random, text)
    data = text.encode()
    if random.random() < 0.1:
        data = damage(random, data)
    if random.random() < 0.05:
        data = b"\xef\xbb\xbf" + data
    path = folder / "mine.toml"
    path.write_bytes(data)
    scenario = load_scenario(path)
    if scenario.n_hosts <= 2000:
        compile_scenario(scenario)


def _change(random: Random, text: str) -> str:
    lines = text.split("\n")
    at = random.randrange(len(lines))
    key, equals, _ = lines[at].partition("=")
    how = random.randrange(6)
    if how <= 2 and equals:
        lines[at] = f"{key}= {random.choice(_VALUES)}"
    elif how == 3:
        lines.insert(random.randrange(len(lines)), lines[at])
    elif how == 4:
        del lines[at]
    else:
        word = random.choice(("x", "name", "initial", "a.b.c", "lossless", "k" * 300, '"\\u001b"'))
        lines.insert(at, f"{word} = {random.choice(_VALUES)}")
    return "\n".join(lines)


_CELLS = (
    "", "-1", "0", "1", "x", "nan", "inf", "1e400", "9" * 400, "9" * 5001, "2.5", "1_000", " 7 ",
    "0x10", "\x1b[31m", "١٢", "1e18", "9223372036854775808", '"1"', "#",
)  # fmt: skip


def csv(random: Random, folder: Path) -> None:
    """A table of flow sizes or of flows with odd cells, rows and bytes."""
    path = folder / "table.csv"
    if random.random() < 0.5:
        text = random.choice(_TABLES)
        read: Callable[[Path], object] = read_cdf
    else:
        rows = [f"{random.randrange(8)},{8 + random.randrange(8)},{10**i},{i}" for i in range(9)]
        text, read = "\n".join(["src,dst,bytes,start_ns", *rows]), read_flows
    lines = text.split("\n")
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(lines))
        cells = lines[at].split(",")
        cells[random.randrange(len(cells))] = random.choice(_CELLS)
        lines[at] = ",".join(cells + ["1"] * (random.random() < 0.1))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    path.write_bytes(damage(random, data) if random.random() < 0.3 else data)
    read(path)
