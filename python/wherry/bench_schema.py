# SPDX-License-Identifier: Apache-2.0
"""What a benchmark of Wherry writes: the JSON of `wherry bench NAME --json FILE`, as types, and its validation.

docs/bench-json.md describes the same for people who write or read the JSON without Python.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import re
import types
import typing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

from wherry.errors import Error

SCHEMA = 1
"""The version of the JSON that this module reads."""

Allocator = Literal["malloc", "memalign"]
Api = Literal["cpp", "c_abi"]
Approach = Literal["host_serialization", "smartnic_serialization", "idp_ipc", "idp_page_aligned_ipc", "idp_c_abi"]
"""The five approaches of paper 004, section V-G."""

EXPERIMENTS = ("initiate", "bandwidth", "mapped", "buffers", "conversion", "approaches", "flight")
"""What `--only` of `move` takes. `flight` fills two sections of the results. Route's are in _bench_route.py,
kv's in bench_schema_kv.py."""


class BenchError(Error, ValueError):
    """The JSON is not what a benchmark writes; the message names the file, the place in it, and what was expected."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured."""

    cpu: str
    cores: int
    kernel: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One claim: a median of ratios (or another figure without a machine in it), and the target that it has to meet."""

    value: float
    """Median over the repetitions."""
    min: float
    max: float
    target: str | None = None
    """">= 0.95": a comparison (>=, <=, >, <) and a number; `pass` says whether `value` meets it. None: nothing is
    demanded of this figure, and nothing passed."""
    passed: bool | None = field(default=None, metadata={"key": "pass"})
    unit: str = ""
    published: str | None = None
    """What the paper says, in a few words, or nothing."""


@dataclass(frozen=True, slots=True)
class Initiate:
    """Host time of one offload call (paper 004, figure 2)."""

    columns: int
    size: int
    p50_us: float
    """In the steady state: small offloads of the same columns went ahead, the caches are warm."""
    min_us: float
    max_us: float
    p99_us: float
    after_wait_p50_us: float
    """Of a call right after the wait for a transfer of `size`: the caches have gone cold."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Move against a raw get of the same size, from heap memory, one at a time (figure 3)."""

    size: int
    move_gbps: float
    raw_gbps: float
    ratio: float
    ratio_min: float
    ratio_max: float


@dataclass(frozen=True, slots=True)
class Mapped:
    """Move from memory that Wherry allocated and the agent maps, against one memcpy of the same size."""

    size: int
    move_gbps: float
    memcpy_gbps: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Buffers:
    """Buffer management (figure 4): the allocators of both sides, and whether destination buffers are cached."""

    size: int
    client_alloc: Allocator
    server_alloc: Allocator
    cache: bool
    gbps: float


@dataclass(frozen=True, slots=True)
class Conversion:
    """The four steps from columns to Arrow IPC on the host (figures 7 and 8)."""

    api: Api
    columns: int
    size: int
    arrays_us: float
    schema_us: float
    batch_us: float
    ipc_us: float
    total_us: float


@dataclass(frozen=True, slots=True)
class ApproachRow:
    """Host time and agent throughput of one approach (figure 11)."""

    approach: Approach
    columns: int
    size: int
    host_us: float
    gbps: float
    """Of a source that is in no cache as modified: the same state for all approaches."""
    fresh_gbps: float
    """Of a source that the host has just written (or serialised): its lines are in the other core's caches."""


@dataclass(frozen=True, slots=True)
class FlightRow:
    """Move against Arrow Flight's DoPut of the same batch on the same machine."""

    size: int
    move_gbps: float
    flight_gbps: float
    throughput_ratio: float
    move_cpu_us: float
    flight_cpu_us: float
    cpu_ratio: float


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements, by experiment; what --only left out is empty. Sizes are bytes of data in one offload, all
    columns."""

    initiate: list[Initiate] = field(default_factory=list)
    bandwidth: list[Bandwidth] = field(default_factory=list)
    mapped: list[Mapped] = field(default_factory=list)
    buffers: list[Buffers] = field(default_factory=list)
    conversion: list[Conversion] = field(default_factory=list)
    approaches: list[ApproachRow] = field(default_factory=list)
    flight: list[FlightRow] = field(default_factory=list)
    """One column."""
    flight_16_columns: list[FlightRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of any benchmark says of itself, and its claims."""

    schema: int
    when: str
    wherry: str
    machine: Machine
    versions: dict[str, str]
    pinning: dict[str, int]
    repetitions: int
    bars: dict[str, Bar]


@dataclass(frozen=True, slots=True)
class MoveBench(Run):
    """One run of `wherry bench move`."""

    name: Literal["move"]
    transports: str
    one_sided: Literal["one_sided", "emulated"]
    results: Results


Placement = Literal["inline", "shared", "host"]
"""Who routes messages: the ranks; an agent on the ranks' core; one on another core."""


@dataclass(frozen=True, slots=True)
class HistogramRow:
    """Updates of random counters by two ranks on two cores, inline."""

    counters_log2: int
    updates: int
    mups: float
    """M updates/s of both ranks together."""
    limit_mups: float
    """Of a hand-written exchange of 16-byte messages, turn by turn in the same processes."""


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer's histogram, which took turns with ours."""

    peer: str
    counters_log2: int
    mups: float
    inline_mups: float
    ratio: float
    """Ours over the peer's: the median of those of neighbours."""
    ratio_min: float
    ratio_max: float
    samples: list[float]
    """All of the peer's M updates/s."""


@dataclass(frozen=True, slots=True)
class RandomSizes:
    """Messages of 8 to 4096 bytes against plain copies through the same buffers, each way."""

    payload_gbytes: float
    copy_gbytes: float
    ratio: float


@dataclass(frozen=True, slots=True)
class AgentRate:
    """What one routing thread forwards."""

    size: int
    mmps: float


@dataclass(frozen=True, slots=True)
class Latency:
    """One message at a time between two ranks of two nodes, one way."""

    placement: Placement
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class MessageSizes:
    """Two ranks of two nodes that send each other messages of one size."""

    placement: Placement
    size: int
    mmps: float
    """M messages/s of both together."""
    gbps: float
    """Of payload."""
    transfer_bytes: float
    """Average of what a rank handed on."""
    blocked_share: float
    """Of a rank's time: from a refused send until the message was taken."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One setting by itself, the others at their defaults (paper 001, figure 7)."""

    placement: Placement
    parameter: Literal["buffer_bytes", "buffers", "routing_threads"]
    value: int
    is_default: bool
    mmps: float
    rank_transfer_bytes: float
    blocked_share: float
    agent_transfer_bytes: float | None
    """None: inline, no agent."""
    agent_blocked_per_transfer: float | None


@dataclass(frozen=True, slots=True)
class WeakScaling:
    """The same number of messages a node on more nodes, all of them on the same two cores (figure 8)."""

    nodes: int
    ns_per_message: float
    over_2_nodes: float
    rank_transfer_bytes: float
    agent_transfer_bytes: float


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """Resident memory of one routing agent as nodes grow."""

    nodes: int
    rss_bytes: float
    pss_bytes: float
    idle_rss_bytes: float
    """Before its first job."""
    inbox_bytes: int
    """What the layout says: of its own inbox, which the budget counts."""
    lane_bytes: int
    """And of the rings in others' inboxes that it writes into."""


@dataclass(frozen=True, slots=True)
class Link:
    """What passes between two nodes when ranks do nothing but hand on whole buffers."""

    placement: Placement
    gbps: float


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """An application on two nodes of a rank each (table 2)."""

    app: str
    arguments: list[str]
    inline_seconds: float
    shared_seconds: float
    host_seconds: float
    speedup: float
    """host over shared: the paper's x86 over None."""
    inline_speedup: float
    """inline over shared."""
    messages: int
    bytes: int
    """That all ranks handed on, headers included."""
    average_transfer: float
    network_share: float
    """Of `link`, placement host: the bytes a second of the application over those of whole buffers."""
    mc_ratio: float | None
    """Bytes from memory (last-level cache misses) over bytes routed; None: not counted here."""
    mc_estimate: float | None
    """Where it was not counted: what `wherry advise` estimates, an upper bound."""
    mc_missing: str
    """Why mc_ratio is None."""
    category: str
    """What that makes it: communication-dominated, balanced or host-dominated."""
    published_speedup: float
    published_network_share: float
    published_mc_ratio: float


@dataclass(frozen=True, slots=True)
class RouteResults:
    """The measurements, by experiment; what --only left out is empty. A `size` is bytes of payload in one message."""

    histogram: list[HistogramRow] = field(default_factory=list)
    peers: list[PeerRow] = field(default_factory=list)
    random_sizes: list[RandomSizes] = field(default_factory=list)
    agent_rate: list[AgentRate] = field(default_factory=list)
    latency: list[Latency] = field(default_factory=list)
    message_sizes: list[MessageSizes] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    weak_scaling: list[WeakScaling] = field(default_factory=list)
    agent_memory: list[AgentMemory] = field(default_factory=list)
    link: list[Link] = field(default_factory=list)
    applications: list[ApplicationRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RouteBench(Run):
    """One run of `wherry bench route`."""

    name: Literal["route"]
    results: RouteResults


if TYPE_CHECKING:
    from wherry.bench_schema_kv import KvBench

_MOST = 1 << 24  # characters of a benchmark's file: they have some ten thousand

Bench = Union[MoveBench, RouteBench, "KvBench"]


def load(path: str | os.PathLike[str]) -> Bench:
    """Reads and validates a benchmark's file. Raises BenchError."""
    return parse(read_json(path), os.fspath(path))


def read_json(path: str | os.PathLike[str]) -> Any:
    """The file's JSON, not validated yet; NaN and infinities are refused. Raises BenchError."""

    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is not JSON")

    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(_MOST + 1)
        if len(text) <= _MOST:
            return json.loads(text, parse_constant=refuse)
    except OSError as error:
        raise BenchError(f"cannot read {os.fspath(path)}: {error.strerror}") from None
    except ValueError as error:
        raise BenchError(f"{os.fspath(path)} is not JSON: {error}") from None
    raise BenchError(f"cannot read {os.fspath(path)}: it has more than {_MOST} characters")


def parse(document: Any, where: str = "benchmark") -> Bench:
    """Validates a decoded JSON document of any benchmark. Keys that are not known are ignored. Raises BenchError."""
    from wherry.bench_schema_kv import parse_kv

    name = document.get("name") if isinstance(document, dict) else None
    if name == "kv":
        return parse_kv(document, where)
    return parse_route(document, where) if name == "route" else parse_move(document, where)


def parse_move(document: Any, where: str = "benchmark") -> MoveBench:
    """parse() of what must be move's."""
    bench: MoveBench = parse_as(MoveBench, document, where)
    return bench


def parse_route(document: Any, where: str = "benchmark") -> RouteBench:
    """parse() of what must be route's."""
    bench: RouteBench = parse_as(RouteBench, document, where)
    return bench


def parse_as(kind: type, document: Any, where: str) -> Any:
    """`document` as one of the benchmarks' classes. Raises BenchError."""
    if isinstance(document, dict) and document.get("schema") != SCHEMA:
        raise BenchError(f"{where}: schema is {document.get('schema')!r}; this Wherry reads schema {SCHEMA}")
    bench = _convert(kind, document, where)
    try:
        datetime.fromisoformat(bench.when)
    except ValueError:
        raise BenchError(f"{where}.when: {bench.when!r} is not an ISO 8601 time") from None
    if bench.repetitions < 1:
        raise BenchError(f"{where}.repetitions: {bench.repetitions}; at least 1 is expected")
    for name, bar in bench.bars.items():
        _check_bar(bar, f"{where}.bars.{name}")
    for section in dataclasses.fields(bench.results):
        for index, row in enumerate(getattr(bench.results, section.name)):
            for name in (column.name for column in dataclasses.fields(row)):
                value = getattr(row, name)
                if isinstance(value, int | float) and value < 0:
                    raise BenchError(f"{where}.results.{section.name}[{index}].{name}: {value} is negative")
    return bench


def _check_bar(bar: Bar, at: str) -> None:
    if not bar.min <= bar.value <= bar.max:
        raise BenchError(f"{at}: value {bar.value:g} is not between min {bar.min:g} and max {bar.max:g}")
    if bar.target is None:
        if bar.passed is not None:
            raise BenchError(f"{at}: pass is {bar.passed}, but there is no target")
        return
    if bar.passed is None:
        raise BenchError(f"{at}: pass is missing")
    if bar.passed != meets(bar.value, bar.target, at):
        raise BenchError(f"{at}: pass is {bar.passed}, but {bar.value:g} {bar.target} says otherwise")


_TARGET = re.compile(r"(>=|<=|>|<)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)$")


def meets(value: float, target: str, where: str = "target") -> bool:
    """Whether `value` meets a bar's target, ">= 0.95". Raises BenchError for a target of another form."""
    match = _TARGET.match(target.strip())
    try:
        limit = float(match[2]) if match else math.nan
    except ValueError:
        limit = math.nan
    if match is None or math.isnan(limit):
        raise BenchError(f"{where}: {target!r} is no target: a comparison and a number, as '>= 0.95', are expected")
    return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[match[1]]


def _convert(kind: Any, value: Any, where: str) -> Any:
    """`value` as `kind`, which is one of the types that the dataclasses above use."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object(kind, value, where)
    if origin is list:
        return [_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(_a(list, value, where))]
    if origin is dict:
        return {key: _convert(arguments[1], item, f"{where}.{key}") for key, item in _a(dict, value, where).items()}
    if origin is Literal:
        if value not in arguments:
            raise BenchError(f"{where}: {value!r}; one of {', '.join(map(repr, arguments))} is expected")
        return value
    if origin in (types.UnionType, typing.Union):
        rest = next(argument for argument in arguments if argument is not type(None))
        return None if value is None else _convert(rest, value, where)
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BenchError(f"{where}: {_shown(value)}; a number is expected")
        if not math.isfinite(value):
            raise BenchError(f"{where}: {value}; a finite number is expected")
        return float(value)
    return _a(kind, value, where)


def _a(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = {dict: "an object", list: "an array", str: "a string", int: "a whole number", bool: "true or false"}
        raise BenchError(f"{where}: {_shown(value)}; {names.get(kind, kind.__name__)} is expected")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def _object(kind: type, value: Any, where: str) -> Any:
    value = _a(dict, value, where)
    hints = typing.get_type_hints(kind)
    given: dict[str, Any] = {}
    for member in dataclasses.fields(kind):
        key = member.metadata.get("key", member.name)
        if key in value:
            given[member.name] = _convert(hints[member.name], value[key], f"{where}.{key}")
        elif member.default is dataclasses.MISSING and member.default_factory is dataclasses.MISSING:
            raise BenchError(f"{where}: {key} is missing")
    return kind(**given)


def keys(kind: type) -> list[str]:
    """The JSON keys of one of the dataclasses above, in order."""
    return [member.metadata.get("key", member.name) for member in dataclasses.fields(kind)]


def this_machine() -> Machine:
    """The machine that this process runs on."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # not Linux, or no /proc
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Machine(cpu=cpu, cores=os.cpu_count() or 1, kernel=platform.release(), memory_bytes=pages * page)


def wherry_version() -> str:
    """The version of this package, as its compiled module, its metadata or its checkout say."""
    import importlib.metadata

    import wherry
    from wherry.system import paths

    version = getattr(wherry, "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version("wherry")
    except importlib.metadata.PackageNotFoundError:
        root = paths.repository()
        text = (root / "CMakeLists.txt").read_text() if root is not None else ""
        match = re.search(r"project\(wherry VERSION ([0-9.]+)", text)
        return match[1] if match else "unknown"
