"""A stand-in for an EOS switch: eAPI over HTTPS with configuration sessions and commit timers.

It answers the commands that NAPALM's driver ``eos`` sends, with a timer of its own. Nobody recorded
it from a switch; the words are those of NAPALM's source and of Arista's public guides.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dcqcn_gym.hw.certs import write_all

LINE = ("random-detect ecn minimum-threshold {} bytes maximum-threshold {} bytes "
        "max-mark-probability {} weight 0")  # fmt: skip


class EosStandIn:
    """Ports with one marking queue each, and sessions that change them."""

    def __init__(self) -> None:
        self.lines = {f"Ethernet{n}": LINE.format(150_000, 1_500_000, 10) for n in (1, 2)}
        self.sessions: dict[str, dict[str, str]] = {}
        self.pending: tuple[str, float, threading.Timer] | None = None
        self.before: dict[str, str] = {}
        self.ended: list[str] = []
        self.startup = 0
        """How often the startup configuration was written."""
        self.refuse = ""
        self.begun = time.monotonic()
        self.lock = threading.RLock()

    @property
    def running(self) -> str:
        """The running configuration."""
        parts = [
            f"interface {port}\n   description x\n   !\n   uc-tx-queue 3\n      {line}\n!"
            for port, line in self.lines.items()
        ]
        return "\n".join(["! device: leaf", "hostname leaf", "!", *parts, "end"])

    def answer(self, commands: list[Any], form: str) -> list[dict[str, Any]]:
        """Carry out the commands of one request in their order."""
        with self.lock:
            words = [c["cmd"] if isinstance(c, dict) else str(c) for c in commands]
            found, session, port = [], "", ""
            for word in words:
                said: Any = {}
                if match := re.fullmatch(r"configure session (\S+)", word):
                    session = match[1]
                    self.sessions.setdefault(session, dict(self.lines))
                elif match := re.fullmatch(r"interface (\S+)", word):
                    port = match[1]
                elif word.startswith("random-detect"):
                    self.sessions[session][port] = word
                elif match := re.fullmatch(r"configure session (\S+) (commit|abort)(.*)", word):
                    self._end(match[1], match[2], match[3])
                elif word == "write memory":
                    self.startup += 1
                elif word == "show running-config":
                    said = self.running
                elif word == "show version":
                    said = {"version": "4.28.3M", "uptime": time.monotonic() - self.begun}
                elif word.startswith("show configuration sessions"):
                    said = {"sessions": self._sessions()}
                elif word not in ("enable", "end", "exit", "uc-tx-queue 3",
                                  "copy startup-config flash:rollback-0"):  # fmt: skip
                    raise ValueError(f"invalid command: {word}")
                found.append({"output": said} if form == "text" else said)
            return found

    def _sessions(self) -> dict[str, Any]:
        found: dict[str, Any] = {name: {"state": "pending"} for name in self.sessions}
        if self.pending is not None:
            name, until, _ = self.pending
            found[name] = {"state": "pendingCommitTimer", "commitBy": until - self.begun}
        return found

    def _end(self, name: str, how: str, rest: str) -> None:
        if self.refuse:
            raise ValueError(self.refuse)
        if self.pending is not None and self.pending[0] == name:
            self.pending[2].cancel()
            if how == "abort":
                self.lines = self.before
            self.pending = None
            self.ended.append("confirmed" if how == "commit" else "aborted")
            return
        changed = self.sessions.pop(name, None)
        if how == "abort":
            return
        if changed is None:
            raise ValueError(f"no session {name}")
        if match := re.fullmatch(r" timer (\d\d):(\d\d):(\d\d)", rest):
            seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
            timer = threading.Timer(seconds, self._timed_out, (name,))
            timer.daemon = True
            self.before = self.lines
            self.pending = name, time.monotonic() + seconds, timer
            timer.start()
        self.lines = changed

    def _timed_out(self, name: str) -> None:
        with self.lock:
            if self.pending is not None and self.pending[0] == name:
                self.lines, self.pending = self.before, None
                self.ended.append("timed out")


@contextmanager
def eos_stand_in(folder: Path) -> Iterator[tuple[EosStandIn, dict[str, Any]]]:
    """Run it until the block ends; yield it and what an agent's file says of it."""
    write_all(folder, ["localhost"], ["controller"])
    password = folder / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    switch = EosStandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
            try:
                params = asked["params"]
                answer["result"] = switch.answer(params["cmds"], params.get("format", "json"))
            except ValueError as error:
                answer["error"] = {"code": 1002, "message": str(error), "data": []}
            body = json.dumps(answer).encode()
            self.send_response(200 if "Basic " in self.headers["Authorization"] else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "localhost.pem", folder / "localhost.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield switch, {
            "host": "localhost", "port": server.server_address[1], "ca": str(folder / "ca.pem"),
            "username": "admin", "password_file": str(password), "queue": 3,
            "ports": ("Ethernet1", "Ethernet2"),
        }  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
