"""Real networks: drivers of devices, changes as transactions, agents, and settings as commands."""
