"""ns-3 behind the environment: the bridge, its backend, parity of the two simulators."""
