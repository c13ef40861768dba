# SPDX-License-Identifier: Apache-2.0
"""The benchmark program, as `wherry bench move` runs it. test_cli.py tests the command itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from wherry import report
from wherry.bench import load
from wherry.errors import NotFound
from wherry.move.bench.run import run
from wherry.move.bench.schema import basis_of
from wherry.system import paths

pytestmark = pytest.mark.agent


def test_two_experiments_of_a_quick_run(tmp_path: Path) -> None:
    try:
        paths.built("bench", "bench_move")
    except NotFound as error:
        pytest.fail(str(error))
    file = tmp_path / "move.json"
    bench = run(file, quick=True, only=["conversion", "initiate"])
    assert list(tmp_path.iterdir()) == [file], "something was left behind"
    assert bench.repetitions == 5
    assert bench.one_sided == "one_sided"
    assert {"application", "agent"} <= bench.pinning.keys()

    results = bench.results
    filled = {section.name for section in dataclasses.fields(results) if getattr(results, section.name)}
    assert filled == {"conversion", "initiate"}
    assert {(row.api, row.columns) for row in results.conversion} == {
        (api, columns) for api in ("cpp", "c_abi") for columns in (1, 4, 16)
    }
    assert {row.columns for row in results.initiate} == {1, 4, 16}
    for call in results.initiate:
        assert 0 < call.min_us <= call.p50_us <= call.p99_us <= call.max_us
        assert call.after_wait_p50_us > 0
    for steps in results.conversion:
        assert steps.total_us > 0

    assert set(bench.bars) == {"host_us_p50_1col", "host_us_p50_16col", "host_us_size_spread"}
    for name in bench.bars:
        basis = basis_of(name, results)
        assert basis.uses
        assert basis.beside, "the figure with cold caches stands beside the one with warm ones"
    assert "after_wait" in report.build([file])
    assert load(file) == bench


def test_readers_of_a_quick_run(tmp_path: Path) -> None:
    file = tmp_path / "move.json"
    bench = run(file, quick=True, only=["readers"])
    assert [row.reader for row in bench.results.readers] == ["none", "plain", "lz4", "lz4_operator", "sort_operator"]
    for row in bench.results.readers:
        assert row.size == 8 << 20
        assert 0 < row.call_us < row.step_us
        assert 0 < row.wait_us < row.step_us
        assert (row.read_percent > 0) == (row.reader != "none")
        assert row.read_percent <= 100
    assert set(bench.bars) == {
        "plain_reader_host_ratio",
        "lz4_reader_host_ratio",
        "lz4_operator_host_ratio",
        "sort_operator_host_ratio",
    }
    for name in bench.bars:
        assert basis_of(name, bench.results).beside
    assert "What readers and operators cost the host" in report.build([file])
