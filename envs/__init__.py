"""Room `envs`."""
