# SPDX-License-Identifier: Apache-2.0
"""Faults that the bypass core handles: bad frames, stalled receivers, and a hostile NIC."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import SLVERR, WRAP, Burst
from bypass_attack import PACK, SLOTS, attack, balance
from bypass_cores import rig_of
from bypass_nic import HEADS, QUEUE, TX_RING, Habits
from bypass_rig import FORWARD, Function, Rig


@cocotb.test()
async def bad_frames_are_dropped_and_counted(dut: Any) -> None:
    """Bad frames are dropped and counted."""
    rig = rig_of(dut, "four", seed=31)
    for kind in ("e1000e", "i40e", "ice"):
        await rig.start(kind, max_frame=3000)
        good: list[list[bytes]] = [[] for _ in range(4)]
        errors = long = 0
        for queue in range(4):
            for size in rig.lengths(15, 9000):
                error = rig.bench.random.random() < 0.3
                frame = rig.random_frame(size)
                rig.arrive(frame, queue, error=error)
                if size > 3000:
                    long += 1
                elif error:
                    errors += 1
                else:
                    good[queue].append(frame)
        await rig.bench.until(lambda: len(rig.received.update()) == sum(map(len, good)))  # noqa: B023
        for queue in range(4):
            assert rig.of_queue(queue) == good[queue]
        await rig.bench.cycle(200)
        found = await rig.counters()
        balance(found)
        assert (found["rx_error"], found["rx_size"]) == (errors, long)


@cocotb.test()
async def what_cannot_be_sent_is_dropped_and_counted(dut: Any) -> None:
    """Frames that cannot be sent are dropped and counted."""
    rig = rig_of(dut, "four", seed=32)
    await rig.start(max_frame=2000)
    await rig.registers.write("queue_control", 0, 3)
    expected = []
    refused = wrong = 0
    for i in range(60):
        size = rig.bench.random.choice([1, 16, 17, 60, 64, 1999, 2000, 2001, 2048, 9728, 12000])
        queue = rig.bench.random.choice([0, 0, 3, 4, 200])
        frame = rig.random_frame(size)
        rig.transmit(frame, queue)
        if queue:
            refused += 1
        elif 17 <= size <= 2000:
            expected.append(frame)
        else:
            wrong += 1
        if i % 7 == 0:
            await rig.bench.cycle(10)
    await rig.bench.until(lambda: not rig.tx.items and len(rig.nic.sent[0]) == len(expected))
    assert rig.nic.sent[0] == expected
    found = await rig.counters()
    balance(found)
    assert (found["tx_refused"], found["tx_size"]) == (refused, wrong)


@cocotb.test()
async def a_function_that_takes_nothing_loses_nothing(dut: Any) -> None:
    """If a function accepts no frames, no frame is lost."""
    rig = rig_of(dut, "four", seed=33)
    await rig.start("igb")
    rig.rx.stall = 1.0
    there, back = rig.offer(50)
    # Transmitted frames continue.
    await rig.bench.until(lambda: sum(map(len, rig.nic.sent)) == sum(map(len, back)))
    await rig.bench.cycle(3000)
    assert not rig.rx.items
    rig.rx.stall = 0.0
    await rig.bench.until(lambda: rig.came(there, back))
    assert [rig.of_queue(queue) for queue in range(4)] == there
    balance(await rig.counters())


@cocotb.test()
async def a_nic_that_fetches_nothing_loses_nothing(dut: Any) -> None:
    """If a NIC fetches no descriptors, no frame is lost."""
    rig = rig_of(dut, "four", seed=34)
    await rig.start("ixgbe")
    rig.nic.running = False
    there, back = rig.offer(60)
    await rig.bench.cycle(3000)
    assert rig.tx.items  # back-pressure
    rig.nic.running = True
    await rig.bench.until(lambda: rig.came(there, back), 60_000)
    assert rig.nic.sent == back


@cocotb.test()
async def tails_that_the_bus_does_not_take_hold_up_no_read(dut: Any) -> None:
    """Tails that wait for the bus do not block reads."""
    rig = rig_of(dut, seed=35)
    await rig.start()
    await rig.pass_all(5)
    rig.tails.aw.stall = 1.0
    got: list[bytes] = []
    for i in range(40):
        rig.transmit(rig.random_frame(60))
        rig.nic.read(64 * i, 64, got.append)
    await rig.bench.until(lambda: len(got) == 40, 500)
    rig.tails.aw.stall = 0.0
    await rig.bench.until(lambda: len(rig.nic.sent[0]) == 40)
    rig.tails.response = lambda: 2
    await rig.pass_all(5) if not rig.nic.sent[0].clear() else None
    assert (await rig.counters())["tail_errors"] > 0


@cocotb.test()
async def what_is_outside_is_refused(dut: Any) -> None:
    """Accesses outside all regions are refused."""
    rig = rig_of(dut, "four", seed=36)
    await rig.start()
    await rig.bench.cycle(200)
    nic = rig.nic
    inside = [
        0,
        32 * 16 - 64,
        TX_RING,
        3 * QUEUE,
        HEADS + 192,
        PACK,
        PACK + 2 * 512 * 64 - 64,
        SLOTS,
        SLOTS + 4 * 2 * 32 * 2048 - 64,
    ]
    outside = [
        32 * 16,
        TX_RING + 32 * 16,
        4 * QUEUE,
        HEADS + 256,
        0x210000,
        PACK - 64,
        PACK + 2 * 512 * 64,
        SLOTS + 4 * 2 * 32 * 2048,
        0x7FFFC0,
    ]
    for offsets, bad in ((inside, 0), (outside, 1)):
        for offset in offsets:
            errors = nic.errors
            got: list[bytes] = []
            nic.read(offset, 64, got.append)
            await rig.bench.until(lambda: bool(got))  # noqa: B023
            assert nic.errors - errors == bad, hex(offset)
    before = nic.writes_done
    for offset in (*outside, PACK):
        nic.write_window(offset, bytes(64))
    await rig.bench.until(lambda: nic.writes_done == before + len(outside) + 1)
    assert nic.errors == 2 * len(outside) + 1
    wrap = Burst(1, 64, 4, 6, WRAP)
    wrap.data = [(0, 0)] * 4
    nic.manager.write(wrap)
    await rig.bench.until(lambda: nic.errors == 2 * len(outside) + 2)
    found = await rig.counters()
    assert (found["outside_reads"], found["outside_writes"]) == (len(outside), len(outside) + 1)
    nic.errors = 0
    await rig.pass_all(5)
    assert SLVERR == 2


@cocotb.test()
async def a_hostile_nic_is_contained_and_counted(dut: Any) -> None:
    """A hostile NIC is contained and counted."""
    rig = rig_of(dut, "four", seed=37)
    for in_place in (False, True):
        await rig.start("igb", in_place=in_place, doorbell_timer=200)
        if in_place:
            Verdicts(rig)
        rig.nic.honest = False
        for _ in range(700):
            attack(rig)
            if rig.bench.random.random() < 0.2:
                rig.transmit(rig.random_frame(60), rig.bench.random.randrange(4))
            await rig.bench.cycle(2)
        await rig.bench.until(lambda: not rig.nic.manager.w.items, 5000)
        # The NIC stops, and after a reset of the queues everything works again.
        rig.nic.running = False
        for queue in range(4):
            await rig.registers.write("queue_control", 0, queue)
        await rig.bench.cycle(3000)
        for queue in range(4):
            assert await rig.registers.field("queue_state", "idle", queue) == 1
        found = await rig.counters()
        balance(found)
        assert found["rx_unexpected"] > 0
        assert found["rx_stray"] > 0
        rig.nic.restart()
        rig.nic.habits = Habits()
        rig.received.forget()
        rig.rx.items.clear()
        await rig.set_up()
        await rig.pass_all(10)


class Verdicts:
    """A function that forwards or drops frames at random."""

    def __init__(self, rig: Rig) -> None:
        Function(rig, lambda queue, size, first: (rig.bench.random.choice([0, FORWARD]), b""))
