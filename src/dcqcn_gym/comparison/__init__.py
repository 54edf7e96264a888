"""Tuners against each other on the same traffic: the runs, the figures, the page."""

__all__: list[str] = []
