"""From a trained Stable-Baselines3 model to a policy file that needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.envs.observation import OBSERVATION_VERSION, layout_name
from dcqcn_gym.envs.wrappers import ladder
from dcqcn_gym.extras.learn.algorithms import is_discrete
from dcqcn_gym.tuners.policy import Policy, PolicyMeta


def export_policy(
    model: Any, algo: str, space: KnobSpace, scenarios: Sequence[str], command: str
) -> Policy:
    """Return the deterministic policy of a model: its actor, or its Q network for DQN.

    :meth:`Policy.act` equals ``model.predict(..., deterministic=True)`` to 1e-5. Raises ConfigError
    for a model of another loop with what a policy file cannot hold: an activation other than ReLU,
    an extractor of features, or normalised observations.
    """
    import stable_baselines3
    import torch

    parts, output = _network(model.policy, algo)
    _check_plain(model, parts, algo)
    layers = tuple(
        (_array(module.weight), _array(module.bias))
        for part in parts
        for module in part.modules()
        if isinstance(module, torch.nn.Linear)
    )
    meta = PolicyMeta.model_validate(
        {
            "algo": algo,
            "observation_version": OBSERVATION_VERSION,
            "layout": layout_name(space),
            "knobs": space.knobs,
            "output": output,
            "steps": int(model.num_timesteps),
            "scenarios": tuple(scenarios),
            "command": command,
            "versions": {
                **code_versions(),
                "stable_baselines3": stable_baselines3.__version__,
                "torch": torch.__version__,
            },
        }
    )
    actions = ladder(space) if is_discrete(algo) else None
    return Policy(meta, layers, actions).check(f"the trained {algo!r} model")


def _network(policy: Any, algo: str) -> tuple[list[Any], str]:
    """Return the modules from the observation to the action, and what their output means."""
    if algo == "ppo":
        return [policy.mlp_extractor.policy_net, policy.action_net], "clip"
    if algo == "sac":
        return [policy.actor.latent_pi, policy.actor.mu], "tanh"
    if algo == "td3":
        return [policy.actor.mu], "tanh"  # its last module is the tanh
    return [policy.q_net.q_net], "argmax"


def _check_plain(model: Any, parts: Sequence[Any], algo: str) -> None:
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor

    names = [type(m).__name__ for part in parts for m in part.modules() if not any(m.children())]
    hidden = names[:-1] if algo == "td3" else names  # its last one is the tanh of the output
    other = sorted(set(hidden) - {"Linear", "ReLU"})
    other += sorted(
        type(m).__name__
        for m in model.policy.modules()
        if isinstance(m, BaseFeaturesExtractor) and not isinstance(m, FlattenExtractor)
    )
    if model.get_vec_normalize_env() is not None:
        other.append("VecNormalize")
    if other:
        raise ConfigError(
            f"the trained {algo!r} model has {other[0]}, which a policy file cannot hold: expected "
            "linear layers with ReLU between them (policy_kwargs={'activation_fn': nn.ReLU}) on "
            "the observation as it is"
        )


def _array(parameter: Any) -> Any:
    return np.array(parameter.detach().numpy(), dtype=np.float32)
