# SPDX-License-Identifier: Apache-2.0
"""apps/sssp against scipy.sparse.csgraph."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from apps import ALONE, execute, random_matrix, run_app, sum_of_parts, write_matrix
from scipy.sparse.csgraph import dijkstra


@pytest.mark.parametrize(
    ("rows", "degree", "source", "values", "job"),
    [
        (1, 1, 1, (), ALONE),
        (20_000, 8, 20_000, ("--real",), ALONE),
        (2000, 2, 77, (), (1, 2)),
        (20_000, 8, 20_000, (), (2, 2)),
        (2000, 2, 77, ("--real",), (2, 2)),
    ],
)
def test_generated_graph_expect_the_distances_of_dijkstra(
    tmp_path: Path, rows: int, degree: int, source: int, values: tuple[str, ...], job: tuple[int, int]
) -> None:
    size = ("--rows", rows, "--degree", degree, "--source", source, "--save-input", tmp_path / "in")
    out = run_app(tmp_path, "sssp", *size, *values, job=job)
    edges = sum_of_parts(tmp_path / "in", out.ranks)
    expected = dijkstra(edges, indices=source - 1)
    if values:
        np.testing.assert_allclose(out.cyclic(), expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(out.cyclic(), expected)
    assert out.json["reached"] == np.isfinite(expected).sum()


@pytest.mark.parametrize(("delta", "job"), [("0.001", ALONE), ("0.5", (1, 2)), ("100", (2, 2)), ("1e9", (1, 2))])
def test_any_delta_expect_the_same_distances(tmp_path: Path, delta: str, job: tuple[int, int]) -> None:
    matrix = random_matrix(300, 300, 0.02, 6, integers=True)
    path = write_matrix(tmp_path / "m.mtx", matrix, "integer")
    out = run_app(tmp_path, "sssp", "--matrix", path, "--source", 3, "--delta", delta, job=job)
    np.testing.assert_array_equal(out.cyclic(), dijkstra(matrix, indices=2))


@pytest.mark.parametrize("job", [ALONE, (1, 2)])
def test_symmetric_file_expect_edges_both_ways(tmp_path: Path, job: tuple[int, int]) -> None:
    grid = nx.to_scipy_sparse_array(nx.grid_2d_graph(30, 20), format="csr")
    grid.data = grid.data.astype(np.float64)
    path = write_matrix(tmp_path / "grid.mtx", grid, "pattern", "symmetric")
    out = run_app(tmp_path, "sssp", "--matrix", path, "--distribution", "block", job=job)
    distance = np.concatenate(out.parts())
    np.testing.assert_array_equal(distance, dijkstra(grid, indices=0))
    assert distance.max() == 29 + 19


@pytest.mark.parametrize("job", [ALONE, (2, 2)])
def test_edges_of_weight_zero_expect_them_followed(tmp_path: Path, job: tuple[int, int]) -> None:
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n5 5 4\n1 2 0\n2 3 0\n3 4 2.5\n4 1 0\n")
    out = run_app(tmp_path, "sssp", "--matrix", path, job=job)
    np.testing.assert_array_equal(out.cyclic(), [0, 0, 0, 2.5, np.inf])


@pytest.mark.parametrize("job", [ALONE, (1, 2)])
def test_weight_below_zero_expect_its_edge(tmp_path: Path, job: tuple[int, int]) -> None:
    matrix = sp.csr_array(sp.coo_array(([1.0, -0.5], ([0, 1], [1, 2])), shape=(3, 3)))
    done = execute("sssp", "--matrix", write_matrix(tmp_path / "m.mtx", matrix), job=job)
    assert done.returncode == 1
    assert "the edge from 2 to 3 has the weight -0.5: want weights of zero or more" in done.stderr


def test_source_beyond_the_graph_expect_how_many_vertices_there_are() -> None:
    done = execute("sssp", "--rows", 10, "--source", 11)
    assert done.returncode == 1
    assert "--source 11: there are 10 vertices" in done.stderr
