"""Room `envs/backends`."""
