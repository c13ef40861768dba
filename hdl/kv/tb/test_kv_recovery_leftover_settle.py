# SPDX-License-Identifier: Apache-2.0
"""kv_recovery_leftover_settle on a list of leftovers: however full that is, a walk looks at each once, and ends."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from simulate import KV_PACKAGES, simulate

BITS = 3
FREE = 1  # kv_core_pkg::ListFree

TOP = f"""
module top
  import kv_core_pkg::*;
(input wire clk_i, input wire rst_i);
  logic start, tick, entered, none, fill_find, keep, busy, found, find, drop, active, due, own_done, valid;
  list_find_e what;
  logic [{BITS}:0] from_at;
  logic [{BITS - 1}:0] at;
  logic [{BITS}:0] count;
  cell_t filled;
  order_t order;
  logic [31:0] request;
  kv_recovery_leftover_settle #(.LeftoverBits({BITS})) dut (
      .clk_i, .rst_i, .start_i(start), .go_i(1'b1), .active_o(active), .due_o(due), .own_done_o(own_done),
      .leftover_done_i(1'b0), .tick_i(tick), .entered_i(entered), .forget_i(1'b0), .clear_i(1'b0), .here_i(1'b1),
      .node_i(3'd2), .others_i(8'b11), .alone_i(1'b0), .leader_i(3'd1), .mine_i(1'b0), .none_i(none),
      .list_find_o(find), .list_what_o(what), .list_from_o(from_at), .list_drop_o(drop), .list_keep_i(1'b0),
      .list_busy_i(busy), .list_found_i(found), .list_at_i(at), .used_i(1'b0),
      .request_o(request), .order_valid_o(valid), .order_o(order), .settled_i(1'b0)
  );
  kv_recovery_leftover_list #(.Bits({BITS})) list (
      .clk_i, .rst_i, .clear_i(1'b0), .find_i(fill_find || find), .what_i(fill_find ? ListFree : what),
      .from_i(fill_find ? '0 : from_at), .again_i(1'b0), .bucket_i('0), .busy_o(busy), .found_o(found), .at_o(at),
      .keep_i(keep), .drop_i(drop), .cell_i(filled), .head_i('0),
      .count_o(count)
  );
endmodule
"""


async def walked(bench: Bench, pins: dict[str, Any], leftovers: int) -> list[int]:
    """The leftovers that one walk asks about, in order."""
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
