"""A simulation process without ns-3 that has everything: the native engine, the real protocol."""

from __future__ import annotations

import sys

from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.extras.ns3.bridge import simulation

if __name__ == "__main__":
    sys.exit(simulation.run(lambda _: NativeBackend()))
