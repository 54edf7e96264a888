"""Whether a device still holds what was confirmed: a reset or a hand changes it without a word."""

from __future__ import annotations

from dcqcn_gym.hw.drivers.base import Driver, Values
from dcqcn_gym.hw.standing import said

DRIFT_S = 10.0
"""How often a device that nobody changes is held against its confirmed setting."""


class Drift:
    """What somebody else changed on one device, in words; empty text if nothing is known of it."""

    def __init__(self, driver: Driver, now_s: float) -> None:
        self._driver, self._looked_s = driver, now_s
        self.found = ""

    def look(self, wanted: Values, now_s: float) -> str:
        """Look if it is time to; return the event that is new: ``drifted`` or its end, or empty."""
        if now_s - self._looked_s < DRIFT_S and not self.found:
            return ""
        self._looked_s, before = now_s, self.found
        try:
            wrong = self._driver.read_back(wanted)
            self.found = f"somebody else changed it: it holds {wrong}" if wrong else ""
        except Exception as error:  # a plug-in's too
            self.found = f"it cannot be read: {said(error)}"
        if bool(self.found) == bool(before):
            return ""
        return "drifted" if self.found else "as confirmed again"
