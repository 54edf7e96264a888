"""A fake: a gNMI server with the two kinds of OpenConfig containers that the driver touches.

It has confirmed commits with a timer of its own. It is gRPC with mutual TLS and pygnmi's own
messages, no switch: nobody recorded it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from dcqcn_gym.hw.certs import write_all

PROFILES = "/qos/queue-management-profiles/queue-management-profile[name={}]/wred/uniform/config"
BOUND = "/qos/interfaces/interface[interface-id={}]/output/queues/queue[name={}]/config"


def path_text(path: Any) -> str:
    """Return a path as text, keys in brackets."""
    parts = []
    for element in path.elem:
        keys = "".join(f"[{key}={value}]" for key, value in sorted(element.key.items()))
        parts.append(f"/{element.name}{keys}")
    return "".join(parts)


class FakeGnmi:
    """Containers by path; ``step`` is what thresholds are rounded to, as some vendors do."""

    def __init__(self) -> None:
        self.step = 1
        self.refuse = ""
        self.sets = 0
        self.commits = True
        """Whether it offers the extension Commit."""
        self.ignores = False
        """Whether it takes the extension without a word and does nothing."""
        self.lock = threading.RLock()
        self.waiting: tuple[str, threading.Timer] | None = None
        self.before: dict[str, dict[str, Any]] = {}
        self.ended: list[tuple[str, str]] = []
        self.tree: dict[str, dict[str, Any]] = {}
        for name in ("LOSSLESS", "UPLINK"):
            self.tree[PROFILES.format(name)] = {
                "openconfig-qos:min-threshold": "153600", "max-threshold": "1536000",
                "max-drop-probability-percent": 10, "enable-ecn": True, "drop": False,
            }  # fmt: skip
        for port, name in (("eth1", "LOSSLESS"), ("eth2", "LOSSLESS"), ("eth3", "UPLINK")):
            self.tree[BOUND.format(port, "RDMA")] = {"queue-management-profile": name}

    def Capabilities(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Say that JSON is spoken."""
        from pygnmi.spec.v080 import gnmi_pb2

        return gnmi_pb2.CapabilityResponse(supported_encodings=[4], gNMI_version="0.8.0")

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return the containers asked for."""
        from pygnmi.spec.v080 import gnmi_pb2

        updates = []
        for path in request.path:
            held = self.tree.get(path_text(path))
            if held is None:
                context.abort(grpc.StatusCode.NOT_FOUND, f"no {path_text(path)}")
            value = gnmi_pb2.TypedValue(json_ietf_val=json.dumps(held).encode())
            updates.append(gnmi_pb2.Update(path=path, val=value))
        return gnmi_pb2.GetResponse(notification=[gnmi_pb2.Notification(update=updates)])

    def Set(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Carry out all updates or none."""
        from pygnmi.spec.v080 import gnmi_pb2

        if self.refuse:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.refuse)
        self.sets += 1
        if not self.ignores:
            self._carry_out(request, _commit_of(request), context)
        for update in request.update:
            held = self.tree[path_text(update.path)]
            for field, value in json.loads(update.val.json_ietf_val).items():
                bytes_of = "threshold" in field  # a uint64, which is text in JSON (RFC 7951)
                if not isinstance(value, str if bytes_of else int):
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{field}: {value!r}")
                whole = int(value) // self.step * self.step if bytes_of else value
                full = next((k for k in held if k.rpartition(":")[2] == field), field)
                held[full] = str(whole) if bytes_of else whole
        return gnmi_pb2.SetResponse(timestamp=1)

    def _carry_out(self, request: Any, commit: tuple[str, int, float] | None, context: Any) -> None:
        """Begin, confirm, cancel or lengthen a confirmed commit, as gnmi-commit-confirmed.md says.

        While one waits, every other Set is refused.
        """
        with self.lock:
            if commit is None:
                if self.waiting is not None:
                    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "a commit waits")
                return
            if not self.commits:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such extension")
            name, action, seconds = commit
            if action == 2:
                if self.waiting is not None:
                    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "a commit waits")
                self.before = json.loads(json.dumps(self.tree))
                self._wait(name, seconds)
                return
            if self.waiting is None or self.waiting[0] != name:
                context.abort(grpc.StatusCode.NOT_FOUND, f"no commit {name} waits")
            assert self.waiting is not None
            self.waiting[1].cancel()
            if action == 5:
                self._wait(name, seconds)
                return
            if action == 4:
                self.tree = self.before
            self.waiting = None
            self.ended.append((name, "confirmed" if action == 3 else "cancelled"))

    def _wait(self, name: str, seconds: float) -> None:
        timer = threading.Timer(seconds, self._go_back, (name,))
        timer.daemon = True
        self.waiting = name, timer
        timer.start()

    def _go_back(self, name: str) -> None:
        """The switch's own timer ran out: nobody has to ask."""
        with self.lock:
            if self.waiting is not None and self.waiting[0] == name:
                self.tree, self.waiting = self.before, None
                self.ended.append((name, "timed out"))


def _commit_of(request: Any) -> tuple[str, int, float] | None:
    """Return id, action and seconds of the extension Commit; None without one.

    Read from the bytes, since pygnmi's messages do not know it: Extension.commit = 4, Commit.id
    = 1, commit = 2, confirm = 3, cancel = 4, set_rollback_duration = 5.
    """
    for extension in request.extension:
        fields = _fields(_fields(extension.SerializeToString())[4])
        action = next(number for number in (2, 3, 4, 5) if number in fields)
        inside = _fields(fields[action])
        seconds = _fields(inside[1]).get(1, 0) if inside else 0
        return fields[1].decode(), action, float(seconds)
    return None


def _fields(data: bytes) -> dict[int, Any]:
    """Return protobuf's fields by number: bytes, or numbers."""
    found: dict[int, Any] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            found[tag >> 3] = varint()
        else:
            length = varint()
            found[tag >> 3] = data[at : at + length]
            at += length
    return found


@contextmanager
def fake_gnmi(folder: Path) -> Iterator[tuple[FakeGnmi, dict[str, Any]]]:
    """Run the fake until the block ends; yield it and what an agent's file says of it."""
    from pygnmi.spec.v080 import gnmi_pb2_grpc

    write_all(folder, ["leaf-9"], ["controller"])
    fake = FakeGnmi()
    server = grpc.server(ThreadPoolExecutor(2))
    gnmi_pb2_grpc.add_gNMIServicer_to_server(_with_subscribe(fake), server)
    pair = ((folder / "leaf-9.key").read_bytes(), (folder / "leaf-9.pem").read_bytes())
    credentials = grpc.ssl_server_credentials([pair], (folder / "ca.pem").read_bytes(), True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield fake, {
            "host": "127.0.0.1", "port": port, "name": "leaf-9", "ca": str(folder / "ca.pem"),
            "cert": str(folder / "controller.pem"), "key": str(folder / "controller.key"),
            "queue": "RDMA", "ports": ("eth1", "eth2", "eth3"),
        }  # fmt: skip
    finally:
        server.stop(0).wait()


def _with_subscribe(fake: FakeGnmi) -> Any:
    from pygnmi.spec.v080 import gnmi_pb2_grpc

    servicer = gnmi_pb2_grpc.gNMIServicer()
    for name in ("Capabilities", "Get", "Set"):
        setattr(servicer, name, getattr(fake, name))
    return servicer
