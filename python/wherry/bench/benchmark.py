# SPDX-License-Identifier: Apache-2.0
"""The benchmarks that the services bring, found in the list of services."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wherry import services
from wherry.bench.schema import Run, parse_as, read_json
from wherry.errors import BenchError


@dataclass(frozen=True, slots=True)
class Basis:
    """What a bar is made of, and what the same comparison says under the condition that the bar leaves out.

    A bar is one figure; the benchmark measures most things under two conditions. Whoever reads the bar sees both.
    """

    uses: str
    """The figure of the results that it is made of, and under which conditions; nothing for a bar that is not known."""
    beside: str = ""
    """The figure that it does not use, with its value in this run; nothing where there is none."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What wherry/<service>/bench offers under the name BENCHMARK."""

    name: str
    schema: type[Run]
    basis: Callable[[str, Any], Basis]
    """Of a bar, by its name and the results."""
    paper: str
    """Whose evaluation it repeats, on which machine: a phrase for the report's head."""


def benchmarks() -> dict[str, Benchmark]:
    """All, by name."""
    found: list[Benchmark] = [part.BENCHMARK for part in services.parts("bench")]
    return {one.name: one for one in found}


def load(path: str | os.PathLike[str]) -> Run:
    """Reads and validates a benchmark's file. Raises BenchError."""
    return parse(read_json(path), os.fspath(path))


def parse(document: Any, where: str = "benchmark") -> Run:
    """Validates a decoded JSON document of any benchmark. Keys that are not known are ignored. Raises BenchError."""
    if not isinstance(document, dict):
        raise BenchError(f"{where}: {document!r:.60}; an object is expected")
    known = benchmarks()
    name = document.get("name")
    if name not in known:
        raise BenchError(f"{where}.name: {name!r}; one of {', '.join(map(repr, known))} is expected")
    return parse_as(known[name].schema, document, where)


def basis_of(bar: str, bench: Run) -> Basis:
    """The basis of the bar of that name."""
    return benchmarks()[bench.name].basis(bar, bench.results)
