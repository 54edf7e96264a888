"""How accurate each flow-size monitor is, what it costs, and why."""

__all__: list[str] = []
