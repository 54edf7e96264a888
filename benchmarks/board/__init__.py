"""The benchmark of tuners: frozen suites, the protocol of a run, score, statistics and the table."""
