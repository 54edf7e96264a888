"""Commands of real networks: ``dcqcn-gym hw``."""
