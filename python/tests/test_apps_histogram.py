# SPDX-License-Identifier: Apache-2.0
"""apps/histogram against numpy.bincount of the same random numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from apps import ALONE, execute, run_app


def splitmix(seed: int, indices: np.ndarray) -> np.ndarray:
    z = np.uint64(seed) + (indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def expected(counters: int, updates: int, seed: int) -> np.ndarray:
    which = ((splitmix(seed, np.arange(updates)) >> np.uint64(32)) * np.uint64(counters)) >> np.uint64(32)
    return np.bincount(which.astype(np.int64), minlength=counters).astype(np.uint64)


@pytest.mark.parametrize(
    ("counters", "updates", "job"),
    [
        (1, 1000, ALONE),
        (1009, 200_000, ALONE),
        (1, 1000, (1, 2)),
        (1 << 20, 1_000_000, (1, 2)),
        (1009, 200_000, (2, 2)),
    ],
)
def test_counts_expect_those_of_numpy(tmp_path: Path, counters: int, updates: int, job: tuple[int, int]) -> None:
    out = run_app(tmp_path, "histogram", "--counters", counters, "--updates", updates, "--seed", 5, job=job)
    np.testing.assert_array_equal(out.cyclic(), expected(counters, updates, 5))
    assert out.json["messages"] == updates


@pytest.mark.parametrize("job", [ALONE, (2, 2)])
def test_blocks_expect_the_same_counts_in_rank_order(tmp_path: Path, job: tuple[int, int]) -> None:
    arguments = ("--counters", 1001, "--updates", 1e5, "--distribution", "block")
    out = run_app(tmp_path, "histogram", *arguments, job=job)
    np.testing.assert_array_equal(np.concatenate(out.parts()), expected(1001, 100_000, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--counters", "0"), "--counters: want a whole number from 1 to 4294967295, not '0'"),
        (("--updates", "1.5"), "--updates: want a whole number from 1 to 9007199254740992, not '1.5'"),
        (("--updates", "many"), "not 'many'"),
        (("--updates", "9007199254740993"), "not '9007199254740993'"),
        (("--seed", "99999999999999999999"), "--seed: want a whole number from 0 to 18446744073709551615, not '9999"),
        (("--seed", "-1"), "not '-1'"),
        (("--seed", "1e30"), "not '1e30'"),
        (("--distribution", "random"), "--distribution: random not in {block,cyclic}"),
    ],
)
def test_wrong_options_expect_what_they_should_be(arguments: tuple[str, str], message: str) -> None:
    done = execute("histogram", *arguments)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("option", ["--output", "--json"])
def test_files_that_cannot_be_written_expect_their_name(option: str) -> None:
    done = execute("histogram", "--updates", 10, option, "/nowhere/out")
    assert done.returncode == 1
    assert "histogram: rank 0: cannot write /nowhere/out" in done.stderr
    assert "No such file or directory" in done.stderr
