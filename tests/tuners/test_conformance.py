"""Registered means tested: the kit runs on every tuner of the registry."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import knob_table, schemes
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.testing.tuner_case import TunerCase
from dcqcn_gym.tuners import TUNERS

NEEDS_PACKAGE: Mapping[str, str] = {
    "tpe": "optuna",
    "cmaes": "cmaes",
    "cmaes-tiers": "cmaes",
    "nsga2": "optuna",
    "qmc": "scipy",
    "gp": "torch",
    "cmaes-policy": "cmaes",
}

# the fake backend reports the ports of one switch, so agents of ports need a network that has one
ONE_SWITCH = ("acc", "acc-central", "two-sides")
ONE_SIDE = Path(__file__).parents[1] / "data" / "acc-one-side.npz"  # of eight decisions


class OneSwitchCase(TunerCase):
    def scenario(self, **changes: Any) -> Scenario:
        topology = {"kind": "single-switch", "hosts": 6, "gbps": 25}
        workloads = [{"kind": "permutation", "bytes": 100_000}]
        base = {"name": "one-switch", "topology": topology, "workloads": workloads,
                "scheme": self.scheme}  # fmt: skip
        return Scenario.model_validate(base).model_copy(update=changes)


for _name in TUNERS.names():
    _title = "Test" + "".join(part.capitalize() for part in _name.split("-"))
    _arguments = {"file": str(ONE_SIDE)} if _name == "acc-central" else {}
    _kit = OneSwitchCase if _name in ONE_SWITCH else TunerCase
    _case = type(_title, (_kit,), {"tuner": _name, "arguments": _arguments})
    _package = NEEDS_PACKAGE.get(_name)
    if _package is not None and importlib.util.find_spec(_package) is None:
        _case = pytest.mark.skip(f"{_package} is not installed")(_case)
    globals()[_title] = _case


TIED_TO_DCQCN: Mapping[str, str] = {
    **dict.fromkeys(("pretrained-alltoall", "pretrained-fbhadoop"), "'dcqcn', not of '{scheme}'"),
    **dict.fromkeys(
        ("policy", "ppo-mini", "sac-mini", "td3-mini", "dqn-mini"),
        "was trained for the knob table of scheme 'dcqcn' .*scheme '{scheme}'",
    ),
}
"""Tuners that hold knobs of DCQCN: on another scheme they say so in one sentence."""


@pytest.mark.parametrize("scheme", [name for name in schemes() if name != "dcqcn"])
@pytest.mark.parametrize("tuner", TUNERS.names())
def test_every_tuner_on_the_knobs_of_every_scheme(tuner: str, scheme: str, tmp_path: Path) -> None:
    package = NEEDS_PACKAGE.get(tuner)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    kit = OneSwitchCase if tuner in ONE_SWITCH else TunerCase
    arguments = {"file": str(ONE_SIDE)} if tuner == "acc-central" else {}
    own = {"tuner": tuner, "scheme": scheme, "intervals": 12, "arguments": arguments}
    case = type("Case", (kit,), own)()
    if tuner in TIED_TO_DCQCN:
        with pytest.raises(ConfigError, match=TIED_TO_DCQCN[tuner].format(scheme=scheme)):
            case.test_every_proposal_is_legal_to_the_end(tmp_path)
        return
    case.test_every_proposal_is_legal_to_the_end(tmp_path)
    first = read_run(tmp_path / "run.jsonl").intervals[-1]["setting"]
    for setting in first.values() if "cluster" in first else [first]:
        assert list(setting) == list(knob_table(scheme).knobs)


class TestParaleonFromBest(TunerCase):
    tuner = "paraleon"
    arguments = {"mutate_from": "best", "iterations": "3"}  # noqa: RUF012


class TestPerGroupOfUplinks(TunerCase):
    tuner = "per-group"
    arguments = {"tuner": "chameleon", "groups": ["tor-uplinks", "switch:18"]}  # noqa: RUF012


class TestThirdParty:
    """A file of one's own passes the same kit."""

    SOURCE = """
from dcqcn_gym.tuners import Tuner

class Stepper(Tuner):
    name = "stepper"
    summary = "raises the additive step by one unit each time"

    def ask(self):
        if self.best_setting is None:
            return self.context.base
        value = self.best_setting["rp_ai_rate"] + 1
        return self.best_setting.replace({"rp_ai_rate": value})
"""

    def test_passes(self, tmp_path: Path) -> None:
        path = tmp_path / "stepper.py"
        path.write_text(self.SOURCE)
        case = type("Case", (TunerCase,), {"tuner": f"{path}:Stepper"})()
        for name in [n for n in dir(case) if n.startswith("test_")]:
            folder = tmp_path / name
            folder.mkdir()
            method = getattr(case, name)
            method(folder) if "tmp_path" in method.__annotations__ else method()


def test_a_tuner_that_uses_hidden_randomness_fails_the_kit(tmp_path: Path) -> None:
    path = tmp_path / "hidden.py"
    path.write_text(
        "import random\n"
        "from dcqcn_gym.tuners import Tuner\n"
        "class Hidden(Tuner):\n"
        "    name = 'hidden'\n    summary = 'draws from the module'\n"
        "    def ask(self):\n"
        "        return self.context.base.replace({'rp_ai_rate': random.randint(1, 500)})\n"
    )
    case = type("Case", (TunerCase,), {"tuner": f"{path}:Hidden"})()
    with pytest.raises(AssertionError):
        case.test_same_seed_same_bytes(tmp_path)
