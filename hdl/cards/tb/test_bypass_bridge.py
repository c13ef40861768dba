# SPDX-License-Identifier: Apache-2.0
"""bypass_node with only the bypass core; bypass_node_functions.py tests it with the functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cocotb
from axi_agents import DECERR, OKAY, SLVERR, Burst
from bypass_attack import balance
from bypass_cores import PACKAGES
from bypass_formats import FORMATS
from bypass_nic import Habits
from card_rig import BAR0, BAR0_SIZE, BAR2_SIZE, CardRig, top
from simulate import simulate

from wherry.bypass.generated.registers import REGISTERS

MORE = ("bypass_node_functions",)


def rigs(dut: Any, seed: int) -> Iterator[CardRig]:
    """Yields the cases in turn: one clock; two equal clocks; a slower core. Two of the rigs drive the same pins."""
    yield CardRig(dut, "plain", seed=seed)
    yield CardRig(dut, "crossing", ratio=1, seed=seed)
    yield CardRig(dut, "crossing", ratio=3, seed=seed)


@cocotb.test()
async def frames_pass_both_ways_through_the_bridge(dut: Any) -> None:
    """Compares bytes and order for several families and speeds; the counters agree."""
    for rig in rigs(dut, 1):
        for kind, habits, idle, stall in (
            ("ixgbe", Habits(shuffle=3), 0.0, 0.0),
            ("i40e", Habits(line=4, piece=512), 0.4, 0.4),
        ):
            await rig.start(kind)
            rig.nic.habits = habits
            rig.nic.manager.pace(idle, stall)
            rig.tails.aw.stall, rig.tails.w.stall = stall, idle
            await rig.pass_all(8, 4000, 60_000)
            found = await rig.counters()
            balance(found)
            assert found["rx_frames"] == found["tx_done"] == 8 * rig.queues
            assert found["tails"] == len(rig.tails.log)
            assert not rig.nic.errors


@cocotb.test()
async def registers_are_read_and_written_in_any_width(dut: Any) -> None:
    """Covers words, double words and whole beats, while frames pass. Partial words are refused."""
    for rig in rigs(dut, 2):
        await rig.start("igb")
        there, back = rig.offer(6)
        for _ in range(4):
            value = rig.bench.random.randint(1000, 65535)
            assert await rig.registers.write("doorbell_timer", value) == 0
            for size in (2, 6):
                assert await rig.registers.read_at(REGISTERS["doorbell_timer"].at(0), size) == value
        low, timer = REGISTERS["tx_word_low"].at(0), REGISTERS["doorbell_timer"].at(0)
        beat = await rig.registers.beat_at(low & ~7, 3)
        assert beat[low % 8 :][:4] == FORMATS["igb"].registers["tx_word_low"].to_bytes(4, "little")
        beat = await rig.registers.beat_at(0, 6)
        assert int.from_bytes(beat[:4], "little") == REGISTERS["id"].reset
        assert beat[low : low + 4] == FORMATS["igb"].registers["tx_word_low"].to_bytes(4, "little")
        assert beat[timer : timer + 4] == value.to_bytes(4, "little")
        assert await rig.registers.write_at(low, 0, 3) == 1  # SLVERR
        assert await rig.registers.read("tx_word_low") == FORMATS["igb"].registers["tx_word_low"]
        await rig.bench.until(lambda: rig.came(there, back), 60_000)  # noqa: B023


@cocotb.test()
async def what_no_bar_has_is_answered_with_an_error(dut: Any) -> None:
    """Covers addresses beside and between the BARs; within BAR 2 the core answers."""
    for rig in rigs(dut, 3):
        await rig.start()
        manager = rig.nic.manager
        rig.nic.running = False
        await rig.bench.cycle(200 * rig.bench.ratio)
        rig.bench.agents.remove(rig.nic)
        for address, wanted in (
            (BAR2_SIZE, DECERR),
            (BAR0 - 64, DECERR),
            (BAR0 + BAR0_SIZE, DECERR),
            (1 << 63, DECERR),
            (0x3F_0000, SLVERR),
            (BAR0, OKAY),
        ):
            manager.ask(Burst(3, address, 1, 6))
            manager.write(Burst(5, address, 1, 6, data=[(0, 0)]))
            await rig.bench.until(lambda: bool(manager.r.items and manager.b.items))  # noqa: B023
            assert [(item[0], item[2]) for item in manager.r.items] == [(3, wanted)], hex(address)  # type: ignore[index]
            assert manager.b.items == [(5, wanted)], hex(address)
            manager.r.items.clear(), manager.b.items.clear()


@cocotb.test()
async def tail_errors_come_back_and_are_counted(dut: Any) -> None:
    """The bridge answers SLVERR, as for a NIC that is gone."""
    for rig in rigs(dut, 4):
        await rig.start()
        rig.tails.response = lambda: SLVERR
        await rig.pass_all(3)
        rig.tails.response = lambda: OKAY
        await rig.pass_all(3)
        found = await rig.counters()
        assert 0 < found["tail_errors"] < found["tails"] == len(rig.tails.log)


@cocotb.test()
async def a_reset_of_the_link_begins_anew(dut: Any) -> None:
    """The reset comes in flight. A bridge that accepts no tails blocks no other traffic."""
    for rig in rigs(dut, 5):
        await rig.start("ixgbe")
        rig.offer(10)
        await rig.bench.cycle(150)
        await rig.start("ixgbe")
        assert await rig.counters() == {} or rig.tails.log
        await rig.pass_all(6, 1514, 60_000)
        rig.tails.aw.stall = 1.0
        rig.offer(3)
        await rig.bench.cycle(300 * rig.bench.ratio)
        assert await rig.registers.read("id") == REGISTERS["id"].reset
        await rig.start("ixgbe")
        rig.tails.aw.stall = 0.0
        await rig.pass_all(4, 1514, 60_000)


def test_bypass_bridge() -> None:
    simulate(__file__, text=top("plain", "crossing", "functions"), sources=PACKAGES, more=MORE)
