"""Traffic on a real fleet: perftest and nccl-tests, started through agents, and what they print."""
