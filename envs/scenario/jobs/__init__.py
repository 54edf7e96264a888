"""Training jobs: what files and people say, collectives as graphs, and figures of both."""
