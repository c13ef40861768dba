# SPDX-License-Identifier: Apache-2.0
"""apps/triangle against scipy.sparse and networkx."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from apps import ALONE, execute, random_matrix, run_app, sum_of_parts, write_matrix


def middle_counts(lower: sp.csr_array) -> np.ndarray:
    """For each vertex j, the number of triangles i > j > k: over all edges (i, j), the smaller neighbours k that i and
    j share."""
    return np.asarray((lower * (lower @ lower.T)).sum(axis=0)).ravel().astype(np.uint64)


def lower_of(matrix: sp.csr_array) -> sp.csr_array:
    graph = sp.csr_array(((matrix + matrix.T) != 0).astype(np.int64))
    return sp.csr_array(sp.tril(graph, -1))


@pytest.mark.parametrize(
    ("rows", "degree", "distribution", "job"),
    [
        (1, 5, "cyclic", ALONE),
        (5000, 16, "block", ALONE),
        (100, 10, "cyclic", (1, 2)),
        (5000, 16, "cyclic", (2, 2)),
        (1000, 16, "block", (2, 2)),
    ],
)
def test_generated_graph_expect_the_count_of_scipy_and_networkx(
    tmp_path: Path, rows: int, degree: int, distribution: str, job: tuple[int, int]
) -> None:
    size = ("--rows", rows, "--degree", degree, "--save-input", tmp_path / "in", "--distribution", distribution)
    out = run_app(tmp_path, "triangle", *size, job=job)
    lower = sum_of_parts(tmp_path / "in", out.ranks)
    assert (sp.triu(lower) != 0).nnz == 0
    graph = lower + lower.T
    assert out.json["triangles"] == (graph * (graph @ graph)).sum() // 6
    assert out.json["triangles"] == sum(nx.triangles(nx.from_scipy_sparse_array(graph)).values()) // 3
    at_vertex = out.cyclic() if distribution == "cyclic" else np.concatenate(out.parts())
    np.testing.assert_array_equal(at_vertex, middle_counts(lower))


@pytest.mark.parametrize(("symmetry", "job"), [("general", ALONE), ("symmetric", ALONE), ("general", (1, 2))])
def test_file_expect_directions_values_and_loops_not_to_count(
    tmp_path: Path, symmetry: str, job: tuple[int, int]
) -> None:
    matrix = sp.csr_array(random_matrix(150, 150, 0.08, 5) + sp.eye_array(150))
    if symmetry == "symmetric":
        matrix = sp.csr_array(matrix + matrix.T)
    path = write_matrix(tmp_path / "m.mtx", matrix, symmetry=symmetry)
    out = run_app(tmp_path, "triangle", "--matrix", path, job=job)
    lower = lower_of(matrix)
    assert out.json["edges"] == lower.nnz
    assert out.json["triangles"] > 100
    np.testing.assert_array_equal(out.cyclic(), middle_counts(lower))


@pytest.mark.parametrize("job", [ALONE, (2, 2)])
def test_known_graphs_expect_known_counts(tmp_path: Path, job: tuple[int, int]) -> None:
    karate = nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None, format="csr")
    path = write_matrix(tmp_path / "karate.mtx", karate, "pattern", "symmetric")
    assert run_app(tmp_path, "triangle", "--matrix", path, job=job).json["triangles"] == 45
    complete = nx.to_scipy_sparse_array(nx.complete_graph(20), format="csr")
    path = write_matrix(tmp_path / "complete.mtx", complete, "pattern")
    assert run_app(tmp_path, "triangle", "--matrix", path, job=job).json["triangles"] == 20 * 19 * 18 // 6


def test_oblong_matrix_expect_that_it_is_no_graph(tmp_path: Path) -> None:
    path = write_matrix(tmp_path / "m.mtx", random_matrix(5, 6, 0.5, 1))
    done = execute("triangle", "--matrix", path)
    assert done.returncode == 1
    assert "a matrix of 5 x 6 is not a graph: want a square one" in done.stderr
