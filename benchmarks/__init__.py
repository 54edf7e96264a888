"""Room `benchmarks`."""
