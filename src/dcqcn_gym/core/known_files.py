"""Files of the field by how they begin: what one is, and which command takes it.

A command that cannot use a file says what it is, and which command takes it.
"""

from __future__ import annotations

import re
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.gzip_files import open_bytes

_BEGIN = 1 << 16
_KINDS: tuple[tuple[str, str, str], ...] = (
    (r"NCCL INFO", "a log of NCCL",
     "dcqcn-gym traffic import FILE --scenario FABRIC --fit --out FOLDER"),
    (r"nThread \d+ nGpus|#\s+size\s+count\s.*\btype\b", "an output of nccl-tests",
     "dcqcn-gym calibrate --scenario FABRIC --measured FILE --out FILE.toml"),
    (r"(?:RDMA_\w+|Send) (?:BW|Latency|Bidirectional BW) Test|#bytes\s+#iterations",
     "an output of perftest",
     "dcqcn-gym calibrate --scenario FABRIC --measured FILE --out FILE.toml"),
    (r'"resultType"\s*:\s*"matrix"', "a query result of Prometheus",
     "dcqcn-gym calibrate --scenario FABRIC --measured FILE --out FILE.toml"),
    (r'"(?:WRED_PROFILE|DEVICE_METADATA|PORT_QOS_MAP|DEVICE_NEIGHBOR)"\s*:',
     "SONiC's config_db.json", "dcqcn-gym settings import, settings check or network import"),
    (r'"lldp"\s*:\s*[{\[]', "neighbours by `lldpctl -f json`",
     "dcqcn-gym network import FILE ... --out FOLDER"),
    (r"RPG_AI_RATE|RPG_THRESHOLD|green_min_threshold|random-detect ecn",
     "a device's setting", "dcqcn-gym settings import FILE"),
    (r"rp_cnp_(?:handled|ignored)|NIC statistics:|^\s*[tr]x_prio\d_pause:",
     "counters of a device", "dcqcn-gym settings check FILE"),
    (r"^HYBRID_\w+.*model_parallel_NPU_group|^(?:HYBRID|DATA|MODEL)\w*\s*\n\s*\d+\s*\n",
     "a workload file of SimAI or astra-sim", "dcqcn-gym jobs FILE (as .txt)"),
    (r"^ENABLE_QCN\b|^CC_MODE\b", "config.txt of HPCC's simulator",
     "dcqcn-gym network import FOLDER --out FOLDER, with its topology.txt and flow.txt"),
    (r"\A(?:[0-9a-f]{8} ){2}\d+ \d+ \d+ \d+ \d+ \d+\s*$", "fct.txt of HPCC's simulator, a result",
     "dcqcn-gym network import FOLDER takes what was run"),
    (r"<FlowMonitor\b", "ns-3's FlowMonitor, sums without the starts of flows",
     "dcqcn-gym traffic import of a CSV with src, dst, bytes, start"),
    (r"<(?:\w+:)?DeviceMiniGraph|<graphml", "a description of a network",
     "dcqcn-gym network import FILE --out FOLDER"),
    (r"^\[\[workloads\]\]|^\[topology\]", "a scenario", "any command's --scenario"),
    (r'"traceEvents"\s*:', "a trace of a profiler, without sizes of collectives",
     "dcqcn-gym jobs of Chakra traces or of PyTorch's flight recorder"),
    (r'"pg_config"\s*:|"pg_status"\s*:', "a dump of PyTorch's flight recorder",
     "dcqcn-gym jobs FOLDER, with the dumps of all ranks"),
)  # fmt: skip
_CAPTURES = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1",
             b"\x0a\x0d\x0d\x0a")  # fmt: skip
_ROW_OF_NFDUMP = re.compile(rb"\A\s*\d{4}-\d\d-\d\d[ T]\d\d:\d\d")


def other_use(path: Path) -> str:
    """Return ``"; it is ..., which ... takes"`` for a file that is known, else nothing."""
    try:
        with open_bytes(path) as file:
            begin = file.read(_BEGIN)
    except (OSError, ConfigError):
        return ""
    if begin[:4] in _CAPTURES:
        return "; it is a capture, which `dcqcn-gym traffic import FILE --out FOLDER` takes"
    if _ROW_OF_NFDUMP.match(begin):
        return ("; its first line is a record, not the names of columns: put a line with them "
                "first (nfdump writes one with -o csv)")  # fmt: skip
    text = begin.decode("utf-16" if begin[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
    for pattern, what, command in _KINDS:
        if re.search(pattern, text, re.MULTILINE):
            return f"; it is {what}: `{command}`"
    return ""
