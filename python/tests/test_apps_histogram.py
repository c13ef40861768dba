# SPDX-License-Identifier: Apache-2.0
"""apps/histogram against numpy.bincount of the same random numbers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from apps import ALONE, execute, program, run_app


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


def test_people_read_a_summary_and_programs_json(tmp_path: Path) -> None:
    done = execute("histogram", "--updates", 12345, "--counters", 16)
    line = json.loads(done.stdout)
    assert line["updates_per_second"] == pytest.approx(12345 / line["seconds"])
    said = done.stderr.splitlines()
    assert said[0].startswith("histogram: 12,345 updates in ")
    assert said[0].endswith(" updates a second")
    assert said[1].startswith("  1 rank on 1 node, placement inline: 12,345 messages, ")
    assert said[2] == f"  counters 16, seed 1, checksum {line['checksum']}"

    ours, theirs = os.openpty()
    words = [str(program("histogram")), "--updates", "12345", "--counters", "16"]
    try:
        done = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown.startswith("histogram: 12,345 updates in "), "a terminal gets no JSON"
    assert "{" not in shown


def test_directories_of_results_are_made(tmp_path: Path) -> None:
    done = execute(
        "histogram", "--updates", 10, "--output", tmp_path / "a" / "b" / "out", "--json", tmp_path / "c" / "j"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a" / "b" / "out.0.npy").is_file()
    assert json.loads((tmp_path / "c" / "j").read_text())["updates"] == 10


@pytest.mark.parametrize("option", ["--output", "--json"])
def test_files_that_cannot_be_written_expect_their_name(option: str) -> None:
    done = execute("histogram", "--updates", 10, option, "/dev/null/out")
    assert done.returncode == 1
    assert "histogram: rank 0: cannot write /dev/null/out" in done.stderr
    assert "Not a directory" in done.stderr
