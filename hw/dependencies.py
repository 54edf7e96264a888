"""The packages of the extra ``[hw]``, asked for where they are used: the base needs none."""

from __future__ import annotations

from typing import Any

from dcqcn_gym.core.errors import MissingExtraError


def require_grpc() -> Any:
    """Return the module ``grpc``; raise MissingExtraError where it, or its messages, is not."""
    try:
        import grpc
        import grpc_health.v1.health  # noqa: F401
        from google.protobuf import message  # noqa: F401
    except ImportError:
        raise MissingExtraError("agents and their controller", "hw") from None
    return grpc
