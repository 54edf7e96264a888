"""NVUE and Junos: trials end in the switch, against stand-ins of their programs and libraries.

Nobody recorded either from a switch. NVUE's stand-in plays the program ``nv``; Junos's plays PyEZ's
connection below NAPALM's own driver, which runs for real.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.core.knobs import ECN_KNOBS
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.driver_case import DriverCase
from dcqcn_gym.hw.drivers import Driver, Surroundings, Targets, make_driver
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.transaction import Guard

OPERATOR = Who("controller", "test")
TRIED: Targets = {"": {"kmin": 300.0, "kmax": 1200.0, "pmax": 0.2}}


@dataclass
class Commits:
    """What both stand-ins have: lines in force, those before a commit that waits, and its end."""

    running: list[str]
    before: list[str] | None = None
    until: float = 0.0
    seconds: list[int | None] = field(default_factory=list)
    """Of every commit."""
    ended: list[str] = field(default_factory=list)

    def commit(self, lines: list[str], seconds: int | None) -> None:
        """Put lines in force, for some seconds or for good."""
        self.look()
        self.seconds.append(seconds)
        if self.before is not None:
            raise ValueError("a commit waits to be confirmed")
        if seconds is not None:
            self.before, self.until = self.running, time.monotonic() + seconds
        self.running = lines

    def look(self) -> None:
        """Go back if the time of a commit is over, as the switch does by itself."""
        if self.before is not None and time.monotonic() >= self.until:
            self.end("timed out", back=True)

    def end(self, how: str, *, back: bool) -> None:
        """End the commit that waits."""
        if self.before is None:
            raise ValueError("no commit waits")
        self.running = self.before if back else self.running
        self.before = None
        self.ended.append(how)


class NvStandIn:
    """The program ``nv``, as NVIDIA's NVUE reference has its commands."""

    def __init__(self) -> None:
        own = "nv set qos congestion-control default-global traffic-class 3 "
        words = ("min-threshold 150000", "max-threshold 1500000", "probability 10", "ecn enable")
        self.commits = Commits([own + word for word in words])
        self.pending: list[str] = []
        self.refuse = ""

    def run(self, program: str, *arguments: str) -> str:
        """Carry out a command."""
        assert program == "nv"
        try:
            return self._run(" ".join(arguments))
        except ValueError as error:
            raise DeviceError(f"`nv {' '.join(arguments)}` ended with 1: {error}") from None

    def _run(self, said: str) -> str:
        self.commits.look()
        if said == "config show -o commands":
            return "\n".join(["nv set system hostname leaf", *self.commits.running])
        if said.startswith("set "):
            self.pending.append(f"nv {said}")
        elif said == "config detach":
            self.pending = []
        elif said == "config apply --confirm-yes":
            self.commits.end("confirmed", back=False)
        elif said == "config apply --confirm-no":
            self.commits.end("aborted", back=True)
        elif match := re.fullmatch(r"config apply(?: --confirm (\d+)s)? -y", said):
            if self.refuse:
                raise ValueError(self.refuse)
            fields = {line.rpartition(" ")[0]: line for line in self.commits.running}
            fields |= {line.rpartition(" ")[0]: line for line in self.pending}
            self.pending = []
            self.commits.commit(list(fields.values()), int(match[1]) if match[1] else None)
        else:
            raise ValueError("unknown command")
        return ""


BUFFER = 15_000_000


class JunosStandIn:
    """PyEZ's ``Device`` and its ``Config``: configuration in set lines, and confirmed commits."""

    def __init__(self) -> None:
        levels = ("fill-level 1", "fill-level 10", "drop-probability 0", "drop-probability 10")
        cos = "set class-of-service"
        self.commits = Commits([
            f"{cos} schedulers RDMA drop-profile-map loss-priority any protocol any drop-profile P",
            f"{cos} schedulers RDMA explicit-congestion-notification",
            *(f"{cos} drop-profiles P interpolate {level}" for level in levels),
        ])  # fmt: skip
        self.history: list[list[str]] = []
        self.candidate: list[str] = []
        self.verified: list[bool] = []
        transport = SimpleNamespace(set_keepalive=lambda seconds: None)
        self._conn = SimpleNamespace(_session=SimpleNamespace(transport=transport))
        self.rpc = SimpleNamespace(get_config=self._get)
        self.timeout = 0

    def __call__(self, host: str, **more: Any) -> JunosStandIn:
        """Return the connection that NAPALM makes."""
        assert more["ssh_private_key_file"]
        return self

    def open(self, auto_probe: int) -> None:
        """Open it."""
        self.verified.append(vars(self).get("_hostkey_verify", False))

    def bind(self, cu: type) -> None:
        """Bind the configuration, which is played here too."""
        self.cu = self

    def close(self) -> None:
        """Close it."""

    def _get(self, filter_xml: object, options: dict[str, str]) -> Any:
        assert options["format"] == "set"
        self.commits.look()
        return SimpleNamespace(text="\n".join(self.commits.running))

    def lock(self) -> None:
        """Lock the candidate."""
        self.candidate = list(self.commits.running)

    def unlock(self) -> None:
        """Unlock it."""

    def load(self, config: str, format: str, **more: object) -> None:
        """Take lines: deletions, and lists in brackets as one line each."""
        assert format == "set"
        for line in config.splitlines():
            if line.startswith("delete "):
                gone = line.replace("delete ", "set ", 1)
                self.candidate = [x for x in self.candidate if not x.startswith(gone)]
            elif match := re.fullmatch(r"(set .*) \[ (.*) \]", line):
                self.candidate += [f"{match[1]} {word}" for word in match[2].split()]

    def commit(self, confirm: int | None = None, **more: object) -> None:
        """Commit for some minutes, or for good; one that waits is confirmed by the next."""
        if self.commits.before is not None and not confirm:
            back = self.candidate == self.commits.before
            self.commits.end("aborted" if back else "confirmed", back=back)
            return
        self.commits.commit(self.candidate, confirm and confirm * 60)

    def rollback(self, rb_id: int, **more: object) -> None:
        """Load the configuration of before."""
        self.candidate = list(self.commits.before or self.commits.running)


Switch = tuple[Commits, Callable[[], Driver]]


@pytest.fixture
def nvue() -> Switch:
    stand_in = NvStandIn()
    around = Surroundings(runner=stand_in)
    settings = {"ports": ["swp1", "swp2"]}
    return stand_in.commits, lambda: make_driver("nvue", settings, around, "test")


@pytest.fixture
def junos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Switch]:
    pytest.importorskip("napalm", reason="the extra napalm is not installed")
    from napalm.junos import junos as library

    stand_in = JunosStandIn()
    monkeypatch.setattr(library, "Device", stand_in)
    waits = lambda self: {"1": 1} if stand_in.commits.before is not None else {}  # noqa: E731
    monkeypatch.setattr(library.JunOSDriver, "_get_pending_commits", waits)
    settings = {"host": "leaf", "username": "u", "key_file": "key", "scheduler": "RDMA",
                "profile": "P", "queue_bytes": BUFFER,
                "ports": ["et-0/0/1", "et-0/0/2"]}  # fmt: skip
    yield stand_in.commits, lambda: make_driver("junos", settings, Surroundings(), "test")
    assert set(stand_in.verified) <= {True}


@pytest.fixture(params=["nvue", "junos"])
def switch(request: pytest.FixtureRequest) -> Switch:
    found: Switch = request.getfixturevalue(request.param)
    return found


class TestCommitted(DriverCase):
    counts = False

    @pytest.fixture(autouse=True)
    def _switch(self, switch: Switch) -> None:
        self.new = switch[1]

    def new_driver(self) -> Driver:
        return self.new()

    def targets(self) -> Targets:
        return TRIED


def guard_of(switch: Switch, folder: Path) -> Guard:
    guard = Guard(switch[1](), Journal(folder / "journal"))
    guard.start()
    return guard


def tried(guard: Guard, name: str, seconds: float, targets: Targets = TRIED) -> None:
    guard.stage(name, targets, OPERATOR)
    guard.apply(name, seconds)


def test_a_trial_is_a_commit_that_ends_by_itself(switch: Switch, tmp_path: Path) -> None:
    commits, _ = switch
    usual = list(commits.running)
    guard = guard_of(switch, tmp_path)
    tried(guard, "c1", 30.0)
    assert commits.seconds == [60 if guard._driver.name == "junos" else 30]
    assert commits.running != usual
    commits.until = 0.0  # the agent is gone, and the time passes
    commits.look()
    assert (commits.running, commits.ended) == (usual, ["timed out"])
    again = guard_of(switch, tmp_path)
    assert again.status.state == "idle"


def test_a_confirmed_trial_stays_and_a_taken_back_one_is_aborted(
    switch: Switch, tmp_path: Path
) -> None:
    commits, _ = switch
    guard = guard_of(switch, tmp_path)
    tried(guard, "c1", 60.0)
    kept = list(commits.running)
    guard.confirm("c1", OPERATOR)
    tried(guard, "c2", 60.0, {"": {"kmin": 450.0}})
    guard.rollback(OPERATOR, "c2")
    assert (commits.running, commits.ended) == (kept, ["confirmed", "aborted"])


def test_steps_of_a_run_add_up(switch: Switch, tmp_path: Path) -> None:
    commits, _ = switch
    usual = list(commits.running)
    guard = guard_of(switch, tmp_path)
    for step, knob in enumerate(({"kmin": 300.0}, {"kmax": 900.0}, {"pmax": 0.5})):
        tried(guard, f"run:{step}", 60.0, {"": knob})
    whole = {"kmin": 300.0, "kmax": 900.0, "pmax": 0.5}
    assert all(knobs == whole for knobs in guard._driver.setting().values())
    assert commits.seconds == [3600] * 3
    guard.rollback(OPERATOR, "run")
    assert commits.running == usual


def test_a_switch_that_refuses_keeps_nothing(tmp_path: Path) -> None:
    stand_in = NvStandIn()
    make = lambda: make_driver(  # noqa: E731
        "nvue", {"ports": ["swp1"]}, Surroundings(runner=stand_in), "test"
    )
    guard = guard_of((stand_in.commits, make), tmp_path)
    stand_in.refuse = "invalid config"
    with pytest.raises(DeviceError, match="invalid config"):
        tried(guard, "c1", 60.0)
    stand_in.refuse = ""
    assert (stand_in.pending, stand_in.commits.seconds) == ([], [])
    assert guard.status.state == "idle"


def test_what_does_not_mark_is_refused(switch: Switch) -> None:
    commits, make = switch
    whole = list(commits.running)
    for gone, said in (("ecn enable", "does not mark"), ("notification", "does not mark"),
                       ("probability 10", "does not state probability|expected two"),
                       ("drop-profile P", "does not use drop profile P")):  # fmt: skip
        commits.running = [line for line in whole if not line.endswith(gone)]
        if commits.running != whole:
            with pytest.raises(DeviceError, match=said):
                make().knobs()
    commits.running = whole
    assert make().knobs() == ECN_KNOBS


def test_thresholds_of_junos_are_shares_of_the_buffer_that_its_file_states(junos: Switch) -> None:
    driver = junos[1]()
    lines = driver.diff(driver.read(), driver.stage(TRIED))
    assert [(x.place, x.before, x.after, x.unit) for x in lines] == [
        ("P/drop-probability", "10", "20", "%"), ("P/fill-level-high", "10", "8", "%"),
        ("P/fill-level-low", "1", "2", "%"),
    ]  # fmt: skip
    for wrong, said in (({"kmin": 10.0}, "0.07% of queue_bytes"), ({"kmax": 20e3}, "Junos takes"),
                        ({"kmin": 1500.0}, "both 10 % of queue_bytes")):  # fmt: skip
        with pytest.raises(DeviceError, match=said):
            driver.stage({"": wrong})
    with pytest.raises(ConfigError, match="queue_bytes"):
        make_driver("junos", {"host": "leaf", "username": "u", "key_file": "key",
                              "scheduler": "S", "profile": "P", "ports": ["et-0/0/1"]},
                    Surroundings(), "test")  # fmt: skip


def test_nvue_takes_a_probability_of_one_percent_or_more(nvue: Switch) -> None:
    with pytest.raises(ConfigError, match="pmax = 0 %; NVUE holds 1 to 100 %"):
        nvue[1]().stage({"": {"pmax": 0.0}})
