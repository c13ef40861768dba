# SPDX-License-Identifier: Apache-2.0
"""Tests kv_recovery_leftover_settle: for any number of leftovers, a walk visits each one once, and then ends."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from simulate import KV_PACKAGES, simulate

BITS = 3
FREE = 1  # kv_recovery_pkg::ListFree

TOP = f"""
module top
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
(input wire clk_i, input wire rst_i);
  logic start, tick, entered, none, fill_find, keep, busy, active, due, own_done, valid;
  logic [{BITS}:0] count;
  cell_t filled;
  step_t step;
  list_ask_t ask, fill;
  list_answer_t answer;
  epoch_t epoch;
  occasion_t occasion;
  heard_t heard;
  always_comb begin
    epoch = '0;
    epoch.here = 1'b1;
    epoch.node = 3'd2;
    epoch.others = 8'b11;
    heard = '0;
    heard.leader = 3'd1;
    occasion = '0;
    occasion.tick = tick;
    occasion.entered = entered;
    fill = ask;
    fill.find = fill_find || ask.find;
    if (fill_find) begin
      fill.what = ListFree;
      fill.from = '0;
    end
    fill.keep = keep;
  end
  assign busy = answer.busy;
  assign valid = step.order.valid;
  assign active = step.active;
  logic [31:0] request;
  kv_recovery_leftover_settle #(.LeftoverBits({BITS})) dut (
      .clk_i, .rst_i, .turn_i('{{start: start, go: 1'b1}}), .step_o(step), .due_o(due), .own_done_o(own_done),
      .leftover_done_i(1'b0), .occasion_i(occasion), .clear_i(1'b0), .epoch_i(epoch), .heard_i(heard),
      .none_i(none), .list_o(ask), .list_keep_i(1'b0), .list_i(answer), .request_o(request)
  );
  kv_recovery_leftover_list #(.Bits({BITS})) list (
      .clk_i, .rst_i, .clear_i(1'b0), .ask_i(fill), .bucket_i('0), .cell_i(filled), .head_i('0), .answer_o(answer),
      .count_o(count)
  );
endmodule
"""


async def walked(bench: Bench, pins: dict[str, Any], leftovers: int) -> list[int]:
    """Returns the leftovers that one walk asks about, in order."""
    asked = []
    for _ in range(leftovers + 3):
        if not pins["due"].get():
            return asked
        pins["start"].set(1)
        await bench.cycle()
        pins["start"].set(0)
        await bench.settle()
        while pins["active"].get():
            if pins["valid"].get():
                asked.append(pins["request"].get() & (2**BITS - 1))
            await bench.cycle()
            await bench.settle()
    raise AssertionError(f"the walk does not end; asked about {asked}")


@cocotb.test()
async def a_walk_ends(dut: Any) -> None:
    for leftovers in range(2**BITS + 1):
        bench = Bench(dut, leftovers)
        names = (
            "start",
            "tick",
            "entered",
            "none",
            "fill_find",
            "keep",
            "busy",
            "active",
            "due",
            "valid",
            "request",
            "count",
        )
        pins = {name: bench.pin(dut, name) for name in names}
        for name in ("start", "tick", "entered", "none", "fill_find", "keep"):
            pins[name].set(1)
            pins[name].set(0)
        await bench.reset()
        for _ in range(leftovers):
            pins["fill_find"].set(1)
            await bench.cycle()
            pins["fill_find"].set(0)
            await bench.cycle(2)
            await bench.until(lambda: not pins["busy"].get())  # noqa: B023
            pins["keep"].set(1)
            await bench.cycle()
            pins["keep"].set(0)
            await bench.cycle()
        assert pins["count"].get() == leftovers
        for begins in ("entered", "tick", "tick"):
            pins["none"].set(not leftovers)
            pins[begins].set(1)
            await bench.cycle()
            pins[begins].set(0)
            await bench.settle()
            assert await walked(bench, pins, leftovers) == list(range(leftovers))


def test_kv_recovery_leftover_settle() -> None:
    simulate(__file__, text=TOP, sources=KV_PACKAGES)
