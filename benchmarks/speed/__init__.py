"""How fast the packet engine and the bridge to ns-3 are."""

__all__: list[str] = []
