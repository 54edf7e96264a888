"""The agent's server: gRPC with mutual TLS and nothing else; a thread that keeps the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from dcqcn_gym.core.config import load_toml
from dcqcn_gym.core.errors import (
    ConfigError,
    DcqcnGymError,
    DeviceError,
    StateError,
    in_one_line,
)
from dcqcn_gym.hw.agent.config import RELEASE, AgentConfig, Rights
from dcqcn_gym.hw.agent.reserved_files import RESERVED
from dcqcn_gym.hw.agent.service import CALLER, METHODS, SERVICE, AgentService
from dcqcn_gym.hw.agent.ticker import Ticker
from dcqcn_gym.hw.dependencies import require_grpc
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.drivers import Driver, Targets
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.limits import check_limits
from dcqcn_gym.hw.load.jobs import LoadJobs
from dcqcn_gym.hw.metrics import TextFile, of_agent
from dcqcn_gym.hw.tls import ENDS, MOST_REPLY, MOST_REQUEST, TlsFiles, channel_options
from dcqcn_gym.hw.transaction import Clock, Guard

MOST_CONNECTIONS = 32
HANDSHAKE_S = 3.0
"""Seconds after which a connection that shows no certificate is closed."""
IDLE_S = 300.0
"""Seconds after which one that asks nothing is closed; its controller opens another."""
_TICKER = Ticker()
Wrap = Callable[[Driver], Driver]
Refuse = Callable[[str, list[str], bytes], str]
"""Why a certificate (its names, its PEM) may not make a call; empty if it may."""


class _DeniedError(DcqcnGymError):
    """A certificate may not make a call."""


_CODES = {
    _DeniedError: "PERMISSION_DENIED",
    ConfigError: "INVALID_ARGUMENT",
    StateError: "FAILED_PRECONDITION",
    DeviceError: "ABORTED",
}


def handlers(
    service: str,
    target: object,
    methods: Mapping[str, tuple[Any, Any]],
    refuse: Refuse,
    tls: TlsFiles,
) -> Any:
    """Return gRPC's handler of a service; ``refuse`` says why a certificate may not make a call."""
    grpc = require_grpc()

    def handler(name: str, takes: Any, gives: Any) -> Any:
        call = getattr(target, name)

        def answer(data: bytes, context: Any) -> Any:
            context.set_trailing_metadata(((ENDS, f"{tls.ends_s:.0f}"),))
            try:
                _permit(refuse, name, context)
                message = parsed(takes, data)
                if name == "Stop" and not message.on:
                    _permit(refuse, RELEASE, context)
                return call(message)
            except DcqcnGymError as error:
                code = next((c for k, c in _CODES.items() if isinstance(error, k)), "INTERNAL")
                context.abort(getattr(grpc.StatusCode, code), str(error)[:2000])
            except Exception as error:  # a defect of ours must not look like an answer
                context.abort(grpc.StatusCode.INTERNAL, in_one_line(error))

        # messages are read above: what gRPC itself cannot read keeps its stream for ever
        return grpc.unary_unary_rpc_method_handler(
            answer, response_serializer=gives.SerializeToString
        )

    table = {name: handler(name, *types) for name, types in methods.items()}
    return grpc.method_handlers_generic_handler(service, table)


def _permit(refuse: Refuse, method: str, context: Any) -> None:
    shown = context.auth_context()
    names = [name.decode("utf-8", "replace") for name in shown.get("x509_common_name", [])]
    CALLER.set(next(iter(names), ""))
    reason = refuse(method, names, next(iter(shown.get("x509_pem_cert", [])), b""))
    if reason:
        raise _DeniedError(reason)


def parsed(kind: Any, data: bytes) -> Any:
    """Return the message of a type that some bytes are; raise ConfigError if they are none."""
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ConfigError(f"not a message of type {kind.DESCRIPTOR.name} ({error})") from None


def secure_server(
    tls: TlsFiles, listen: str, dscp: int, add: Callable[[Any], None]
) -> tuple[Any, str]:
    """Return a started server and its address; mutual TLS only, small messages only.

    ``add`` is given the server before it starts, for its services. Files of ``tls`` that change are
    read again for the next connection.
    """
    grpc = require_grpc()
    options = [
        *channel_options(dscp),
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", MOST_REQUEST),
        ("grpc.max_send_message_length", MOST_REPLY),
        ("grpc.max_concurrent_streams", 16),
        ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
        ("grpc.server_handshake_timeout_ms", int(HANDSHAKE_S * 1e3)),
        ("grpc.max_connection_idle_ms", int(IDLE_S * 1e3)),
    ]
    pool = ThreadPoolExecutor(max_workers=2)  # answers are names again and again: a third is left
    server = grpc.server(pool, options=options, compression=grpc.Compression.Gzip)
    add(server)
    try:
        port = server.add_secure_port(listen, _credentials(tls))
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"cannot listen on {listen} ({in_one_line(error)})") from None
    if not port:
        raise ConfigError(f"cannot listen on {listen}; is another agent there?")
    server.start()
    return server, f"{listen.rpartition(':')[0]}:{port}"


def _credentials(tls: TlsFiles) -> Any:
    """Return what the server shows and trusts; asked anew for every connection."""
    grpc = require_grpc()

    def configuration() -> Any:
        ca, cert, key = tls.read()
        return grpc.ssl_server_certificate_configuration([(key, cert)], ca)

    def fresh() -> Any:
        with suppress(Exception):  # half written: what was read before goes on
            return configuration() if tls.changed() else None
        return None

    return grpc.dynamic_ssl_server_credentials(
        configuration(), fresh, require_client_authentication=True
    )


class AgentServer:
    """One device's agent: created -> started -> closed."""

    def __init__(
        self,
        config: AgentConfig,
        folder: Path,
        source: str,
        clock: Clock | None = None,
        wrap: Wrap | None = None,
    ) -> None:
        self._config, self._folder = config, folder
        self._tls = TlsFiles(config.tls, folder)
        driver = config.make_driver(folder, source)
        self._driver = driver if wrap is None else wrap(driver)
        self.journal = Journal(folder / config.journal)
        self._clocks = {} if clock is None else {"clock": clock}
        self.guard = Guard(
            self._driver,
            self.journal,
            room=RESERVED.given,
            check=self._check,
            second=config.second_person,
            **self._clocks,
        )
        self.loads = LoadJobs(config.loads)
        self._server: Any = None
        self._held = False
        self._shown: Callable[[], None] = lambda: None
        self.address = config.listen

    @property
    def kind(self) -> str:
        """``"nic"`` or ``"switch"``."""
        return self._driver.kind

    def _check(self, targets: Targets) -> None:
        """Raise ConfigError for what this agent's file does not let the device be given."""
        check_limits(targets, self._config.limits, self._line_rate_bps)

    def _line_rate_bps(self) -> float | None:
        rate = self._config.line_rate_gbps
        return self._driver.line_rate_bps() if rate is None else rate * 1e9

    def start(self, *, keep_time: bool = True) -> None:
        """Take up the confirmed setting, look for the stop file, then listen.

        Without ``keep_time`` somebody else calls the guard's ``tick``, at times of theirs.
        """
        self.guard.start()
        self.look_for_stop_file()
        config = self._config
        self._server, self.address = secure_server(
            self._tls, config.listen, config.dscp, self._add_services
        )
        if keep_time:
            _TICKER.add(self.guard.tick)  # first, and whatever becomes of the other
            _TICKER.add(self.look_for_stop_file)
            self._show()

    @property
    def certificate_ends_s(self) -> float:
        """When the agent's certificate ends, in Unix time."""
        return self._tls.ends_s

    def _show(self) -> None:
        """Have the file of metrics written from now on, if the agent's file names one."""
        if self._config.metrics is not None:
            fill = of_agent(self, self._config.device)
            file = TextFile(self._folder / self._config.metrics, fill, time.monotonic)
            self._shown = file.write_if_due
            _TICKER.add(self._shown)

    def _add_services(self, server: Any) -> None:
        """Add the own service, the usual one for health, and reflection if the file says so."""
        from grpc_health.v1 import health, health_pb2, health_pb2_grpc

        config = self._config
        service = AgentService(
            config.device, self._driver, self.guard, lambda: self.journal.bad_lines, self.loads,
            dscp=config.dscp, programs=config.programs, **self._clocks,
        )  # fmt: skip
        own = handlers(SERVICE, service, METHODS, Rights(config, self._folder).refuse, self._tls)
        server.add_generic_rpc_handlers((own,))
        servicer = health.HealthServicer()
        servicer.set("", health_pb2.HealthCheckResponse.SERVING)
        servicer.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
        if config.reflection:
            from grpc_reflection.v1alpha import reflection

            reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME), server)

    def look_for_stop_file(self) -> None:
        """Stop while the file exists; the emergency stop that needs no controller.

        One that cannot be looked for counts as there.
        """
        if self._config.stop_file is None:
            return
        try:
            (self._folder / self._config.stop_file).stat()
            wanted = True
        except OSError as error:
            wanted = not isinstance(error, FileNotFoundError | NotADirectoryError)
        if wanted != self._held:
            self._held = wanted
            if wanted:
                self.loads.stop()
            self.guard.stop(wanted, Who("stop file", str(self._config.stop_file)), "file")

    def wait(self) -> None:
        """Return when the server ends."""
        self._server.wait_for_termination()

    def close(self) -> None:
        """Stop listening. A change on trial is left to the next start, which takes it back."""
        if self._server is not None:
            self._server.stop(0.1).wait()
        _TICKER.remove(self._shown)
        _TICKER.remove(self.look_for_stop_file)
        _TICKER.remove(self.guard.tick)
        self.loads.stop()
        self.guard.cadence.release()


def load_agent(
    path: Path, kind: str | None = None, clock: Clock | None = None, wrap: Wrap | None = None
) -> AgentServer:
    """Return the agent that a file describes; ``kind`` (nic, switch) must be its driver's.

    Tests give it a clock of theirs, and put devices' faults around its driver with ``wrap``.
    """
    config = load_toml(path, AgentConfig)
    agent = AgentServer(config, path.parent, str(path), clock, wrap)
    found = agent.kind
    if kind is not None and kind != found:
        raise ConfigError(f"{path}: the driver {config.driver!r} is for a {found}, not a {kind}")
    return agent
