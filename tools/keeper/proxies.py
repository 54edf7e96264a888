"""``python tools/keeper/proxies.py FILE``: by which figure that hardware shows should a race judge?

Every setting of the portfolio is held for 60 intervals on 26 scenarios of a draw of the generator
of suites, two seeds, beside the default on the same traffic. A proxy is a sum of logarithms of
figures of the intervals, less the default's. Its Spearman rank correlation with S (negated: less is
better) is measured over all pairs (scenario, setting, seed) of the second draw; the weights of
`learned` are fitted on the first. *Whole*: both over the same window. *Blocks*: as in a race, three
intervals of the setting after one that is not judged, then three of the default's after one, six
times; switching itself is not modelled. 95 % intervals: bootstrap over scenarios. Salts, seeds,
proxies and this rule stood before the first run (three scenarios of another pair of salts showed
that it runs). About six CPU minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from portfolio import drawn

from dcqcn_gym.benchmarks.leaderboard.bank.portfolio import portfolio
from dcqcn_gym.core.interval import FloatArray, IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.verdict import scores
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate

FITTED_ON, JUDGED_ON = "proxies-2-fitted", "proxies-2-judged"
SEEDS, INTERVALS, RESAMPLES, RIDGE = (1, 2), 60, 999, 1.0
TURN = np.arange(INTERVALS - INTERVALS % 8) % 8
OURS, THEIRS = np.flatnonzero((TURN > 0) & (TURN < 4)), np.flatnonzero(TURN > 4)

FIGURES = ("flows", "seen", "pairs", "rtt", "weighed rtt", "bytes", "done", "mice", "middle",
           "elephants", "busiest", "pause")  # fmt: skip
"""Of an interval: flows under way (the simulator's), those that the monitor saw, pairs of hosts
with round trips, the mean pair's round trip over its base, the same by packets, bytes sent, flows
that were finished (the simulator's, a count of completions on NICs), the monitor's flows below
64 KiB, to 1 MiB and above, the longest queue (in us), the paused share."""

PROXIES: Mapping[str, Mapping[str, float]] = {
    "flows + rtt": {"flows": 1, "rtt": 1},
    "seen + rtt": {"seen": 1, "rtt": 1},
    "pairs + rtt": {"pairs": 1, "rtt": 1},
    "rtt": {"rtt": 1},
    "flows": {"flows": 1},
    "seen": {"seen": 1},
    "flows + weighed rtt": {"flows": 1, "weighed rtt": 1},
    "flows + rtt - bytes": {"flows": 1, "rtt": 1, "bytes": -1},
    "seen + rtt - bytes": {"seen": 1, "rtt": 1, "bytes": -1},
    "flows - done (Little)": {"flows": 1, "done": -1},
    "flows + rtt - done": {"flows": 1, "rtt": 1, "done": -1},
    "size-binned + rtt": {"mice": 1 / 3, "middle": 1 / 3, "elephants": 1 / 3, "rtt": 1},
    "size-binned": {"mice": 1 / 3, "middle": 1 / 3, "elephants": 1 / 3},
    "size-binned + rtt - bytes": {
        "mice": 1 / 3, "middle": 1 / 3, "elephants": 1 / 3, "rtt": 1, "bytes": -1
    },
    "size-binned + rtt - done": {
        "mice": 1 / 3, "middle": 1 / 3, "elephants": 1 / 3, "rtt": 1, "done": -1
    },
}  # fmt: skip
VISIBLE = ("seen", "pairs", "rtt", "weighed rtt", "bytes", "mice", "middle", "elephants", "busiest",
           "pause")  # fmt: skip
"""What devices and the monitor show: what `learned` weighs."""


def figures(report: IntervalReport) -> list[float]:
    """Return :data:`FIGURES` of an interval."""
    sampled, bins = report.rtt_count > 0, report.fsd.bins
    trips = report.rtt_sum_ps[sampled] / report.rtt_base_ps[sampled]
    count = report.rtt_count[sampled]
    running = report.port_rate_bps > 0
    queues = report.port_max_queue_bytes[running] * 8e6 / report.port_rate_bps[running]
    return [
        report.active_flows, float(bins.sum()), float(sampled.sum()),
        float((trips / count).mean()) if count.size else 1.0,
        float(trips.sum() / count.sum()) if count.size else 1.0,
        float(report.host_tx_bytes.sum()), float(report.finished.bytes.size),
        float(bins[:6].sum()), float(bins[6:10].sum()), float(bins[10:].sum()),
        float(queues.max()), float(report.paused_ps.mean()) / report.duration_ps,
    ]  # fmt: skip


@dataclass(frozen=True)
class Pairs:
    """All pairs of a draw: log ratios of figures, of shape (pairs, figures), S and the scenario."""

    whole: FloatArray
    blocks: FloatArray
    s: FloatArray
    scenario: FloatArray


def series(scenario: Scenario, setting: Setting, seed: int) -> FloatArray:
    """Return the figures of a held setting, of shape (intervals, figures)."""
    env = DcqcnEnv(scenario, "native", intervals=INTERVALS)
    env.reset(seed=seed)
    found = [figures(env.run_interval(setting).report) for _ in range(INTERVALS)]
    env.close()
    return np.array(found)


def change(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """Return the logarithm of the ratio of means; pause in points, small counts smoothed."""
    a, b = ours.mean(axis=0), theirs.mean(axis=0)
    found = np.log((a + 0.1) / (b + 0.1))
    found[FIGURES.index("pause")] = 100 * (a[-1] - b[-1])
    return np.asarray(found)


def pairs(salt: str) -> Pairs:
    """Measure a draw."""
    rows: list[tuple[FloatArray, FloatArray, float, int]] = []
    for at, scenario in enumerate(drawn(salt)):
        default = scenario.default_setting()
        some = portfolio(facts_of(scenario), default)
        runs = [r for (r,) in evaluate([c.setting for c in some], [scenario], SEEDS, INTERVALS, 1)]
        for k, seed in enumerate(SEEDS):
            base, *others = [series(scenario, one.setting, seed) for one in some]
            for ours, run in zip(others, runs[1:], strict=True):
                s = scores(run[k : k + 1], runs[0][k : k + 1])
                if s.n and np.isfinite(s.mean):
                    rows.append((change(ours, base), change(ours[OURS], base[THEIRS]), s.mean, at))
    whole, blocks, values, places = zip(*rows, strict=True)
    return Pairs(np.array(whole), np.array(blocks), np.array(values), np.array(places, dtype=float))


def weights_of(proxy: Mapping[str, float]) -> FloatArray:
    """Return a proxy as one weight per figure."""
    return np.array([proxy.get(name, 0.0) for name in FIGURES])


def learned(on: Pairs) -> FloatArray:
    """Return ridge weights of visible figures by which blocks tell -S."""
    places = [FIGURES.index(name) for name in VISIBLE]
    x = on.blocks[:, places]
    scale = np.maximum(x.std(axis=0), 1e-9)
    z = x / scale
    found = np.zeros(len(FIGURES))
    gram = z.T @ z + RIDGE * np.eye(len(places))
    found[places] = np.linalg.solve(gram, z.T @ -on.s) / scale
    return found


def _ranks(values: FloatArray) -> FloatArray:
    """Return ranks; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((count.cumsum() - (count - 1) / 2)[place])


def _spearman(x: FloatArray, y: FloatArray) -> float:
    return float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])


def correlation(x: FloatArray, s: FloatArray, scenario: FloatArray) -> str:
    """Return the rank correlation of less with more, and its interval over scenarios."""
    names = np.unique(scenario)
    rows = {name: np.flatnonzero(scenario == name) for name in names}
    draws = np.random.default_rng(1)
    some = []
    for _ in range(RESAMPLES):
        at = np.concatenate([rows[name] for name in draws.choice(names, names.size)])
        some.append(_spearman(-x[at], s[at]))
    low, high = np.percentile(some, [2.5, 97.5])
    return f"{_spearman(-x, s):+.2f} [{low:+.2f}, {high:+.2f}]"


def _line(name: str, weights: FloatArray, on: Pairs) -> str:
    whole, blocks = on.whole @ weights, on.blocks @ weights
    clear = np.abs(on.s) > 0.05
    right = float((np.sign(-blocks[clear]) == np.sign(on.s[clear])).mean())
    cells = (correlation(whole, on.s, on.scenario), correlation(blocks, on.s, on.scenario))
    return f"| {name} | {' | '.join(cells)} | {100 * right:.0f} % |"


def main() -> None:
    """Print the table, and write it to the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    began = time.process_time()
    first, second = pairs(FITTED_ON), pairs(JUDGED_ON)
    weights: Sequence[tuple[str, FloatArray]] = [
        *((name, weights_of(proxy)) for name, proxy in PROXIES.items()),
        ("learned", learned(first)),
    ]
    found = zip(FIGURES, weights[-1][1], strict=True)
    lines = [
        f"| proxy, {second.s.size} pairs | whole | blocks | sign right where abs S > 0.05 |",
        "|---|---|---|---|",
        *(_line(name, one, second) for name, one in weights),
        "",
        "learned: " + ", ".join(f"{n} {w:+.3g}" for n, w in found if w),
        "",
    ]  # fmt: skip
    text = "\n".join(lines)
    print(text)
    options.file.write_text(text, encoding="utf-8")
    print(f"{time.process_time() - began:.0f} CPU seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
