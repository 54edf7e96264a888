# what nanobind's stub generator cannot know: the element types of tuples and dicts

dcqcn_gym._core.__prefix__:
    from collections.abc import Sequence
    from typing import Any

dcqcn_gym._core.knob_tables:
    def knob_tables() -> dict[str, Any]:
        \doc

dcqcn_gym._core.report_fields:
    def report_fields() -> list[dict[str, Any]]:
        \doc

dcqcn_gym._core.scheme_sizes:
    def scheme_sizes(scheme: str) -> dict[str, int]:
        \doc

dcqcn_gym._core.MONITOR_KINDS:
    MONITOR_KINDS: dict[str, tuple[str, ...]]

dcqcn_gym._core.KlTrigger.update:
    def update(self, elephants: float, mice: float, known: bool) -> tuple[float, bool]:
        \doc

dcqcn_gym._core.flow_keys:
    def flow_keys(
        src: NDArray[numpy.int64], ordinal: NDArray[numpy.int64]
    ) -> NDArray[numpy.int64]:
        \doc

dcqcn_gym._core.Simulation.(report|closed_report|port_table|totals|labels|take_trace|flow_log|live_flows|flow_rates):
    def \1(self) -> dict[str, Any]:
        \doc

dcqcn_gym._core.Simulation.take_scheme_trace:
    def take_scheme_trace(self) -> list[dict[str, Any]]:
        \doc

dcqcn_gym._core.Monitor.(labels|flow_log):
    def \1(self) -> dict[str, Any]:
        \doc

dcqcn_gym._core.Monitor.end_interval:
    def end_interval(self, now_ps: int) -> dict[str, Any]:
        \doc

dcqcn_gym._core.Simulation.sample:
    def sample(
        self,
        ports: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> dict[str, Any]:
        \doc

dcqcn_gym._core.run_batch:
    def run_batch(
        simulations: Sequence[Simulation], stops_ps: Sequence[Sequence[int]], threads: int
    ) -> list[dict[str, Any]]:
        \doc
