# SPDX-License-Identifier: Apache-2.0
"""Finds the benchmarks of all services through the list of services."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from wherry import services
from wherry.bench import program
from wherry.bench.published import published_text, published_values
from wherry.bench.schema import Kind, Run, parse_as, read_json
from wherry.errors import BenchError


@dataclass(frozen=True, slots=True)
class Basis:
    """The source of a bar, and the result of the same comparison under the other measured condition.

    A bar is one figure, but the benchmark measures most things under two conditions. Readers of the bar see both
    results.
    """

    uses: str
    """The measured figure that the bar uses, and its conditions. Empty for an unknown bar."""
    beside: str = ""
    """The figure under the other condition, with its value in this run. Empty if there is none."""


@dataclass(frozen=True, slots=True)
class Benchmark(Generic[Kind]):
    """Each package wherry/<service>/bench defines one such object, BENCHMARK. The service's own experiments use it as
    well.

    A run begins with document(), adds its figures, and ends with parse() and write(). run_program() runs the programs
    that measure, and read() reads their output.
    """

    name: str
    schema: type[Kind]
    basis: Callable[[str, Any], Basis]
    """Computes the basis of a bar from its name and the results."""
    paper: str
    """The paper's evaluation that the benchmark repeats, and its machine, as a phrase for the report's head."""

    def document(self, pinning: Mapping[str, int], repetitions: int) -> dict[str, Any]:
        """The JSON document at the beginning of a run, before any measurement."""
        return program.document_of(self.name, pinning, repetitions)

    def parse(self, document: Any, where: str | os.PathLike[str]) -> Kind:
        """Validates a decoded JSON document of this benchmark. `where`: for messages. Raises BenchError."""
        return parse_as(self.schema, document, os.fspath(where))

    def write(self, file: Path, document: Mapping[str, Any]) -> None:
        """Writes the file atomically: an interrupted run leaves an old file unchanged. Raises
        OSError."""
        program.write(file, document)

    def read(self, file: str | os.PathLike[str]) -> Any:
        """Reads the JSON that a program wrote, without validation. Raises BenchError."""
        return read_json(file)

    def run_program(self, name: str, file: Path, *, quick: bool, more: Sequence[str], folder: str = "bench") -> None:
        """Runs a benchmark program of the build until it succeeds and has written `file`. Raises NotFound,
        BenchError."""
        program.run_program(name, file, quick=quick, more=more, folder=folder)

    def start(self, line: Sequence[str], **more: Any) -> subprocess.Popen[Any]:
        """Starts a program. It ends when this process ends, for any reason. `more`: arguments of subprocess.Popen."""
        return program.start(line, **more)

    def wait_for(self, process: subprocess.Popen[Any]) -> int:
        """Waits for the program's end and returns its exit status. After Ctrl-C the program has time to end its
        children."""
        return program.wait_for(process)

    def end(self, *processes: subprocess.Popen[Any]) -> None:
        """Asks all processes to end, including stopped ones, and waits. A process that takes too long is killed."""
        program.end(*processes)

    def scratch_directory(self, base: str | None = None) -> AbstractContextManager[Path]:
        """A private directory. It is removed at the end of the block or of the process, even after kill -9. `base`: the
        parent directory; None: the system's directory for temporary files. Raises Error."""
        return program.scratch_directory(base)

    @property
    def published(self) -> dict[str, dict[str, Any]]:
        """The published values with which the service compares its own, by id. Callers must not change them."""
        return published_values(self.name)

    def published_text(self, identifier: str) -> str:
        """A published value in words: "at least 87 %"."""
        return published_text(self.published[identifier])


def benchmarks() -> dict[str, Benchmark[Any]]:
    """All benchmarks, by name."""
    found: list[Benchmark[Any]] = [part.BENCHMARK for part in services.parts("bench")]
    return {one.name: one for one in found}


def load(path: str | os.PathLike[str]) -> Run:
    """Reads and validates a benchmark's file. Raises BenchError."""
    return parse(read_json(path), os.fspath(path))


def parse(document: Any, where: str = "benchmark") -> Run:
    """Validates a decoded JSON document of any benchmark. Unknown keys are ignored. Raises BenchError."""
    if not isinstance(document, dict):
        raise BenchError(f"{where}: {document!r:.60}; an object is expected")
    known = benchmarks()
    name = document.get("name")
    if name not in known:
        raise BenchError(f"{where}.name: {name!r}; one of {', '.join(map(repr, known))} is expected")
    found: Run = known[name].parse(document, where)
    return found


def basis_of(bar: str, bench: Run) -> Basis:
    """Returns the basis of the bar named `bar`."""
    return benchmarks()[bench.name].basis(bar, bench.results)
