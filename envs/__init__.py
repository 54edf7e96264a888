"""The environment and what stands behind it: scenarios, observation, wrappers, backends."""
