"""Training of RL agents with Stable-Baselines3; docs/rl.md is the guide.

Nothing here imports torch before it is used: the extra ``rl`` is asked for by name then.
"""
