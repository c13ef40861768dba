# SPDX-License-Identifier: Apache-2.0
"""Tests kv_engine_pkg::filter_cell, which maps a bucket to one of 4096 cells that count writes in progress."""

from __future__ import annotations

from typing import Any

import cocotb
import kv_model
from bench import Bench
from simulate import KV_PACKAGES, simulate

TOP = """
module top
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
(input wire clk_i, input wire rst_i);
  bucket_t bucket;
  filter_cell_t filter;
  assign filter = filter_cell(bucket);
endmodule
"""


@cocotb.test()
async def cells_of_buckets(dut: Any) -> None:
    bench = Bench(dut, 1)
    bucket, cell = bench.pin(dut, "bucket"), bench.pin(dut, "filter")

    async def cells(buckets: Any) -> list[int]:
        found = []
        for number in buckets:
            bucket.set(number)
            await bench.settle()
            found.append(cell.get())
        return found

    # In a table of at most 4096 buckets each bucket has its own cell.
    assert sorted(await cells(range(4096))) == list(range(4096))
    # A slot of the default table (2^21 buckets) or of half of it uses all cells equally.
    for bits, slot in ((21, 0), (21, 0xA7), (20, 0xFF)):
        found = await cells(range(slot, 1 << bits, 256))
        assert {found.count(each) for each in set(found)} == {1 << bits - 20}
        assert len(set(found)) == 4096
    # A slot of a smaller table uses as many cells as it has buckets.
    for bits in range(8, 20):
        assert len(set(await cells(range(0x35, 1 << bits, 256)))) == 1 << bits - 8
    # The candidates of a key are in different cells.
    usual = kv_model.BUCKET_BITS
    try:
        for kv_model.BUCKET_BITS in range(8, 23):
            for _ in range(50):
                candidates = kv_model.candidates(bench.random.getrandbits(32))
                assert len(set(await cells(candidates))) == len(candidates)
    finally:
        kv_model.BUCKET_BITS = usual


def test_kv_filter() -> None:
    simulate(__file__, text=TOP, sources=KV_PACKAGES)
