"""What a scenario knows of its distance from a real network: written by ``dcqcn-gym calibrate``."""

from __future__ import annotations

from pydantic import Field

from dcqcn_gym.core.config import StrictModel


class Calibration(StrictModel):
    """By what a scenario was calibrated, and what error is left; it changes nothing in a run.

    ``fitted`` are the unknowns that the measurements tell, each as value and 95 % interval; those
    with a key in the scenario stand there too. ``launch_us`` is what an operation of a collective
    takes outside of the network, and is in no run.
    """

    measurements: int = Field(ge=1, description="times that it was compared with")
    error: str = Field(max_length=500, description="what is left, in a clause")
    sources: tuple[str, ...] = Field(default=(), description="files, with their SHA-256")
    launch_us: float = Field(default=0.0, ge=0, le=1e6)
    fitted: dict[str, tuple[float, float, float]] = Field(default_factory=dict)
    not_fitted: dict[str, str] = Field(default_factory=dict)

    @property
    def note(self) -> str:
        """What every answer on the scenario carries."""
        launch = f"; {self.launch_us:.3g} us of launch an operation are in no run"
        return (
            f"calibrated against {self.measurements} measurements: {self.error}"
            f"{launch if self.launch_us else ''}"
        )
