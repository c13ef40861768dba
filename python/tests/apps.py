# SPDX-License-Identifier: Apache-2.0
"""Runs the applications of apps/ as jobs of several ranks and combines the ranks' output files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from wherry.system import paths

# Nodes, and ranks per node. ALONE runs the program without a job. A job takes 1 s to launch, so most tests use one or
# two.
ALONE, JOBS = (1, 1), [(1, 1), (1, 2), (2, 2)]


def program(name: str) -> Path:
    root = paths.repository()
    assert root is not None, "the applications are tested in a checkout"
    path = root / "build" / "release" / "apps" / name
    assert path.is_file(), f"{path} was not built: `make build`"
    return path


def execute(name: str, *arguments: object, job: tuple[int, int] = ALONE) -> subprocess.CompletedProcess[str]:
    line = [str(program(name)), *map(str, arguments)]
    if job != ALONE:
        nodes, ranks = job
        run = [sys.executable, "-m", "wherry.cli", "run", "--nodes", str(nodes), "--ranks-per-node", str(ranks)]
        line = [*run, "--timeout", "45", "--", *line]
    return subprocess.run(
        line, capture_output=True, text=True, timeout=300, env=os.environ | {"UCX_LOG_LEVEL": "error"}
    )


@dataclass
class Outcome:
    """The JSON summary and the output files of a job."""

    json: dict[str, Any]
    prefix: Path
    ranks: int

    def parts(self, suffix: str = ".npy") -> list[np.ndarray]:
        return [np.load(f"{self.prefix}.{rank}{suffix}") for rank in range(self.ranks)]

    def cyclic(self) -> np.ndarray:
        """The array that is distributed cyclically: its element r + i * ranks is element i of rank r."""
        parts = self.parts()
        whole = np.empty(sum(map(len, parts)), parts[0].dtype)
        for rank, part in enumerate(parts):
            whole[rank :: self.ranks] = part
        return whole


def run_app(directory: Path, name: str, *arguments: object, job: tuple[int, int] = ALONE) -> Outcome:
    """Runs an application, which must succeed. Its output files have the prefix `out` in `directory`."""
    summary = directory / "summary.json"
    done = execute(name, *arguments, "--output", directory / "out", "--json", summary, job=job)
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = Outcome(json.loads(summary.read_text()), directory / "out", job[0] * job[1])
    assert outcome.json["app"] == name
    assert outcome.json["ranks"] == outcome.ranks
    assert outcome.json["statistics"]["handled"] == outcome.json["messages"]
    return outcome


def sum_of_parts(prefix: Path, ranks: int) -> sp.csr_array:
    """The whole matrix, from the rows that each rank wrote."""
    parts = [sp.csr_array(scipy.io.mmread(f"{prefix}.{rank}.mtx", spmatrix=False)) for rank in range(ranks)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    whole.sort_indices()
    return whole


def assert_same_matrix(got: sp.csr_array, expected: sp.csr_array) -> None:
    """Compares the positions and values exactly."""
    expected.sort_indices()
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.indptr, expected.indptr)
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_array_equal(got.data, expected.data)


def random_matrix(rows: int, columns: int, density: float, seed: int, *, integers: bool = False) -> sp.csr_array:
    generator = np.random.default_rng(seed)
    matrix = sp.random_array((rows, columns), density=density, rng=generator, format="csr")
    if integers:
        matrix.data = generator.integers(1, 1000, matrix.nnz).astype(np.float64)
    return matrix


def write_matrix(path: Path, matrix: sp.csr_array, field: str = "real", symmetry: str = "general") -> Path:
    if field == "integer":
        matrix = matrix.astype(np.int64)
    scipy.io.mmwrite(path, matrix, field=field, symmetry=symmetry, precision=17)
    return path
