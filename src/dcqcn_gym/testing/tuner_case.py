"""The conformance kit of tuners: subclass :class:`TunerCase`, name the tuner, run pytest.

.. code-block:: python

    from dcqcn_gym.testing.tuner_case import TunerCase

    class TestMyTuner(TunerCase):
        tuner = "my-tuner"  # a registered name, or "path/to/file.py:MyTuner"

Everything runs on the fake backend, in a second or two; all but one test in this process, so that
a debugger stops in the tuner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dcqcn_gym.core.capabilities import NEEDS
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.monitor import NoMonitor
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import TUNERS, Tuner, TunerSettings, make_tuner


class TunerCase:
    """What every tuner promises; ``arguments`` are its ``--tuner-arg`` values.

    ``scheme`` is the congestion control whose knobs it tunes.
    """

    tuner: ClassVar[str] = ""
    arguments: ClassVar[Mapping[str, Any]] = {}
    scheme: ClassVar[str] = "dcqcn"
    intervals: ClassVar[int] = 30

    def scenario(self, **changes: Any) -> Scenario:
        """Return the scenario of the tests, with some keys changed."""
        scenario = load_scenario("mini-fb-hadoop")
        if self.scheme != scenario.scheme.name:
            scenario = changed_scenario(scenario, {"scheme": self.scheme}, "scheme under test")
        return scenario.model_copy(update=changes)

    def spec(self, seed: int = 1, **changes: Any) -> RunSpec:
        """Return a run of the tuner under test, in this process."""
        scenario = self.scenario(**changes)
        arguments = dict(self.arguments)
        here = Hosting(apart=False)
        return RunSpec(scenario, self.tuner, seed, self.intervals, "fake", arguments, here)

    def log(self, path: Path, spec: RunSpec | None = None) -> Run:
        """Carry out a run and read its log."""
        run(spec or self.spec(), path)
        return read_run(path)

    def test_says_what_it_is(self) -> None:
        """Name, one-line summary, known needs, typed settings with descriptions."""
        found = TUNERS.load(self.tuner)
        assert issubclass(found, Tuner)
        assert found.name
        assert found.summary
        assert "\n" not in found.summary
        assert found.needs <= set(NEEDS)
        assert issubclass(found.Settings, TunerSettings)
        assert all(field.description for field in found.Settings.model_fields.values())

    def test_starts_and_recommends_without_any_outcome(self) -> None:
        """A legal setting can be deployed at any time after the start."""
        spec = self.spec()
        tuner = spec.make_tuner()
        env = spec.make_env()
        tuner.start(spec.context(env), env.backend.offers)
        tuner.recommend()
        env.close()

    def test_every_proposal_is_legal_to_the_end(self, tmp_path: Path) -> None:
        """The loop checks each proposal; the run reaches its end with a recommendation."""
        done = self.log(tmp_path / "run.jsonl")
        assert len(done.intervals) == self.intervals
        assert done.end is not None
        assert done.end["recommended"]

    def test_same_seed_same_bytes(self, tmp_path: Path) -> None:
        """Randomness comes from the context's seed alone."""
        for name in ("a", "b"):
            self.log(tmp_path / name)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_a_process_of_its_own_changes_no_byte(self, tmp_path: Path) -> None:
        """Where the commands run a plug-in, its log has the same bytes."""
        if self.tuner in TUNERS.builtin:  # the commands run those in their own process
            return
        self.log(tmp_path / "here")
        self.log(tmp_path / "apart", replace(self.spec(), hosting=Hosting(apart=True)))
        assert (tmp_path / "here").read_bytes() == (tmp_path / "apart").read_bytes()

    def test_two_runs_at_once_do_not_disturb_each_other(self) -> None:
        """Two tuners share nothing: asking one does not change what the other proposes."""
        spec = self.spec()
        context = spec.context(spec.make_env())
        alone, first, second = (make_tuner(self.tuner, dict(self.arguments)) for _ in range(3))
        for tuner in (alone, first, second):
            tuner.start(context)
        expected = alone.ask()
        assert first.ask() == expected
        assert second.ask() == expected

    def test_state_is_json(self) -> None:
        """``state`` can be logged and shown."""
        spec = self.spec()
        tuner = make_tuner(self.tuner, dict(self.arguments))
        tuner.start(spec.context(spec.make_env()))
        json.dumps(tuner.state(), allow_nan=False)

    def test_resumed_equals_uninterrupted(self, tmp_path: Path) -> None:
        """A log cut anywhere, continued, has the bytes of the whole one."""
        whole = tmp_path / "whole.jsonl"
        self.log(whole)
        data = whole.read_bytes()
        ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
        for cut in (ends[0], ends[self.intervals // 2] + 40, ends[-2]):
            part = tmp_path / f"cut{cut}.jsonl"
            part.write_bytes(data[:cut])
            run(self.spec(), part, replay=read_run(part))
            assert part.read_bytes() == data

    def test_runs_with_triggers_and_with_a_cadence(self, tmp_path: Path) -> None:
        """Both ways of pacing a tuner work with it."""
        self.log(tmp_path / "kl", self.spec(trigger="kl"))
        self.log(tmp_path / "cadence", self.spec(cadence=4))

    def test_runs_without_a_flow_size_distribution(self, tmp_path: Path) -> None:
        """A monitor that shows nothing is no reason to fail, but for one that needs what it shows.

        That one is refused at the start.
        """
        spec = self.spec(monitor=NoMonitor())
        if "fsd" not in TUNERS.load(self.tuner).needs:
            self.log(tmp_path / "none", spec)
            return
        with pytest.raises(ConfigError, match="needs to see the flow-size distribution"):
            spec.check()
