"""DCQCN tuning as a Gymnasium environment over an exact packet engine."""

__version__ = "0.1.0"
__all__ = ["__version__"]
