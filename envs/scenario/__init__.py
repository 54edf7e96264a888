"""Scenarios: what is simulated and what is asked of a tuner, from one TOML file."""
