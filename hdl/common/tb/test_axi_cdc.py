# SPDX-License-Identifier: Apache-2.0
"""axi_cdc: an AXI4 bus between two clocks, at several ratios and phases, with a memory that answers in any order."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import Manager, Subordinate
from axi_traffic import PACES, Traffic
from bundles import PACKAGE, Axi
from simulate import elaborate, simulate
from two_clocks import CLOCKS, Crossing

PORTS = {"wide": (Axi("s_axi"), Axi("m_axi")), "narrow": (Axi("s_axi", 32, 32, 2), Axi("m_axi", 32, 32, 2))}


def top() -> str:
    """Returns a top with both instances and a monitor at each side."""
    text = '`include "axi.svh"\n'
    clocks = "input wire s_clk_i, input wire s_rst_i, input wire m_clk_i, input wire m_rst_i"
    for name, sides in PORTS.items():
        ports = ",\n".join([clocks, *(port for side in sides for port in side.ports())])
        body = ""
        for side, clock in zip(sides, "sm", strict=True):
            body += "\n".join(side.body()).replace(".clk_i, .rst_i", f".clk_i({clock}_clk_i), .rst_i({clock}_rst_i)")
            body += "\n"
        parameters = ", ".join(f".{key}({value})" for key, value in sides[0].parameters().items())
        text += f"module {name}_flat ({ports});\n{body}"
        # The two sides have their own types, of the same shape.
        text += "  s_axi_req_t out_req; s_axi_resp_t out_resp;\n  assign m_axi_req = out_req;\n"
        text += "  assign out_resp = m_axi_resp;\n"
        text += f"  axi_cdc #({parameters}) dut (.*, .m_axi_req(out_req), .m_axi_resp(out_resp));\nendmodule\n"
    instances = "".join(f"  {name}_flat {name} (.s_clk_i, .s_rst_i, .m_clk_i, .m_rst_i);\n" for name in PORTS)
    return f"{text}module top ({clocks});\n{instances}endmodule\n"


class Lane:
    """A manager on one side and a memory on the other."""

    def __init__(self, crossing: Crossing, name: str) -> None:
        scope = getattr(crossing.s.dut, name)
        self.traffic = Traffic(crossing.s, Manager(crossing.s, scope))
        self.memory = Subordinate(crossing.m, scope, reorder=True, mix=True)

    def check(self) -> None:
        """Checks that every beat came out as it went in."""
        self.traffic.check(self.memory.initial)
        for asked, seen in (
            (self.traffic.writes, self.memory.written_bursts),
            (self.traffic.reads, self.memory.read_bursts),
        ):
            assert [burst.command() for burst in seen] == [burst.command() for burst in asked]
            seen.clear()
        self.traffic.forget()


async def all_pass(crossing: Crossing, lanes: list[Lane], count: int) -> None:
    """Sends writes, and then reads."""
    for lane in lanes:
        lane.traffic.write(count)
    await crossing.until(lambda: all(lane.traffic.written() for lane in lanes))
    for lane in lanes:
        lane.traffic.read(count)
    await crossing.until(lambda: all(lane.traffic.done() for lane in lanes))
    for lane in lanes:
        lane.check()


@cocotb.test()
async def transactions_cross_unchanged_at_any_ratio(dut: Any) -> None:
    """Covers every ratio and phase of the clocks, and several paces of both sides."""
    for i, clocks in enumerate(CLOCKS):
        crossing = Crossing(dut, clocks, seed=i, jitter=1 if i % 2 else 0)
        lanes = [Lane(crossing, name) for name in PORTS]
        await crossing.reset(*crossing.sides, cycles=8)
        for lane in lanes:
            idle, stall = PACES[i % len(PACES)]
            lane.traffic.manager.pace(idle, stall)
            lane.memory.pace(stall, idle)
        await all_pass(crossing, lanes, 12)


@cocotb.test()
async def a_reset_of_both_sides_leaves_nothing(dut: Any) -> None:
    """Resets both sides at several moments while transactions are in flight."""
    crossing = Crossing(dut, (8, 9, 1), seed=5)
    lanes = [Lane(crossing, name) for name in PORTS]
    for busy in (5, 23, 60):
        await crossing.reset(*crossing.sides, cycles=8)
        for lane in lanes:
            lane.traffic.write(8), lane.traffic.read(8)
        await crossing.cycle(crossing.s, busy)
        await crossing.reset(*crossing.sides, cycles=12)
        for lane in lanes:
            lane.traffic.forget(), lane.traffic.memory.clear(), lane.memory.written.clear()
            lane.memory.written_bursts.clear(), lane.memory.read_bursts.clear()
        await all_pass(crossing, lanes, 6)


def test_axi_cdc() -> None:
    simulate(__file__, text=top(), sources=(PACKAGE,))
    elaborate({"axi_cdc": ("axi_cdc", {"Depth": 8})})
