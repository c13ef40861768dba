# SPDX-License-Identifier: Apache-2.0
"""apps/transpose, and the matrix readers that the applications share, against scipy.sparse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from apps import ALONE, JOBS, assert_same_matrix, execute, random_matrix, run_app, sum_of_parts, write_matrix


@pytest.mark.parametrize(
    ("rows", "degree", "arguments", "job"),
    [
        (1, 1, (), ALONE),
        (1000, 7, ("--real",), ALONE),
        (1, 1, (), (1, 2)),
        (20_000, 16, ("--distribution", "block"), (1, 2)),
        (1000, 7, (), (2, 2)),
        (20_000, 16, ("--real",), (2, 2)),
    ],
)
def test_generated_matrix_expect_its_transpose(
    tmp_path: Path, rows: int, degree: int, arguments: tuple[str, ...], job: tuple[int, int]
) -> None:
    size = ("--rows", rows, "--degree", degree, "--save-input", tmp_path / "in")
    out = run_app(tmp_path, "transpose", *size, *arguments, job=job)
    matrix = sum_of_parts(tmp_path / "in", out.ranks)
    assert matrix.nnz == out.json["entries"]
    assert_same_matrix(sum_of_parts(out.prefix, out.ranks), matrix.T.tocsr())


def test_generated_matrix_expect_it_independent_of_the_ranks(tmp_path: Path) -> None:
    sums = set()
    matrices = []
    for job in JOBS:
        directory = tmp_path / f"{job[0]}x{job[1]}"
        directory.mkdir()
        out = run_app(directory, "transpose", "--rows", 500, "--save-input", directory / "in", job=job)
        sums.add(out.json["checksum"])
        matrices.append(sum_of_parts(directory / "in", out.ranks))
    assert len(sums) == 1
    for matrix in matrices[1:]:
        assert_same_matrix(matrix, matrices[0])


@pytest.mark.parametrize(
    ("field", "job"), [("real", ALONE), ("integer", ALONE), ("pattern", ALONE), ("real", (2, 2)), ("pattern", (1, 2))]
)
def test_file_expect_its_transpose(tmp_path: Path, field: str, job: tuple[int, int]) -> None:
    matrix = random_matrix(301, 207, 0.05, 3, integers=field == "integer")
    out = run_app(tmp_path, "transpose", "--matrix", write_matrix(tmp_path / "m.mtx", matrix, field), job=job)
    if field == "pattern":
        matrix.data[:] = 1
    assert_same_matrix(sum_of_parts(out.prefix, out.ranks), matrix.T.tocsr())


@pytest.mark.parametrize("job", [ALONE, (1, 2)])
def test_symmetric_file_expect_both_halves(tmp_path: Path, job: tuple[int, int]) -> None:
    half = random_matrix(200, 200, 0.03, 4)
    matrix = sp.csr_array(half + half.T)
    path = write_matrix(tmp_path / "m.mtx", matrix, symmetry="symmetric")
    assert "symmetric" in path.read_text().splitlines()[0]
    out = run_app(tmp_path, "transpose", "--matrix", path, job=job)
    assert_same_matrix(sum_of_parts(out.prefix, out.ranks), matrix)


def test_entries_met_twice_expect_their_sum(tmp_path: Path) -> None:
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate integer general\n2 3 3\n1 3 5\n2 1 1\n1 3 7\n")
    out = run_app(tmp_path, "transpose", "--matrix", path)
    np.testing.assert_array_equal(sum_of_parts(out.prefix, 1).toarray(), [[0, 1], [0, 0], [12, 0]])


@pytest.mark.parametrize("job", [ALONE, (2, 2)])
def test_broken_file_expect_its_line_and_all_ranks_ended(tmp_path: Path, job: tuple[int, int]) -> None:
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 0.5\n")
    done = execute("transpose", "--matrix", path, job=job)
    assert done.returncode == 1
    assert f"{path}:3: entry (3, 1) of a matrix of 2 x 2; both count from 1" in done.stderr


@pytest.mark.parametrize("job", [ALONE, (2, 2)])
def test_file_that_never_ends_expect_refusal(job: tuple[int, int]) -> None:
    done = execute("transpose", "--matrix", "/dev/zero", job=job)
    assert done.returncode == 1
    assert "cannot read /dev/zero: want a regular file, not a directory, pipe or device" in done.stderr


def test_file_and_rows_expect_one_of_them_refused(tmp_path: Path) -> None:
    done = execute("transpose", "--matrix", tmp_path / "m.mtx", "--rows", 5)
    assert done.returncode != 0
    assert "--matrix excludes --rows" in done.stderr
