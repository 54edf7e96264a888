"""The main path: `loop.py` is its start, a run is what `spec.py` says."""

__all__: list[str] = []
