"""Searches by Optuna and cmaes as tuners."""
