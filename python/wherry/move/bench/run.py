# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark of move."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from wherry.move.bench import python_calls, readers
from wherry.move.bench.schema import BENCHMARK, PYTHON, READERS, MoveBench

_HERE = {PYTHON: python_calls.measure, READERS: readers.measure}
"""The experiments that run in this process."""


def run(json_file: Path, *, quick: bool = False, only: Sequence[str] = ()) -> MoveBench:
    """Runs the program bench_move and the experiments of this process. Progress goes to standard error. Returns the
    validated results.

    Raises NotFound if bench_move was not built; BenchError if it fails or writes invalid results.
    """
    native = [name for name in only if name not in _HERE]
    if only and not native:
        cores = sorted(os.sched_getaffinity(0))
        document = BENCHMARK.document({"application": cores[0], "agent": cores[-1]}, 5 if quick else 11)
    else:
        more = ["--only", ",".join(native)] if native else []
        BENCHMARK.run_program("bench_move", json_file, quick=quick, more=more)
        document = BENCHMARK.read(json_file)
        BENCHMARK.parse(document, json_file)
    for name, measure in _HERE.items():
        if not only or name in only:
            measure(document, quick=quick)
            BENCHMARK.write(json_file, document)
    return BENCHMARK.parse(document, json_file)
