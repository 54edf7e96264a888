"""Real networks: for now the commands that put a setting on devices."""
