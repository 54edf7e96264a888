"""Room `simulate`: one setting on one scenario, without a tuner, and what it leaves on disk."""

from dcqcn_gym.simulate.run import simulate

__all__ = ["simulate"]
