# SPDX-License-Identifier: Apache-2.0
"""The JSON of `wherry bench NAME --json FILE` as types, for the benchmarks of all services.

docs/reference/bench-json.md describes the same format without Python. A service adds the types of its results: a
dataclass with a list of rows for each experiment.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import typing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar

import msgspec

from wherry.errors import BenchError
from wherry.system import Machine

SCHEMA = 1
"""The version of the JSON that this module reads."""
_MOST = 1 << 24  # limit for a benchmark's file, in characters: a usual file has some ten thousand


class Bar(msgspec.Struct, frozen=True):
    """One measured value, usually a median of ratios, which does not depend on the machine, and the target that it must
    meet."""

    value: float
    """Median over the repetitions."""
    min: float
    max: float
    target: str | None = None
    """">= 0.95": a comparison (>=, <=, >, <) and a number. `pass` says whether `value` meets the target. None: this
    value has no target, and `pass` is empty."""
    passed: bool | None = msgspec.field(name="pass", default=None)
    unit: str = ""
    published: str | None = None
    """The paper's value in a few words. Empty if there is none."""


@dataclass(frozen=True, slots=True)
class Run:
    """The common head of each benchmark's document, and its bars."""

    schema: int
    when: str
    wherry: str
    machine: Machine
    versions: dict[str, str]
    pinning: dict[str, int]
    repetitions: int
    bars: dict[str, Bar]
    name: str
    """The benchmark."""
    results: Any
    """The rows of each experiment; empty for an experiment that did not run."""
    quick: bool = field(default=False, kw_only=True)
    """Whether the run used --quick. Its figures are then a first impression, not a measurement."""
    only: list[str] = field(default_factory=list, kw_only=True)
    """The experiments that --only selected. An empty list means all."""


def rows(title: str) -> Any:
    """Declares a field of a service's results: the rows of one experiment, with the title of their table."""
    return field(default_factory=list, metadata={"title": title})


Kind = TypeVar("Kind", bound=Run)


def read_json(path: str | os.PathLike[str]) -> Any:
    """Reads the file's JSON without validating its fields. Raises BenchError, also for NaN and infinities."""

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


def parse_as(kind: type[Kind], document: Any, where: str = "benchmark") -> Kind:
    """Returns `document` as a benchmark's run. Unknown keys are ignored. Raises BenchError."""
    if isinstance(document, dict) and document.get("schema") != SCHEMA:
        raise BenchError(f"{where}: schema is {document.get('schema')!r}; this Wherry reads schema {SCHEMA}")
    try:
        bench = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise BenchError(_explained(str(error), kind, document, where)) from None
    _check(bench, where)
    return bench


def _check(bench: Run, where: str) -> None:
    """Checks rules that the types cannot express."""
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
                _check_figures(value, f"{where}.results.{section.name}[{index}].{name}", least=0)


def _check_figures(value: Any, at: str, least: float = -math.inf) -> None:
    for figure in value if isinstance(value, list) else [value]:
        if isinstance(figure, float) and not math.isfinite(figure):
            raise BenchError(f"{at}: {figure}; a finite number is expected")
        if isinstance(figure, int | float) and figure < least:
            raise BenchError(f"{at}: {figure} is negative")


def _check_bar(bar: Bar, at: str) -> None:
    for figure in (bar.value, bar.min, bar.max):
        _check_figures(figure, at)
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
    """Whether `value` meets a bar's target, such as ">= 0.95". Raises BenchError if the target has another form."""
    match = _TARGET.match(target.strip())
    try:
        limit = float(match[2]) if match else math.nan
    except ValueError:
        limit = math.nan
    if match is None or math.isnan(limit):
        raise BenchError(f"{where}: {target!r} is not a target: a comparison and a number, as '>= 0.95', are expected")
    return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[match[1]]


_WORDS = {
    "object": "an object", "array": "an array", "str": "a string", "int": "a whole number", "float": "a number",
    "bool": "true or false",
}  # fmt: skip


def _explained(message: str, kind: Any, document: Any, where: str) -> str:
    """Rewrites msgspec's "Expected `float`, got `str` - at `$.bars[...].min`" with file, key, value and allowed
    values."""
    what, _, path = message.partition(" - at `$")
    value = document
    for key, index in re.findall(r"\.(\w+)|\[([^\]]+)\]", path):
        kind = _plain(kind)
        if key:
            kind, value, where = _fields(kind)[key], value[key], f"{where}.{key}"
        elif index == "...":  # an object with arbitrary keys: msgspec does not say which key is wrong
            kind = typing.get_args(kind)[1]
            name = next(name for name, item in value.items() if not _fits(item, kind))
            value, where = value[name], f"{where}.{name}"
        else:
            kind, value, where = typing.get_args(kind)[0], value[int(index)], f"{where}[{index}]"
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", what):
        return f"{where}: {missing[1]} is missing"
    kind = _plain(kind)
    if typing.get_origin(kind) is Literal:
        wanted = f"one of {', '.join(map(repr, typing.get_args(kind)))}"
    else:
        named = re.match(r"Expected `(\w+)", what)
        wanted = _WORDS.get(named[1], named[1]) if named else what
    shown = repr(value)
    return f"{where}: {shown if len(shown) < 60 else shown[:57] + '...'}; {wanted} is expected"


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _plain(kind: Any) -> Any:
    """The type without its "or null" alternative."""
    if typing.get_origin(kind) not in (UnionType, typing.Union):
        return kind
    return next(one for one in typing.get_args(kind) if one is not type(None))


def _fields(kind: Any) -> dict[str, Any]:
    """The type of each field of an object, by the field's key in JSON."""
    if dataclasses.is_dataclass(kind):
        return typing.get_type_hints(kind)
    return {member.encode_name: member.type for member in msgspec.structs.fields(kind)}


def keys(kind: type) -> list[str]:
    """The JSON keys of one of these types, in order."""
    return list(_fields(kind))
