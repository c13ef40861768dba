# SPDX-License-Identifier: Apache-2.0
"""kv_box_inlet: whole frames pass during a stop. An offered beat stays until it is taken or the receiver is reset."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from simulate import simulate

TOP = """
module top (input wire clk_i, input wire rst_i);
  kv_box_inlet dut (.clk_i);
endmodule
"""


@cocotb.test()
async def stops_at_any_moment(dut: Any) -> None:
    bench = Bench(dut, 1)
    draw = bench.random
    names = ("stop_i", "closed_i", "between_o", "s_valid", "s_ready", "s_last", "m_valid", "m_ready")
    pins = {name: bench.pin(dut.dut, name) for name in names}
    for name in ("stop_i", "closed_i", "s_valid"):
        pins[name].set(0)
    await bench.reset()
    offered = middle = waits = False  # offered: and not taken
    stopped = closed = 0  # cycles yet to come
    begun = ended = 0
    for cycle in range(40_000):
        if cycle % 1000 == 0:
            stall = draw.choice((0.0, 0.3, 0.9))
        if not stopped and draw.random() < 0.02:
            stopped = draw.randrange(1, 60)
            closed = draw.choice((0, 0, stopped // 2))
        stop, close = stopped > 0, 0 < stopped <= closed
        stopped = max(stopped - 1, 0)
        if not waits:
            waits = draw.random() < 0.7
            pins["s_last"].set(draw.random() < 0.3)
        pins["s_valid"].set(waits)
        pins["stop_i"].set(stop)
        pins["closed_i"].set(close)
        pins["m_ready"].set(draw.random() >= stall)
        await bench.settle()
        valid, taken = pins["m_valid"].get(), pins["s_valid"].get() and pins["s_ready"].get()
        assert valid or not offered or close, "an offered beat was withdrawn"
        assert not (valid and close)
        if valid and not offered and stop:
            assert middle, "a frame was let in after the stop"
        assert pins["between_o"].get() == (not middle and not offered)
        if close and not middle:
            assert not taken, "a frame that waits was thrown away"
        if taken:
            waits = False
            begun += not middle
            middle = not pins["s_last"].get()
            ended += not middle
        offered = bool(valid and not pins["m_ready"].get())
        await bench.cycle()
    assert ended > 2000
    assert begun - ended == middle


def test_kv_box_inlet() -> None:
    simulate(__file__, text=TOP)
