"""The largest scenarios: fast tests that go over all leave these out."""

LARGE = frozenset(
    {"fat-tree-1024", "job-dense-1024", "nccl-alltoall-128", "osu-alltoall-40", "plus-clos-2410"}
)
"""Together 80 % of the time of all; ``make test`` runs each in ``core/test_digests.py`` alone."""
