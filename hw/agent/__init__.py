"""Agents: one process beside one device, which it alone changes; gRPC with mutual TLS."""
