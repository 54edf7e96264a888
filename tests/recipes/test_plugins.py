"""Recipes of what a registry names: a tuner, a monitor, a driver and a backend."""

from __future__ import annotations

import pytest
from copied import Copy

pytestmark = pytest.mark.slow

MINI = "--scenario mini-fb-hadoop"


def register(tree: Copy, path: str, name: str, target: str) -> None:
    """Put a line into the table of built-ins of a file, as the last one."""
    table = tree.read(path).partition("\nBUILTIN")[2].partition("\n}\n")[0]
    line = table.splitlines()[-1]
    tree.change(path, line, f'{line}\n    "{name}": "{target}",')


CORNERS = {
    "RandomTuner": "CornersTuner",
    'name = "random"': 'name = "corners"',
    "self._random.uniform(-1.0, 1.0, space.n)": "self._random.choice((-1.0, 1.0), space.n)",
}


def test_a_tuner(tree: Copy) -> None:
    tree.copy("tuners/random_search.py", "tuners/corners.py", CORNERS)
    by_file = tree.tuned(
        f"{MINI} --tuner tuners/corners.py:CornersTuner --backend fake", "corners-file"
    )
    assert {line["setting"]["rp_gd"] for line in by_file} == {10, 13}  # ends of its tuned range
    register(tree, "tuners/__init__.py", "corners", "dcqcn_gym.tuners.corners:CornersTuner")
    assert "corners" in tree.run("dcqcn-gym tuners")
    by_name = tree.tuned(f"{MINI} --tuner corners --backend fake", "corners-name")
    assert [line["setting"] for line in by_name] == [line["setting"] for line in by_file]
    row = "| `random` | uniform"
    tree.change("docs/tuners.md", row, f"| `corners` | random corners of the box |\n{row}")
    tree.run("python tools/run_digests.py --write corners")
    changed = set(tree.read("tests/digests/runs.txt").splitlines())
    assert len([line for line in changed if " corners " in line]) == 3
    tree.check_named("a tuner")
    assert tree.test("tests/tuners/test_conformance.py", "-k 'TestCorners or corners'") > 12
    assert tree.test("tests/core/test_digests.py", "-k 'corners or every'") == 4
    assert tree.test("tests/tuners/test_tuners_page.py", "tests/core/test_registry.py") > 5
    others = ("runs/test_tuner_inside.py", "report/test_report_command.py")
    assert tree.test(*(f"tests/{name}" for name in others), "-k 'others_says or corners'") == 2


WINDOW = {
    "from dcqcn_gym.envs.backends import make_backend\n": "",
    "from dcqcn_gym.envs.scenario.monitor import monitor_of\n": "",
    "from dcqcn_gym.envs.scenario.scenario import load_scenario\n": "",
    "from pathlib import Path\n\n": "",
}
MONITOR_TEST = """
from dcqcn_gym.testing.monitor_case import MonitorCase

class TestWindow(MonitorCase):
    kind = "window"
"""


def test_a_monitor(tree: Copy) -> None:
    example = "examples/06_own_monitor.py"
    below = tree.read(example)[tree.read(example).index("\n# %% [markdown]\n# Watch") :]
    tree.copy(example, "envs/monitors/window.py", {below: "", **WINDOW})
    by_file = tree.tuned(f"{MINI} --monitor envs/monitors/window.py:Window", "window-file")
    register(tree, "envs/monitors/__init__.py", "window", "dcqcn_gym.envs.monitors.window:Window")
    by_name, exact = (tree.tuned(f"{MINI} --monitor {name}", name) for name in ("window", "exact"))
    assert [line["fsd"] for line in by_name] == [line["fsd"] for line in by_file]
    for own, engine in zip(by_name, exact, strict=True):
        assert own["fsd"]["elephants"] == engine["fsd"]["elephants"] > 0
    tree.check_named("a monitor")
    tree.add("tests/envs/test_window.py", MONITOR_TEST)
    assert tree.test("tests/envs/test_window.py") == 8


MST = {
    "MlxconfigDriver": "MstDriver",
    "MlxconfigSettings": "MstSettings",
    'name = "mlxconfig"': 'name = "mst"',
    'runner.run("mlxconfig"': 'runner.run("mstconfig"',
}
DRIVER_TEST = """
import pytest
from devices import DATA, NIC, PlayedMlxconfig
from dcqcn_gym.core.knobs import NIC_KNOBS, expert_setting
from dcqcn_gym.hw.drivers import Surroundings, make_driver
from dcqcn_gym.hw.driver_case import DriverCase

class Played(PlayedMlxconfig):
    def run(self, program, *arguments):
        return super().run({"mstconfig": "mlxconfig"}.get(program, "none"), *arguments)

class TestMst(DriverCase):
    counts = False

    @pytest.fixture(autouse=True, params=["older", "newer"])
    def _text(self, request):
        self.text = (DATA / f"mlxconfig-{request.param}.txt").read_text()

    def new_driver(self):
        around = Surroundings(runner=Played(self.text))
        return make_driver("mst", {"pci": NIC["pci"]}, around, "test")

    def targets(self):
        return {"": {name: expert_setting()[name] for name in NIC_KNOBS}}
"""


def test_a_driver(tree: Copy) -> None:
    tree.copy("hw/drivers/mlxconfig.py", "hw/drivers/mst.py", MST)
    register(tree, "hw/drivers/__init__.py", "mst", "dcqcn_gym.hw.drivers.mst:MstDriver")
    tree.change("hw/commands/app.py", "mlx5, mlxconfig,", "mlx5, mst, mlxconfig,")
    tree.check_named("a driver")
    tree.add("tests/hw/test_mst.py", DRIVER_TEST)
    assert tree.test("tests/hw/test_mst.py") > 15
    assert tree.test("tests/hw/test_commands.py", "-k names_every_driver") == 1


def test_a_backend(tree: Copy) -> None:
    toy = "envs/backends/thin.py"
    tree.copy("tests/envs/toy_backend.py", toy, {"ToyBackend": "Thin", "ToyShare": "ThinShare"})
    by_file = tree.tuned(f"{MINI} --tuner random --backend {toy}:Thin", "thin-file")
    register(tree, "envs/backends/__init__.py", "thin", "dcqcn_gym.envs.backends.thin:Thin")
    by_name = tree.tuned(f"{MINI} --tuner random --backend thin", "thin-name")
    assert by_name == by_file
    tree.change("docs/environment.md", '`"fake"` (a toy,', '`"thin"`, `"fake"` (a toy,')
    tree.change(
        "docs/reference/glossary.md", "a toy in closed form (`fake`)", "toys (`fake`, `thin`)"
    )
    tree.check_named("a backend")
    assert tree.test("tests/envs/test_backends.py", "-k 'TestEveryBackend and thin'") > 12
    assert tree.test("tests/package/test_docs.py", "-k every_backend") == 2
    assert tree.test("tests/envs/test_own_backend.py", "-k entry_point") > 1
