# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark of move."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wherry.bench import parse_as, read_json, run_program
from wherry.move.bench.schema import MoveBench


def run(json_file: Path, *, quick: bool = False, only: Sequence[str] = ()) -> MoveBench:
    """Runs bench_move, whose progress goes to standard error, and returns the validated results.

    Raises NotFound when it was not built; BenchError when it fails or writes what it should not.
    """
    more = ["--only", ",".join(only)] if only else []
    run_program("bench_move", json_file, quick=quick, more=more)
    return parse_as(MoveBench, read_json(json_file), str(json_file))
