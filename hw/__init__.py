"""Room `hw`."""
