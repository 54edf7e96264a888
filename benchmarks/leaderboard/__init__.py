"""The benchmark of tuners: frozen suites, the protocol of a run, scores, ranks and the table."""
