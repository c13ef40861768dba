# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark of move."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wherry.move.bench.schema import BENCHMARK, MoveBench


def run(json_file: Path, *, quick: bool = False, only: Sequence[str] = ()) -> MoveBench:
    """Runs bench_move, whose progress goes to standard error, and returns the validated results.

    Raises NotFound when it was not built; BenchError when it fails or writes what it should not.
    """
    more = ["--only", ",".join(only)] if only else []
    BENCHMARK.run_program("bench_move", json_file, quick=quick, more=more)
    return BENCHMARK.parse(BENCHMARK.read(json_file), json_file)
