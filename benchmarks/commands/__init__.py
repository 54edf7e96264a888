"""What maintainers measure: the commands of ``python -m dcqcn_gym.benchmarks``."""
