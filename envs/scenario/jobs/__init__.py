"""Training jobs: their operations, collectives as graphs of transfers, and figures of both."""
