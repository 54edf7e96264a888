"""The recommendation of a recorded run as commands for devices, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcqcn_gym.core.device_commands import emit
from dcqcn_gym.core.errors import RunError, in_one_line
from dcqcn_gym.core.groups import DeviceSetting, by_group, setting_of
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.log import Run


def commands(
    run: Run,
    form: str,
    *,
    of: Mapping[str, Any] | None = None,
    changed_only: bool = False,
    rollback: bool = False,
    said: str = "",
) -> str:
    """Return shell commands for a setting of a run; forms as ``core.device_commands.emit``.

    ``of`` is the setting as logs hold it; None: the one that the run found.

    ``changed_only``: only knobs that differ from the setting in force before the run.
    ``rollback``: the commands that bring that one back instead. ``said``: the verdict, which stands
    as a comment at the top of each form's script.

    Raise:
        RunError: the run recommends nothing, or its log does not hold the scenario.
        ConfigError: the recommendation is no legal setting.
        UnknownNameError: no such form.
    """
    end = (run.end or {}).get("recommended")
    found = end if of is None else of
    if not isinstance(end, Mapping) or not isinstance(found, Mapping):
        raise RunError(
            f"{run.path} recommends no setting: the run has not reached its end; the command that "
            "made it continues it"
        )
    scenario = _scenario(run)
    before, setting = scenario.initial_setting(), setting_of(found)
    for group, values in by_group(setting):
        values.check(scenario.line_rate_bps, f"{run.path}: {group}")
    if rollback:
        setting, before, said = before, _differing(setting, before), ""
    return emit(
        setting, form, before=before if changed_only else None, said=said,
        line_rate_bps=scenario.line_rate_bps,
        classes={one.priority: one.ecn for one in scenario.classes if one.ecn},
    )  # fmt: skip


def _scenario(run: Run) -> Scenario:
    try:
        return Scenario.model_validate(run.header.get("scenario"))
    except ValueError as error:  # a ConfigError is one
        words = in_one_line(error)
        raise RunError(f"{run.path}: the scenario in it cannot be read: {words}") from None


def _differing(setting: DeviceSetting, before: Setting) -> Setting:
    """Return one setting that differs from ``before`` wherever that of any group does."""
    changed: dict[str, float] = {}
    for _, values in by_group(setting):
        changed |= {name: v for name, v in values.items() if v != before[name]}
    return before.replace(changed)
