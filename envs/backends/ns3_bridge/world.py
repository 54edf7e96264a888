"""The network on ns-3, inside the simulation process: the engine's surface, another engine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.backends.ns3_bridge.build import ensure_built, import_module, load_module

__all__ = ["Ns3World", "make_world"]


class Ns3World(NativeBackend):
    """A backend over the compiled module; one per process, for ns-3's simulator is a singleton."""

    def __init__(self, module: Any, pcap: str | None = None) -> None:
        super().__init__()
        self._module = module
        self._pcap = pcap

    def _simulate(self, compiled: str, seed: int) -> Any:
        simulation = self._module.Simulation(compiled, seed)
        if self._pcap is not None:
            try:
                simulation.enable_pcap(self._pcap)
            except RuntimeError as error:
                raise ConfigError(str(error)) from None
        return simulation


def make_world(options: argparse.Namespace) -> Ns3World:
    """Load the module that the command line names, or build it."""
    if options.module:
        return Ns3World(import_module(Path(options.module)), options.pcap)
    build = ensure_built(say=lambda line: print(line, flush=True))
    return Ns3World(load_module(build), options.pcap)
