"""Tuners, which propose settings. One file per tuner; ``base.py`` describes the life cycle.

A built-in is one file and one line in :data:`BUILTIN`; other packages register theirs in the
entry-point group ``dcqcn_gym.tuners``; ``path.py:Class`` names a file. docs/tuners.md is the guide.
"""

from __future__ import annotations

from dcqcn_gym.core.add_ons import ADD_ONS
from dcqcn_gym.core.errors import DcqcnGymError, TunerError, in_one_line
from dcqcn_gym.core.registry import Registry
from dcqcn_gym.tuners.base import (
    Outcome,
    Tuner,
    TunerContext,
    TunerSettings,
    check_class,
    parse_settings,
)
from dcqcn_gym.tuners.guard import place_of

__all__ = [
    "BUILTIN",
    "TUNERS",
    "Outcome",
    "Tuner",
    "TunerContext",
    "TunerSettings",
    "make_tuner",
    "parse_settings",
]

BUILTIN = {
    "default": "dcqcn_gym.tuners.fixed:DefaultTuner",
    "expert": "dcqcn_gym.tuners.fixed:ExpertTuner",
    "expert-scaled": "dcqcn_gym.tuners.fixed:ExpertScaledTuner",
    "do-nothing": "dcqcn_gym.tuners.fixed:DoNothingTuner",
    "fixed": "dcqcn_gym.tuners.fixed:FixedTuner",
    "default-min-rate": "dcqcn_gym.tuners.fixed:DefaultMinRateTuner",
    "advise": "dcqcn_gym.tuners.fixed:AdviseTuner",
    "keeper": "dcqcn_gym.tuners.keeper:KeeperTuner",
    "pretrained-alltoall": "dcqcn_gym.tuners.pretrained:PretrainedAlltoallTuner",
    "pretrained-fbhadoop": "dcqcn_gym.tuners.pretrained:PretrainedFbHadoopTuner",
    "secn1": "dcqcn_gym.tuners.fixed:Secn1Tuner",
    "secn2": "dcqcn_gym.tuners.fixed:Secn2Tuner",
    "vendor-ecn": "dcqcn_gym.tuners.fixed:VendorEcnTuner",
    "random": "dcqcn_gym.tuners.random_search:RandomTuner",
    "paraleon": "dcqcn_gym.tuners.paraleon:ParaleonTuner",
    "paraleon-prototype": "dcqcn_gym.tuners.paraleon:ParaleonPrototypeTuner",
    "paraleon-tiers": "dcqcn_gym.tuners.paraleon:ParaleonTiersTuner",
    "paraleon-rescaled": "dcqcn_gym.tuners.paraleon:ParaleonRescaledTuner",
    "paraleon-unguided": "dcqcn_gym.tuners.paraleon:ParaleonUnguidedTuner",
    "paraleon-unrelaxed": "dcqcn_gym.tuners.paraleon:ParaleonUnrelaxedTuner",
    "naive-sa": "dcqcn_gym.tuners.paraleon:NaiveAnnealingTuner",
    "paraleon-bytes": "dcqcn_gym.tuners.paraleon:ParaleonBytesTuner",
    "chameleon": "dcqcn_gym.tuners.chameleon:ChameleonTuner",
    "chameleon-100": "dcqcn_gym.tuners.chameleon:SlowChameleonTuner",
    "ucb1": "dcqcn_gym.tuners.bandits:Ucb1Tuner",
    "thompson": "dcqcn_gym.tuners.bandits:ThompsonTuner",
    "dr-ucb": "dcqcn_gym.tuners.bandits:DrUcbTuner",
    "per-group": "dcqcn_gym.tuners.composite:PerGroupTuner",
    "safe": "dcqcn_gym.tuners.safe:SafeTuner",
    "two-sides": "dcqcn_gym.tuners.composite:TwoSidesTuner",
    "acc": "dcqcn_gym.tuners.acc:AccTuner",
    "acc-central": "dcqcn_gym.tuners.acc:AccCentralTuner",
    "ars": "dcqcn_gym.tuners.policy_search:ArsTuner",
    "policy": "dcqcn_gym.tuners.policy:PolicyTuner",
    "ppo-mini": "dcqcn_gym.tuners.policy:PpoMiniTuner",
    "sac-mini": "dcqcn_gym.tuners.policy:SacMiniTuner",
    "td3-mini": "dcqcn_gym.tuners.policy:Td3MiniTuner",
    "dqn-mini": "dcqcn_gym.tuners.policy:DqnMiniTuner",
    **ADD_ONS["dcqcn_gym.tuners"],
}

TUNERS: Registry[Tuner] = Registry(
    "tuner",
    "dcqcn_gym.tuners",
    Tuner,  # type: ignore[type-abstract]  # only its subclasses are made
    BUILTIN,
    check_class,
)


def make_tuner(name: str, arguments: dict[str, object] | None = None) -> Tuner:
    """Return a tuner by registered name or ``path.py:Class`` with these settings.

    Raises ConfigError for an unknown name, an unknown argument or a bad value, TunerError if the
    class cannot be made.
    """
    tuner_class = TUNERS.load(name)
    settings = parse_settings(name, tuner_class, arguments or {})
    try:
        return tuner_class(settings)
    except (DcqcnGymError, KeyboardInterrupt):
        raise
    except BaseException as error:  # plug-ins end in every way there is
        place = place_of(error, tuner_class)
        raise TunerError(f"{place}tuner {name!r} cannot be made: {in_one_line(error)}") from error
