"""Simulate one setting on one scenario, without a tuner, and what it leaves on disk."""
