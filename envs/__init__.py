"""The environment and its parts: scenarios, observation, wrappers, backends."""
