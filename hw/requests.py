"""Messages to agents in the operator's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import wanted_targets
from dcqcn_gym.hw.drivers import Targets
from dcqcn_gym.hw.members import packed


@dataclass(frozen=True)
class Requests:
    """Makes them; journals of agents keep the name."""

    operator: str

    def named(self, name: str, why: str, withdrawn_from: Iterable[str] = ()) -> Any:
        """Return what names a transaction and why something is done with it.

        ``withdrawn_from``: devices that are not to have it any more; agents keep that.
        """
        devices = packed(withdrawn_from)
        return pb.Named(transaction=name, who=self.operator, why=why, withdrawn_from=devices)

    def wanted(
        self,
        name: str,
        targets: Mapping[str, Targets],
        why: str,
        restores: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return device -> what it is to hold; ``restores``: whose setting that is again."""
        former = restores or {}
        return {
            device: pb.Wanted(
                transaction=name, targets=wanted_targets(t), who=self.operator, why=why,
                restores=former.get(device, ""),
            )
            for device, t in targets.items()
        }  # fmt: skip
