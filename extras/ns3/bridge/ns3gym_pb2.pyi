from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

Box: SpaceType
DESCRIPTOR: _descriptor.FileDescriptor
DOUBLE: Dtype
Dict: SpaceType
Discrete: SpaceType
FLOAT: Dtype
INT: Dtype
NoDType: Dtype
NoSpaceType: SpaceType
Tuple: SpaceType
UINT: Dtype

class BoxDataContainer(_message.Message):
    __slots__ = ["doubleData", "dtype", "floatData", "intData", "shape", "uintData"]
    DOUBLEDATA_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    FLOATDATA_FIELD_NUMBER: _ClassVar[int]
    INTDATA_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    UINTDATA_FIELD_NUMBER: _ClassVar[int]
    doubleData: _containers.RepeatedScalarFieldContainer[float]
    dtype: Dtype
    floatData: _containers.RepeatedScalarFieldContainer[float]
    intData: _containers.RepeatedScalarFieldContainer[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    uintData: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, dtype: _Optional[_Union[Dtype, str]] = ..., shape: _Optional[_Iterable[int]] = ..., intData: _Optional[_Iterable[int]] = ..., uintData: _Optional[_Iterable[int]] = ..., floatData: _Optional[_Iterable[float]] = ..., doubleData: _Optional[_Iterable[float]] = ...) -> None: ...

class BoxSpace(_message.Message):
    __slots__ = ["dtype", "high", "highs", "low", "lows", "names", "shape"]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    HIGHS_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOWS_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    dtype: Dtype
    high: float
    highs: _containers.RepeatedScalarFieldContainer[float]
    low: float
    lows: _containers.RepeatedScalarFieldContainer[float]
    names: _containers.RepeatedScalarFieldContainer[str]
    shape: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, low: _Optional[float] = ..., high: _Optional[float] = ..., dtype: _Optional[_Union[Dtype, str]] = ..., shape: _Optional[_Iterable[int]] = ..., lows: _Optional[_Iterable[float]] = ..., highs: _Optional[_Iterable[float]] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class DataContainer(_message.Message):
    __slots__ = ["data", "name", "type"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    data: _any_pb2.Any
    name: str
    type: SpaceType
    def __init__(self, type: _Optional[_Union[SpaceType, str]] = ..., data: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class DictDataContainer(_message.Message):
    __slots__ = ["element"]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    element: _containers.RepeatedCompositeFieldContainer[DataContainer]
    def __init__(self, element: _Optional[_Iterable[_Union[DataContainer, _Mapping]]] = ...) -> None: ...

class DictSpace(_message.Message):
    __slots__ = ["element"]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    element: _containers.RepeatedCompositeFieldContainer[SpaceDescription]
    def __init__(self, element: _Optional[_Iterable[_Union[SpaceDescription, _Mapping]]] = ...) -> None: ...

class DiscreteDataContainer(_message.Message):
    __slots__ = ["data"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: int
    def __init__(self, data: _Optional[int] = ...) -> None: ...

class DiscreteSpace(_message.Message):
    __slots__ = ["n"]
    N_FIELD_NUMBER: _ClassVar[int]
    n: int
    def __init__(self, n: _Optional[int] = ...) -> None: ...

class EnvActMsg(_message.Message):
    __slots__ = ["actData", "apply_only", "duration_ps", "live_flows", "setting", "stopSimReq", "watch"]
    ACTDATA_FIELD_NUMBER: _ClassVar[int]
    APPLY_ONLY_FIELD_NUMBER: _ClassVar[int]
    DURATION_PS_FIELD_NUMBER: _ClassVar[int]
    LIVE_FLOWS_FIELD_NUMBER: _ClassVar[int]
    SETTING_FIELD_NUMBER: _ClassVar[int]
    STOPSIMREQ_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    actData: DataContainer
    apply_only: bool
    duration_ps: int
    live_flows: bool
    setting: _containers.RepeatedCompositeFieldContainer[GroupSetting]
    stopSimReq: bool
    watch: Watch
    def __init__(self, actData: _Optional[_Union[DataContainer, _Mapping]] = ..., stopSimReq: bool = ..., setting: _Optional[_Iterable[_Union[GroupSetting, _Mapping]]] = ..., duration_ps: _Optional[int] = ..., apply_only: bool = ..., watch: _Optional[_Union[Watch, _Mapping]] = ..., live_flows: bool = ...) -> None: ...

class EnvStateMsg(_message.Message):
    __slots__ = ["busy_ns", "done", "error", "error_kind", "info", "isGameOver", "live_flows", "more", "obsData", "reason", "report_data", "report_lengths", "reward", "samples", "time_ps"]
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BUSY_NS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_KIND_FIELD_NUMBER: _ClassVar[int]
    GameOver: EnvStateMsg.Reason
    INFO_FIELD_NUMBER: _ClassVar[int]
    ISGAMEOVER_FIELD_NUMBER: _ClassVar[int]
    LIVE_FLOWS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    OBSDATA_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REPORT_DATA_FIELD_NUMBER: _ClassVar[int]
    REPORT_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SimulationEnd: EnvStateMsg.Reason
    TIME_PS_FIELD_NUMBER: _ClassVar[int]
    busy_ns: int
    done: bool
    error: str
    error_kind: str
    info: str
    isGameOver: bool
    live_flows: bytes
    more: bool
    obsData: DataContainer
    reason: EnvStateMsg.Reason
    report_data: bytes
    report_lengths: _containers.RepeatedScalarFieldContainer[int]
    reward: float
    samples: _containers.RepeatedCompositeFieldContainer[Sample]
    time_ps: int
    def __init__(self, obsData: _Optional[_Union[DataContainer, _Mapping]] = ..., reward: _Optional[float] = ..., isGameOver: bool = ..., reason: _Optional[_Union[EnvStateMsg.Reason, str]] = ..., info: _Optional[str] = ..., time_ps: _Optional[int] = ..., report_lengths: _Optional[_Iterable[int]] = ..., report_data: _Optional[bytes] = ..., error: _Optional[str] = ..., error_kind: _Optional[str] = ..., done: bool = ..., busy_ns: _Optional[int] = ..., samples: _Optional[_Iterable[_Union[Sample, _Mapping]]] = ..., more: bool = ..., live_flows: _Optional[bytes] = ...) -> None: ...

class GroupSetting(_message.Message):
    __slots__ = ["group", "values"]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    group: str
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, group: _Optional[str] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class Handshake(_message.Message):
    __slots__ = ["build_id", "ns3_version", "protocol_major", "protocol_minor", "scenario_hash", "schema", "schema_hash", "seed"]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    NS3_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MAJOR_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MINOR_FIELD_NUMBER: _ClassVar[int]
    SCENARIO_HASH_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_HASH_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    build_id: str
    ns3_version: str
    protocol_major: int
    protocol_minor: int
    scenario_hash: str
    schema: str
    schema_hash: str
    seed: int
    def __init__(self, protocol_major: _Optional[int] = ..., protocol_minor: _Optional[int] = ..., schema_hash: _Optional[str] = ..., schema: _Optional[str] = ..., build_id: _Optional[str] = ..., ns3_version: _Optional[str] = ..., scenario_hash: _Optional[str] = ..., seed: _Optional[int] = ...) -> None: ...

class Sample(_message.Message):
    __slots__ = ["flows", "now_ps", "ports"]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    NOW_PS_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    flows: bytes
    now_ps: int
    ports: bytes
    def __init__(self, now_ps: _Optional[int] = ..., ports: _Optional[bytes] = ..., flows: _Optional[bytes] = ...) -> None: ...

class SimInitAck(_message.Message):
    __slots__ = ["done", "handshake", "stopSimReq"]
    DONE_FIELD_NUMBER: _ClassVar[int]
    HANDSHAKE_FIELD_NUMBER: _ClassVar[int]
    STOPSIMREQ_FIELD_NUMBER: _ClassVar[int]
    done: bool
    handshake: Handshake
    stopSimReq: bool
    def __init__(self, done: bool = ..., stopSimReq: bool = ..., handshake: _Optional[_Union[Handshake, _Mapping]] = ...) -> None: ...

class SimInitMsg(_message.Message):
    __slots__ = ["actSpace", "handshake", "obsSpace", "simProcessId", "wafShellProcessId"]
    ACTSPACE_FIELD_NUMBER: _ClassVar[int]
    HANDSHAKE_FIELD_NUMBER: _ClassVar[int]
    OBSSPACE_FIELD_NUMBER: _ClassVar[int]
    SIMPROCESSID_FIELD_NUMBER: _ClassVar[int]
    WAFSHELLPROCESSID_FIELD_NUMBER: _ClassVar[int]
    actSpace: SpaceDescription
    handshake: Handshake
    obsSpace: SpaceDescription
    simProcessId: int
    wafShellProcessId: int
    def __init__(self, simProcessId: _Optional[int] = ..., wafShellProcessId: _Optional[int] = ..., obsSpace: _Optional[_Union[SpaceDescription, _Mapping]] = ..., actSpace: _Optional[_Union[SpaceDescription, _Mapping]] = ..., handshake: _Optional[_Union[Handshake, _Mapping]] = ...) -> None: ...

class SpaceDescription(_message.Message):
    __slots__ = ["name", "space", "type"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    space: _any_pb2.Any
    type: SpaceType
    def __init__(self, type: _Optional[_Union[SpaceType, str]] = ..., space: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class TupleDataContainer(_message.Message):
    __slots__ = ["element"]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    element: _containers.RepeatedCompositeFieldContainer[DataContainer]
    def __init__(self, element: _Optional[_Iterable[_Union[DataContainer, _Mapping]]] = ...) -> None: ...

class TupleSpace(_message.Message):
    __slots__ = ["element"]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    element: _containers.RepeatedCompositeFieldContainer[SpaceDescription]
    def __init__(self, element: _Optional[_Iterable[_Union[SpaceDescription, _Mapping]]] = ...) -> None: ...

class Watch(_message.Message):
    __slots__ = ["every_ps", "ports"]
    EVERY_PS_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    every_ps: int
    ports: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, every_ps: _Optional[int] = ..., ports: _Optional[_Iterable[int]] = ...) -> None: ...

class SpaceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Dtype(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
