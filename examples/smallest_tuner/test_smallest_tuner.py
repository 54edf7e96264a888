"""The tuner's test: the conformance kit checks legality, determinism, pacing and resume."""

from pathlib import Path

from dcqcn_gym.testing.tuner_case import TunerCase


class TestNudge(TunerCase):
    """Every inherited test runs on the tuner of this folder."""

    tuner = f"{Path(__file__).with_name('smallest_tuner.py')}:Nudge"
