# %% [markdown]
"""
# A tuner of your own

A hill climber in twenty lines, run, logged and read back. From the command line the same file is a
tuner too:
`dcqcn-gym tune --scenario mini-fb-hadoop --tuner examples/03_own_tuner.py:HillClimber --out DIR`.
Run it: `python examples/03_own_tuner.py`, or open it as a notebook in its own folder (jupytext's
percent format).
"""

# %%
from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.base import Tuner, TunerContext


# %%
class HillClimber(Tuner):
    """Steps at random from the best setting so far; recommends that one."""

    name = "hill-climber"
    summary = "random steps from the best setting so far"

    def start(self, context: TunerContext) -> None:
        """Begin at the setting in force."""
        super().start(context)
        self._random = context.generator()
        self._first = True

    def ask(self) -> Setting:
        """Return the base once, then neighbours of the best setting."""
        space, best = self.context.space, self.recommend()
        if self._first:
            self._first = False
            return best
        step = self._random.normal(0.0, 0.2, space.n)
        return space.setting((space.encode(best) + step).clip(-1.0, 1.0), best)


# %% [markdown]
# Tune for 30 intervals and print what the log says. A tuner is named by its file, which a notebook
# does not know of itself.

# %%
if __name__ == "__main__":
    tuner = f"{Path(globals().get('__file__', '03_own_tuner.py')).resolve()}:HillClimber"
    spec = RunSpec(load_scenario("mini-fb-hadoop"), tuner, seed=1, intervals=30)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(spec, log)
        recorded = read_run(log)
    utilities = [line["utility"] for line in recorded.intervals]
    print(f"first interval {utilities[0]:.4f}, best {max(utilities):.4f}")
    assert recorded.end is not None
    print("recommended:", {k: v for k, v in recorded.end["recommended"].items() if k[0] == "k"})
