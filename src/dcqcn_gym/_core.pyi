"""The native packet engine."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

from typing import Any

ENGINE_VERSION: int = 1

NIC_KNOBS: tuple[str, ...]

ECN_KNOBS: tuple[str, ...]

class Simulation:
    """One network: built from a compiled scenario and a seed."""

    def __init__(self, compiled: str, seed: int, engine: str = "default") -> None: ...
    def apply(
        self,
        nic: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        ecn: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
    ) -> None:
        """
        Put settings in force: SI rows of NIC_KNOBS per host and of ECN_KNOBS per port.
        """

    def advance(self, until_ps: int) -> None:
        """Run everything that happens before until_ps."""

    def report(self) -> dict[str, Any]:
        """Close the interval since the last report and return its figures."""

    def port_table(self) -> dict[str, Any]:
        """Node, peer node, index and rate of every egress port."""

    def totals(self) -> dict[str, Any]:
        """Sums over all closed intervals."""

    @property
    def now_ps(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def n_hosts(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def n_ports(self) -> int: ...
