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
from typing import Any, Literal

from wherry.errors import Error

SCHEMA = 1
"""The version of the JSON that this module reads."""

Allocator = Literal["malloc", "memalign"]
Api = Literal["cpp", "c_abi"]
Approach = Literal["host_serialization", "smartnic_serialization", "idp_ipc", "idp_page_aligned_ipc", "idp_c_abi"]
"""The five approaches of paper 004, section V-G."""

EXPERIMENTS = ("initiate", "bandwidth", "mapped", "buffers", "conversion", "approaches", "flight")
"""What `--only` takes. `flight` fills two sections of the results."""


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
    target: str
    """">= 0.95": a comparison (>=, <=, >, <) and a number; `pass` says whether `value` meets it."""
    passed: bool = field(metadata={"key": "pass"})
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
class MoveBench:
    """One run of `wherry bench move`."""

    schema: int
    name: Literal["move"]
    when: str
    wherry: str
    machine: Machine
    versions: dict[str, str]
    pinning: dict[str, int]
    transports: str
    one_sided: Literal["one_sided", "emulated"]
    repetitions: int
    bars: dict[str, Bar]
    results: Results


def load(path: str | os.PathLike[str]) -> MoveBench:
    """Reads and validates a benchmark's file. Raises BenchError."""
    return parse(read_json(path), os.fspath(path))


def read_json(path: str | os.PathLike[str]) -> Any:
    """The file's JSON, not validated yet; NaN and infinities are refused. Raises BenchError."""

    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=refuse)
    except OSError as error:
        raise BenchError(f"cannot read {os.fspath(path)}: {error.strerror}") from None
    except ValueError as error:
        raise BenchError(f"{os.fspath(path)} is not JSON: {error}") from None


def parse(document: Any, where: str = "benchmark") -> MoveBench:
    """Validates a decoded JSON document. Keys that are not known are ignored. Raises BenchError."""
    if isinstance(document, dict) and document.get("schema") != SCHEMA:
        raise BenchError(f"{where}: schema is {document.get('schema')!r}; this Wherry reads schema {SCHEMA}")
    bench: MoveBench = _convert(MoveBench, document, where)
    try:
        datetime.fromisoformat(bench.when)
    except ValueError:
        raise BenchError(f"{where}.when: {bench.when!r} is not an ISO 8601 time") from None
    if bench.repetitions < 1:
        raise BenchError(f"{where}.repetitions: {bench.repetitions}; at least 1 is expected")
    for name, bar in bench.bars.items():
        at = f"{where}.bars.{name}"
        if not bar.min <= bar.value <= bar.max:
            raise BenchError(f"{at}: value {bar.value:g} is not between min {bar.min:g} and max {bar.max:g}")
        if bar.passed != meets(bar.value, bar.target, at):
            raise BenchError(f"{at}: pass is {bar.passed}, but {bar.value:g} {bar.target} says otherwise")
    for section in dataclasses.fields(Results):
        for index, row in enumerate(getattr(bench.results, section.name)):
            for name in (column.name for column in dataclasses.fields(row)):
                value = getattr(row, name)
                if isinstance(value, int | float) and value < 0:
                    raise BenchError(f"{where}.results.{section.name}[{index}].{name}: {value} is negative")
    return bench


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
    from wherry import _paths

    version = getattr(wherry, "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version("wherry")
    except importlib.metadata.PackageNotFoundError:
        root = _paths.repository()
        text = (root / "CMakeLists.txt").read_text() if root is not None else ""
        match = re.search(r"project\(wherry VERSION ([0-9.]+)", text)
        return match[1] if match else "unknown"
