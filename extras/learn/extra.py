"""The optional packages that training needs, asked for when they are used."""

from __future__ import annotations

from dcqcn_gym.core.errors import MissingExtraError


def need_sb3(what: str) -> None:
    """Raise MissingExtraError if Stable-Baselines3 cannot be imported; ``what`` asks for it."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        raise MissingExtraError(what, "rl") from None
