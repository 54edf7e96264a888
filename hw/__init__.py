"""Real networks; empty so far."""
