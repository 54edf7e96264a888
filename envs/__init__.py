"""The environment and the worlds behind it: scenarios, observation, wrappers, backends."""
