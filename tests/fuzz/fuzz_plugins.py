"""Tuners of strangers, and the settings that they and people propose."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from fuzz_harness import ODD

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.knobs import KNOBS, Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.simulation.run import parse_assignments
from dcqcn_gym.tuners import Tuner, TunerContext, make_tuner
from dcqcn_gym.tuners.guard import GuardedTuner

_SCENARIO = load_scenario("mini-fb-hadoop")
_BODIES = (
    "return None", "return self.context.base", "return 1 / 0", "raise SystemExit(0)",
    "raise BaseException('stop')", "raise GeneratorExit", "raise MemoryError", "return self",
    "return self.nobody", "return Setting((None,) * 20)", "return Setting(('x',) * 20)",
    "return Setting((float('nan'),) * 20)", "return Setting(tuple([10**400] * 20))",
    "return Setting((1j,) * 20)", "return Setting(None)", "return {'cluster': self.context.base}",
    "return {'cluster': self.context.base, 'tor': None}", "return {'cluster': 3}",
    "return {'cluster': self.context.base, '\\x1b[31m' * 99: self.context.base}",
    "return self.context.base.replace({'pmax': None})", "return {}", "return 7",
    "return self.ask()", "raise type('Odd', (BaseException,), {'__str__': lambda s: 1 / 0})()",
    "raise ValueError('\\x1b[31m[/x]\\n' * 200)", "return [self.context.base]",
    "return {'temperature': float('nan'), 3: object(), 'x': '\\x1b[31m'}", "return True",
)  # fmt: skip
_METHODS = (
    "def ask(self)", "def tell(self, outcome)", "def recommend(self)", "def state(self)",
    "def start(self, context)", "def __init__(self, settings=None)",
    "@property\n    def tuning(self)",
)  # fmt: skip
_ATTRIBUTES = (
    "needs = None", "needs = 5", "needs = {None, 'x'}", "needs = {'fsd'}", "Settings = None",
    "name = None", "summary = 3", "raise BaseException('x')", "import nothing_there", "x =",
    "needs = property(lambda self: 1 / 0)", "needs = ('per_switch',)", "Settings = 3",
)  # fmt: skip


def plugins(random: Random, folder: Path) -> None:
    """A tuner with one or two odd methods or attributes, run for four intervals."""
    lines = [
        "from dcqcn_gym.core.knobs import Setting",
        "from dcqcn_gym.tuners import Tuner",
        "class Odd(Tuner):",
        "    name = summary = 'odd'",
        "    def ask(self): return self.context.base",
    ]
    for _ in range(random.choice((1, 1, 2))):
        if random.random() < 0.25:
            lines.append(f"    {random.choice(_ATTRIBUTES)}")
        else:
            lines.append(f"    {random.choice(_METHODS)}: {random.choice(_BODIES)}")
    path = folder / "odd.py"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    apart = random.random() < 0.02  # a process of its own takes half a second to start
    spec = RunSpec(_SCENARIO, f"{path}:Odd", 1, 3, "fake", hosting=Hosting(apart=apart))
    spec.check()
    run(spec, folder / "run.jsonl", watch=lambda line, state, repeated: None)


class _Proposes(Tuner):
    def __init__(self, proposal: Any) -> None:
        super().__init__()
        self.proposal = proposal

    def ask(self) -> Any:
        return self.proposal


def settings(random: Random, folder: Path) -> None:
    """Odd values of knobs: proposed, on the command line, in a file, as a tuner's argument."""
    name = random.choice([*KNOBS, "RPG_AI_RATE", "kmim", "\x1b[31m", "x" * 500])
    odd = random.choice(ODD)
    base = default_setting()
    how = random.randrange(5)
    if how == 0:
        values = list(base.numbers)
        values[random.randrange(len(values))] = odd
        guarded = GuardedTuner("odd", _Proposes(Setting(tuple(values))))
        guarded.start(TunerContext(KnobSpace(), base, 1, 10))
        guarded.ask()
    elif how == 1:
        parse_assignments([f"{name}={odd}"], base, 100e9)
    elif how == 2:
        texts = [f"{random.choice(list(KNOBS))}={random.choice((1, 2, 'x'))}" for _ in range(9)]
        parse_assignments(texts, base, 100e9)
    elif how == 3:
        data = {**_SCENARIO.model_dump(mode="json"), "initial": {name: odd}}
        validate(data, Scenario, source="mine.toml")
    else:
        make_tuner("fixed", {name: odd})
