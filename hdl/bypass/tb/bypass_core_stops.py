# SPDX-License-Identifier: Apache-2.0
"""Queues that stop and start, resets, completions by write-back, and the registers."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_attack import balance
from bypass_cores import CORES, rig_of
from bypass_nic import Habits
from bypass_rig import FORWARD, Function

from wherry.bypass.generated.registers import REGISTERS


@cocotb.test()
async def a_queue_is_taken_back_in_flight_and_runs_again(dut: Any) -> None:
    """A queue is stopped while frames are in flight, and runs again."""
    rig = rig_of(dut, "four", seed=41)
    for in_place in (False, True):
        Function(rig, lambda queue, size, first: (FORWARD, b""))
        await rig.start("ixgbe", in_place=in_place, doorbell_timer=300)
        for _ in range(3):
            rig.offer(30)
            await rig.bench.cycle(rig.bench.random.randint(50, 500))
            # The NIC stops first, as software does it; then the core.
            rig.nic.running = False
            rig.nic.manager.aw.items.clear() if not rig.nic.manager.w.items else None
            for queue in range(4):
                await rig.registers.write("queue_control", 0, queue)
            await rig.bench.until(
                lambda: not rig.tx.items and not rig.nic.manager.w.items and not rig.nic.manager.ar.items
            )
            await rig.bench.cycle(1500)
            for queue in range(4):
                assert await rig.registers.field("queue_state", "idle", queue) == 1, queue
                assert await rig.registers.field("queue_state", "running", queue) == 0
            balance(await rig.counters())
            rig.nic.restart()
            rig.received.forget()
            rig.rx.items.clear()
            await rig.set_up(in_place=False)
            await rig.pass_all(15)
            for queue in range(4):
                await rig.registers.write("queue_control", 0, queue)
            await rig.bench.cycle(500)
            rig.nic.restart()
            await rig.set_up(in_place=in_place)
        rig.bench.agents.pop()


@cocotb.test()
async def a_reset_in_flight_leaves_nothing(dut: Any) -> None:
    """A reset in flight leaves no frame behind."""
    rig = rig_of(dut, "four", seed=42)
    for kind in ("e1000e", "ice", "igb", "i40e"):
        await rig.start(kind)
        rig.offer(20, 4000)
        await rig.bench.cycle(rig.bench.random.randint(20, 700))
        rig.rx.items.clear()
        await rig.start(kind)
        await rig.pass_all(10)


@cocotb.test()
async def write_backs_complete_where_reads_do_not(dut: Any) -> None:
    """Write-backs complete frames if reads do not."""
    rig = rig_of(dut, "four", seed=43)
    for kind, every, heads in (("igb", 0, False), ("igb", 2, True), ("i40e", 3, False)):
        await rig.start(kind, completion=3 | every << 4, doorbells=0x00080331)
        rig.nic.habits = Habits(heads=heads)
        # Whole groups are sent, since frames after the last report are not done.
        await rig.pass_all(48, 300)
        found = await rig.counters()
        balance(found)
        assert found["tx_done"] == 4 * 48
        assert found["tx_written_back"] == 4 * 48 >> every
        assert "tx_unexpected" not in found


@cocotb.test()
async def reports_mean_nothing_to_a_core_that_sees_reads(dut: Any) -> None:
    """Write-backs have no effect if reads complete frames."""
    rig = rig_of(dut, seed=44)
    await rig.start("ixgbe", completion=2)
    await rig.pass_all(40)
    found = await rig.counters()
    assert found["tx_done"] == found["tx_written_back"] == 40


@cocotb.test()
async def registers_keep_what_they_are_told(dut: Any) -> None:
    """Registers keep written values."""
    for name in CORES:
        rig = rig_of(dut, name, seed=45)
        await rig.bench.reset()
        read, write = rig.registers.read, rig.registers.write
        capability = await read("capability")
        fields = REGISTERS["capability"].fields
        found = [1 << fields[part].get(capability) for part in ("queue_bits", "rx_ring_bits", "tx_ring_bits")]
        assert found == [rig.queues, rig.rx_ring, rig.tx_ring]
        for register, entry in REGISTERS.items():
            if entry.access == "rw" and register not in ("control", "queue_control"):
                for index in range(min(entry.count, rig.queues)):
                    assert await read(register, index) == entry.reset
                    value = rig.bench.random.getrandbits(32)
                    assert await write(register, value, index) == 0
                    kept = await read(register, index)
                    mask = sum(bits.put((1 << bits.bits) - 1) for bits in entry.fields.values()) or None
                    assert kept == (value & mask if mask else kept)
                    assert kept & ~value == 0
                    assert await write(register, ~value & 0xFFFFFFFF, index, 7) == 2
                    assert await read(register, index) == kept
            elif entry.access == "ro" and entry.reset:
                await write(register, 0)
                assert await read(register) in (entry.reset, capability)
        for offset in (0x1000, 0x7FFC, 0x700 if rig.queues == 4 else 0x500, 0xFFFC):
            assert await rig.registers.write_at(offset, 0xFFFFFFFF) == 0
            assert await rig.registers.read_at(offset) == 0
        first = await rig.registers.read_at(0x18)
        assert await rig.registers.read_at(0x18) > first


@cocotb.test()
async def counters_can_be_cleared(dut: Any) -> None:
    """Counters can be cleared."""
    rig = rig_of(dut, seed=46)
    await rig.start()
    await rig.pass_all(10)
    assert (await rig.counters())["tx_done"] == 10
    await rig.registers.write("control", 1)
    assert await rig.counters() == {}
    await rig.pass_all(3)
    assert (await rig.counters())["rx_frames"] == 3
