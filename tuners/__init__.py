"""Room `tuners`."""
