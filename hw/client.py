"""One agent as the controller sees it: calls with a deadline, repeated where that is safe."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.dependencies import require_grpc
from dcqcn_gym.hw.fleet import Member
from dcqcn_gym.hw.tls import ENDS, MOST_REPLY, MOST_REQUEST, Tls, channel_options


class UnreachableError(DeviceError):
    """No answer came: whether the call was carried out is not known."""


class Call:
    """A call that is under way; :meth:`result` waits, and repeats it if no answer came."""

    def __init__(
        self,
        client: AgentClient,
        method: str,
        request: Any,
        done: Callable[[Call], None] = lambda call: None,
    ) -> None:
        """``done`` is told whenever an answer came, or none is to come; by any thread."""
        self._client, self._method, self._request, self._done = client, method, request, done
        self.asked_s = self.answered_s = 0.0
        """By the controller's clock: when it was sent, the last time, and its answer arrived."""
        self._left = client.attempts
        self._future: Any = None
        self._send()

    def _send(self) -> None:
        self._left -= 1
        self.asked_s, self.answered_s = self._client.clock(), 0.0
        self._future = self._client.send(self._method, self._request)
        self._future.add_done_callback(self._arrived)

    def _arrived(self, future: Any) -> None:
        """Note the time, for whoever waits for other calls first."""
        if not self.answered_s:
            self.answered_s = self._client.clock()
        self._done(self)

    def repeated(self) -> bool:
        """Send it again, once it is done, if no answer came and there are attempts left."""
        grpc = require_grpc()
        try:
            self._future.result()
        except grpc.RpcError as error:
            codes = grpc.StatusCode
            again = error.code() in (codes.UNAVAILABLE, codes.DEADLINE_EXCEEDED) and self._left > 0
            if again:
                self._send()
            return again
        return False

    def result(self) -> Any:
        """Return the answer; raise what the agent raised, or UnreachableError."""
        while self.repeated():
            continue
        try:
            answer = self._future.result()
        except require_grpc().RpcError as error:
            raise self._client.meaning(error) from None
        self.answered_s = self.answered_s or self._client.clock()
        self._client.learn(self._future.trailing_metadata())
        self._client.received += answer.ByteSize()
        return answer


class AgentClient:
    """A connection to one agent. Every call of the protocol may come twice, so all are repeated."""

    def __init__(
        self,
        member: Member,
        service: str,
        methods: Any,
        credentials: Any,
        *,
        dscp: int,
        timeout_s: float,
        attempts: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        grpc = require_grpc()
        self.clock = clock
        self.name, self.address = member.name, member.address
        self.attempts = attempts
        self._timeout_s = timeout_s
        self.sent = 0
        """Bytes of messages, without the headers below them."""
        self.received = 0
        self.ends_s = math.inf
        """When the agent's certificate ends, in Unix time, once it has answered."""
        options = [
            *channel_options(dscp),
            ("grpc.ssl_target_name_override", member.name),
            ("grpc.max_send_message_length", MOST_REQUEST),
            ("grpc.max_receive_message_length", MOST_REPLY),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        self._channel = grpc.secure_channel(member.address, credentials, options=options)
        self._calls = {
            name: self._channel.unary_unary(
                f"/{service}/{name}",
                request_serializer=takes.SerializeToString,
                response_deserializer=gives.FromString,
            )
            for name, (takes, gives) in methods.items()
        }

    def call(
        self, method: str, request: Any, done: Callable[[Call], None] = lambda call: None
    ) -> Call:
        """Begin a call; ``done`` as :class:`Call` has it."""
        return Call(self, method, request, done)

    def ask(self, method: str, request: Any) -> Any:
        """Make a call and return its answer; raises as :meth:`Call.result`."""
        return self.call(method, request).result()

    def send(self, method: str, request: Any) -> Any:
        """Send a request and return gRPC's future of the answer."""
        self.sent += request.ByteSize()
        return self._calls[method].future(request, timeout=self._timeout_s)

    def learn(self, metadata: Any) -> None:
        """Take up when the agent's certificate ends; an older one does not tell."""
        for name, text in metadata or ():
            if name == ENDS and text.isdecimal():
                self.ends_s = float(text)

    def meaning(self, error: Any) -> Exception:
        """Return gRPC's error as one of ours, in one sentence that names the device."""
        codes = require_grpc().StatusCode
        code, text = error.code(), " ".join((error.details() or "").split())[:500]
        if code in (codes.UNAVAILABLE, codes.DEADLINE_EXCEEDED):
            why = text if code == codes.UNAVAILABLE else f"within {self._timeout_s:g} s"
            return UnreachableError(
                f"agent {self.name} at {self.address} does not answer ({why}); is it running, and "
                "are both certificates of this fleet and still valid?"
            )
        kinds = {codes.INVALID_ARGUMENT: ConfigError, codes.FAILED_PRECONDITION: StateError}
        return kinds.get(code, DeviceError)(f"{self.name}: {text or code.name}")

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def channel_credentials(tls: Tls, folder: Path) -> Any:
    """Return what a controller shows and trusts."""
    ca, cert, key = tls.read(folder)
    return require_grpc().ssl_channel_credentials(ca, key, cert)
