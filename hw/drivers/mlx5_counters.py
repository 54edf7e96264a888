"""What a NIC has counted: ``ethtool -S``, the kernel's hw_counters, ``rdma``, a prober's file.

Units are the devices': bytes, packets, microseconds. ``port_xmit_data`` and ``port_rcv_data`` are
octets divided by 4 (Documentation/ABI/stable/sysfs-class-infiniband) and are multiplied here. The
driver caches hw_counters for ``lifespan`` milliseconds, 10 by default.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.device_files import DeviceFiles
from dcqcn_gym.hw.runner import Runner

OCTETS_PER_WORD = 4
MOST_PAIRS = 1024
PAIRS = "qp/"
"""Begins the names of figures of single queue pairs."""
_LINE = re.compile(r"\s*(?P<name>[\w.\[\] -]+?):\s*(?P<value>\d+)\s*")
HW_COUNTERS = {
    "np_cnp_sent": "cnps_sent",
    "np_ecn_marked_roce_packets": "ecn_marked_packets",
    "rp_cnp_handled": "cnps_handled",
    "rp_cnp_ignored": "cnps_ignored",
    "out_of_sequence": "out_of_sequence",
    "packet_seq_err": "sequence_errors",
    "roce_adp_retrans": "adaptive_retransmissions",
    "local_ack_timeout_err": "ack_timeouts",
}
ERRORS = ("out_of_sequence", "sequence_errors", "adaptive_retransmissions", "ack_timeouts")
"""Those of them that count errors."""
PORT_COUNTERS = {"port_xmit_data": "port_tx_bytes", "port_rcv_data": "port_rx_bytes"}


@dataclass(frozen=True)
class CounterSource:
    """Where the figures of one port stand."""

    netdev: str
    ibdev: str
    port: int
    priority: int
    rtt_file: str | None

    @property
    def folder(self) -> str:
        """The port's folder in sysfs."""
        return f"sys/class/infiniband/{self.ibdev}/ports/{self.port}"

    @property
    def lifespan(self) -> str:
        """The file that says for how many milliseconds the driver caches hw_counters."""
        return f"{self.folder}/hw_counters/lifespan"


def collect(root: DeviceFiles, runner: Runner, source: CounterSource) -> dict[str, int]:
    """Return every figure of the port; raise DeviceError if one that must be there is not."""
    found = _of_priority(
        ethtool_statistics(runner.run("ethtool", "-S", source.netdev)), source.priority
    )
    for file, name in HW_COUNTERS.items():
        value = _file(root, f"{source.folder}/hw_counters/{file}")
        if value is not None:
            found[name] = value
    for file, name in PORT_COUNTERS.items():
        value = _file(root, f"{source.folder}/counters/{file}")
        if value is not None:
            found[name] = value * OCTETS_PER_WORD
    if source.rtt_file is not None:
        found |= _round_trips(root, source.rtt_file)
    return found


def _of_priority(statistics: dict[str, int], priority: int) -> dict[str, int]:
    """Return the figures of the lossless priority; PFC figures are there only if it is on."""
    found = {}
    names = {
        f"tx_prio{priority}_bytes": "tx_bytes",
        f"tx_prio{priority}_packets": "tx_packets",
        f"rx_prio{priority}_bytes": "rx_bytes",
        f"rx_prio{priority}_packets": "rx_packets",
        f"rx_prio{priority}_pause": "pfc_received",
        f"tx_prio{priority}_pause": "pfc_sent",
        # time that this port was told not to send (mlx5 counters.rst), microseconds
        f"rx_prio{priority}_pause_duration": "pause_us",
    }
    for given, name in names.items():
        if given not in statistics:
            raise DeviceError(
                f"ethtool -S shows no {given}; is PFC on for priority {priority} (see mlnx_qos)?"
            )
        found[name] = statistics[given]
    return found


def ethtool_statistics(text: str) -> dict[str, int]:
    """Return name -> number from the output of ``ethtool -S``; raise DeviceError if it is none."""
    lines = text.splitlines()
    if not lines or not lines[0].strip().startswith("NIC statistics"):
        raise DeviceError(f"`ethtool -S` printed {text[:40]!r}; expected 'NIC statistics:' first")
    found = {}
    for line in lines[1:]:
        match = _LINE.fullmatch(line)
        if match is not None:
            found[match["name"]] = int(match["value"])
    return found


def queue_pairs(text: str) -> dict[int, dict[str, int]]:
    """Return queue pair -> counters from ``rdma statistic qp show``, which binds them by lqpn.

    A counter that stands for several queue pairs goes to the first of them.
    """
    found = {}
    for entry in re.split(r"^(?=link )", text, flags=re.MULTILINE):
        if not entry.strip():
            continue
        match = re.search(r"\blqpn (\d+)", entry)
        if match is None:
            raise DeviceError(f"`rdma statistic qp` printed {entry[:60]!r}; expected an lqpn")
        counters = re.findall(r"\b([a-z]\w*) (\d+)\b", entry[match.end() :])
        found[int(match[1])] = {name: int(value) for name, value in counters}
    return found


def sent_by_pair(runner: Runner, source: CounterSource, counter: str) -> dict[str, int]:
    """Return ``qp/NUMBER/tx_bytes`` of every queue pair that is counted apart, at most 1024.

    ``rdma statistic qp set link DEV/PORT auto type on`` has the kernel count them; which optional
    counters there are, its version decides. Raises DeviceError if no pair has this one.
    """
    link = f"{source.ibdev}/{source.port}"
    pairs = queue_pairs(runner.run("rdma", "statistic", "qp", "show", "link", link))
    sent = {number: values[counter] for number, values in pairs.items() if counter in values}
    if pairs and not sent:
        known = sorted({name for values in pairs.values() for name in values})
        raise DeviceError(
            f"`rdma statistic qp` shows no {counter} for the queue pairs of {link}; it shows "
            f"{', '.join(known) or 'nothing'}: choose one as pair_counter, or turn it on"
        )
    largest = sorted(sent, key=lambda number: (-sent[number], number))[:MOST_PAIRS]
    return {f"{PAIRS}{number}/tx_bytes": sent[number] for number in sorted(largest)}


def _round_trips(root: DeviceFiles, path: str) -> dict[str, int]:
    """Return figures of a prober's file: lines of peer, count, sum and base in nanoseconds."""
    text = root.read(path)
    if text is None:
        return {}
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 4 or not all(word.isdecimal() for word in words):
            raise DeviceError(f"/{path}: {line[:40]!r}; expected 'PEER COUNT SUM_NS BASE_NS'")
        peer, *values = (int(word) for word in words)
        for name, value in zip(("count", "sum_ns", "base_ns"), values, strict=True):
            found[f"rtt/{peer}/{name}"] = value
    return found


def _file(root: DeviceFiles, path: str) -> int | None:
    text = root.read(path)
    if text is None:
        return None
    if not text.isdecimal():
        raise DeviceError(f"/{path} holds {text[:40]!r}; expected a whole number")
    return int(text)
