from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Ask(_message.Message):
    __slots__ = ["interval"]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    interval: int
    def __init__(self, interval: _Optional[int] = ...) -> None: ...

class Begin(_message.Message):
    __slots__ = ["scenario", "seed"]
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    seed: int
    def __init__(self, seed: _Optional[int] = ..., scenario: _Optional[str] = ...) -> None: ...

class Change_(_message.Message):
    __slots__ = ["members", "predecessor", "withdrawn_from"]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PREDECESSOR_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FROM_FIELD_NUMBER: _ClassVar[int]
    members: bytes
    predecessor: str
    withdrawn_from: bytes
    def __init__(self, members: _Optional[bytes] = ..., withdrawn_from: _Optional[bytes] = ..., predecessor: _Optional[str] = ...) -> None: ...

class Description(_message.Message):
    __slots__ = ["device", "driver", "dscp", "kind", "knobs", "ports", "programs", "protocol", "version"]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    DSCP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KNOBS_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    device: str
    driver: str
    dscp: int
    kind: str
    knobs: _containers.RepeatedScalarFieldContainer[str]
    ports: _containers.RepeatedScalarFieldContainer[str]
    programs: _containers.RepeatedScalarFieldContainer[str]
    protocol: int
    version: str
    def __init__(self, device: _Optional[str] = ..., kind: _Optional[str] = ..., driver: _Optional[str] = ..., knobs: _Optional[_Iterable[str]] = ..., version: _Optional[str] = ..., protocol: _Optional[int] = ..., ports: _Optional[_Iterable[str]] = ..., dscp: _Optional[int] = ..., programs: _Optional[_Iterable[str]] = ...) -> None: ...

class Events(_message.Message):
    __slots__ = ["json"]
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, json: _Optional[_Iterable[str]] = ...) -> None: ...

class Figures(_message.Message):
    __slots__ = ["began_s", "ended_s", "interval", "values"]
    class ValuesEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    BEGAN_S_FIELD_NUMBER: _ClassVar[int]
    ENDED_S_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    began_s: float
    ended_s: float
    interval: int
    values: _containers.ScalarMap[str, int]
    def __init__(self, values: _Optional[_Mapping[str, int]] = ..., interval: _Optional[int] = ..., began_s: _Optional[float] = ..., ended_s: _Optional[float] = ...) -> None: ...

class Flows(_message.Message):
    __slots__ = ["at_us", "bytes", "peers", "seconds", "to"]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    at_us: _containers.RepeatedScalarFieldContainer[int]
    bytes: _containers.RepeatedScalarFieldContainer[int]
    peers: _containers.RepeatedScalarFieldContainer[str]
    seconds: float
    to: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, peers: _Optional[_Iterable[str]] = ..., seconds: _Optional[float] = ..., to: _Optional[_Iterable[int]] = ..., bytes: _Optional[_Iterable[int]] = ..., at_us: _Optional[_Iterable[int]] = ...) -> None: ...

class Instant(_message.Message):
    __slots__ = ["done", "ps"]
    DONE_FIELD_NUMBER: _ClassVar[int]
    PS_FIELD_NUMBER: _ClassVar[int]
    done: bool
    ps: int
    def __init__(self, ps: _Optional[int] = ..., done: bool = ...) -> None: ...

class Interval(_message.Message):
    __slots__ = ["ms"]
    MS_FIELD_NUMBER: _ClassVar[int]
    ms: float
    def __init__(self, ms: _Optional[float] = ...) -> None: ...

class Line(_message.Message):
    __slots__ = ["after", "before", "knob", "needs_reset", "place", "shared_by", "unit"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    KNOB_FIELD_NUMBER: _ClassVar[int]
    NEEDS_RESET_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    SHARED_BY_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    after: str
    before: str
    knob: str
    needs_reset: bool
    place: str
    shared_by: _containers.RepeatedScalarFieldContainer[str]
    unit: str
    def __init__(self, place: _Optional[str] = ..., knob: _Optional[str] = ..., unit: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ..., shared_by: _Optional[_Iterable[str]] = ..., needs_reset: bool = ...) -> None: ...

class LoadJob(_message.Message):
    __slots__ = ["flows", "options", "program"]
    class OptionsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    flows: Flows
    options: _containers.ScalarMap[str, str]
    program: str
    def __init__(self, program: _Optional[str] = ..., options: _Optional[_Mapping[str, str]] = ..., flows: _Optional[_Union[Flows, _Mapping]] = ...) -> None: ...

class LoadState(_message.Message):
    __slots__ = ["code", "output", "program", "running"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    code: int
    output: str
    program: str
    running: bool
    def __init__(self, program: _Optional[str] = ..., running: bool = ..., code: _Optional[int] = ..., output: _Optional[str] = ...) -> None: ...

class Named(_message.Message):
    __slots__ = ["transaction", "who", "why", "withdrawn_from"]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FROM_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    who: str
    why: str
    withdrawn_from: bytes
    def __init__(self, transaction: _Optional[str] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., withdrawn_from: _Optional[bytes] = ...) -> None: ...

class Nothing(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Plan_(_message.Message):
    __slots__ = ["lines"]
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[Line]
    def __init__(self, lines: _Optional[_Iterable[_Union[Line, _Mapping]]] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ["targets"]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    targets: _containers.RepeatedCompositeFieldContainer[Target]
    def __init__(self, targets: _Optional[_Iterable[_Union[Target, _Mapping]]] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ["ps"]
    PS_FIELD_NUMBER: _ClassVar[int]
    ps: int
    def __init__(self, ps: _Optional[int] = ...) -> None: ...

class Status_(_message.Message):
    __slots__ = ["bad_lines", "confirmed", "left_s", "passed", "problem", "state", "transaction", "withdrawn"]
    BAD_LINES_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    LEFT_S_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    bad_lines: int
    confirmed: str
    left_s: float
    passed: _containers.RepeatedScalarFieldContainer[str]
    problem: str
    state: str
    transaction: str
    withdrawn: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, state: _Optional[str] = ..., transaction: _Optional[str] = ..., left_s: _Optional[float] = ..., confirmed: _Optional[str] = ..., problem: _Optional[str] = ..., bad_lines: _Optional[int] = ..., passed: _Optional[_Iterable[str]] = ..., withdrawn: _Optional[_Iterable[str]] = ...) -> None: ...

class Switch(_message.Message):
    __slots__ = ["on", "who", "why"]
    ON_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    on: bool
    who: str
    why: str
    def __init__(self, on: bool = ..., who: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Target(_message.Message):
    __slots__ = ["knobs", "port"]
    class KnobsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    KNOBS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    knobs: _containers.ScalarMap[str, float]
    port: str
    def __init__(self, port: _Optional[str] = ..., knobs: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Trial(_message.Message):
    __slots__ = ["members", "revert_after_s", "transaction"]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REVERT_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    members: bytes
    revert_after_s: float
    transaction: str
    def __init__(self, transaction: _Optional[str] = ..., revert_after_s: _Optional[float] = ..., members: _Optional[bytes] = ...) -> None: ...

class Wanted(_message.Message):
    __slots__ = ["restores", "targets", "transaction", "who", "why"]
    RESTORES_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    restores: str
    targets: _containers.RepeatedCompositeFieldContainer[Target]
    transaction: str
    who: str
    why: str
    def __init__(self, transaction: _Optional[str] = ..., targets: _Optional[_Iterable[_Union[Target, _Mapping]]] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., restores: _Optional[str] = ...) -> None: ...
