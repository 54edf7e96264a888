# what nanobind's stub generator cannot know: the element types of tuples and dicts

dcqcn_gym._core.__prefix__:
    from typing import Any

dcqcn_gym._core.NIC_KNOBS:
    NIC_KNOBS: tuple[str, ...]

dcqcn_gym._core.ECN_KNOBS:
    ECN_KNOBS: tuple[str, ...]

dcqcn_gym._core.Simulation.(report|port_table|totals):
    def \1(self) -> dict[str, Any]:
        \doc

