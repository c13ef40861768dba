# SPDX-License-Identifier: Apache-2.0
"""The files that ranks write to the directory of `wherry run --statistics`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from apps import program
from jobs import Jobs, built


@pytest.mark.parametrize("placement", ["inline", "shared", "host"])
def test_each_rank_leaves_its_statistics(jobs: Jobs, tmp_path: Path, placement: str) -> None:
    summary, directory = tmp_path / "summary.json", tmp_path / "a" / "b"
    directory.mkdir(parents=True)
    (directory / "rank-7.json").write_text("of another job")
    (directory / "notes.txt").write_text("somebody's")
    words = ["--nodes", "2", "--ranks-per-node", "2", "--placement", placement, "--statistics", str(directory)]
    app = [str(program("histogram")), "--updates", "300000", "--counters", "1000", "--json", str(summary)]
    done = jobs.run(*words, "--", *app)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("[0] ") for line in done.stderr.splitlines()), "what the program says for people"
    assert sorted(path.name for path in directory.iterdir()) == ["notes.txt", *(f"rank-{n}.json" for n in range(4))]
    ranks = [json.loads((directory / f"rank-{n}.json").read_text()) for n in range(4)]
    assert [(rank["rank"], rank["node"], rank["placement"]) for rank in ranks] == [
        (n, n // 2, placement) for n in range(4)
    ]
    said = json.loads(summary.read_text())["statistics"]
    for name in ("sent", "handled", "would_block", "flush_full"):
        assert sum(rank["statistics"][name] for rank in ranks) == said[name]
    for rank in ranks:
        assert 0 < rank["seconds"] < 30
        assert 0 < rank["cpu_seconds"] < 30
        assert (rank["cache_misses"] is None) == (rank["cache_misses_missing"] != "")


def test_directory_is_made(jobs: Jobs, tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    done = jobs.run("--statistics", str(directory), "--", built("bootstrap_rank"), "messages")
    assert done.returncode == 0
    assert [path.name for path in directory.iterdir()] == ["rank-0.json"]


def test_directory_that_cannot_be_is_an_error(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = jobs.run("--statistics", str(tmp_path / "file"), "--", "true")
    assert (done.returncode, done.stderr) == (1, f"wherry: --statistics {tmp_path / 'file'}: File exists\n")


def test_directory_without_a_name_is_refused(jobs: Jobs) -> None:
    done = jobs.run("--statistics", "", "--", "true")
    assert done.returncode == 2
    assert "the name of the directory is empty" in done.stderr


def test_nothing_is_left_unless_asked_for(jobs: Jobs, tmp_path: Path) -> None:
    done = jobs.run("--", built("bootstrap_rank"), "messages", WHERRY_STATISTICS="")
    assert done.returncode == 0
    done = jobs.run("--", built("bootstrap_rank"), "messages", WHERRY_STATISTICS=str(tmp_path / "nowhere"))
    assert done.returncode != 0
    assert "WHERRY_STATISTICS is" in done.stderr
