"""Readers of training jobs of others: Chakra traces and SimAI workloads."""
