"""A fake: a gNMI server with the two kinds of OpenConfig containers that the driver touches.

It is gRPC with mutual TLS and pygnmi's own messages, no switch: nobody recorded it.
"""

from __future__ import annotations

import json
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
