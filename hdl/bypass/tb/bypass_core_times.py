# SPDX-License-Identifier: Apache-2.0
"""Timing of the bypass core: latencies, a beat a cycle, and when tails are written."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_cores import rig_of
from bypass_nic import Habits
from bypass_rig import FORWARD, Function

RX_CYCLES, TX_CYCLES, HEAD_TO_TAIL = 5, 3, 2


@cocotb.test()
async def the_promised_latencies(dut: Any) -> None:
    """Checks the specified latencies."""
    for name, more in (("one", 0), ("four", 1)):
        rig = rig_of(dut, name, seed=11)
        await rig.start()
        await rig.bench.until(lambda: rig.nic.rx[-1].fetched == 8)  # noqa: B023
        for size in (60, 64, 65, 1514):
            queue = rig.queues - 1
            rig.arrive(rig.random_frame(size), queue)
            await rig.bench.until(lambda: len(rig.received.update()) == 1)  # noqa: B023
            first = len(rig.rx.items) - -(-size // 64)
            took = rig.rx.cycles_of[first] - rig.nic.manager.w.cycles_of[-1]
            assert took <= RX_CYCLES + more, (name, size, took)
            rig.received.frames.clear()

            rig.transmit(rig.random_frame(size), queue)
            count = len(rig.tails.log)
            await rig.bench.until(lambda: len(rig.tails.log) > count)  # noqa: B023
            took = rig.tails.aw.cycles_of[-1] - rig.tx.cycles_of[-1]
            assert took <= TX_CYCLES, (name, size, took)
            await rig.bench.until(lambda: len(rig.nic.sent[queue]) == 1)  # noqa: B023
            rig.nic.sent[queue].clear()


@cocotb.test()
async def a_frame_in_place_is_told_of_in_seven_cycles(dut: Any) -> None:
    """The tail for a frame in place is written within seven cycles."""
    rig = rig_of(dut, seed=12)
    Function(rig, lambda queue, size, first: (FORWARD, b""))
    await rig.start(in_place=True, doorbells=0x00F00011, doorbell_timer=0)
    await rig.bench.until(lambda: rig.nic.rx[0].fetched == 8)
    for size in (60, 1514):
        before = len(rig.tails.log)
        rig.arrive(rig.random_frame(size))
        await rig.bench.until(lambda: len(rig.tails.log) > before)  # noqa: B023
        head = rig.head.cycles_of[-1] - rig.nic.manager.w.cycles_of[-1]
        tail = rig.tails.aw.cycles_of[-1] - rig.verdict.cycles_of[-1]
        assert head <= RX_CYCLES, head
        assert tail <= HEAD_TO_TAIL, tail
        assert head + tail <= 7
        await rig.bench.until(lambda: len(rig.nic.sent[0]) == 1)
        rig.nic.sent[0].clear()


@cocotb.test()
async def a_beat_a_cycle_each_way(dut: Any) -> None:
    """Each direction passes a beat a cycle."""
    rig = rig_of(dut, seed=13)
    await rig.start("ixgbe")
    rig.nic.habits = Habits(cache=256)
    # Received frames wait for a function, which then takes all of them.
    rig.rx.stall = 1.0
    lengths = [64] * 30 + rig.lengths(40) + [9000, 64, 2049, 9000, 60, 60, 1514]
    frames = [rig.random_frame(size) for size in lengths]
    for frame in frames:
        rig.arrive(frame)
    await rig.bench.until(lambda: not rig.nic.arriving[0] and not rig.nic.manager.w.items)
    await rig.bench.cycle(100)
    rig.rx.stall = 0.0
    await rig.bench.until(lambda: len(rig.of_queue(0)) == len(frames))
    assert rig.of_queue(0) == frames
    cycles = rig.rx.cycles_of
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles))), "a bubble"
    # Transmitted frames fill the packed buffer while the NIC sleeps.
    rig.nic.running = False
    lengths = [64] * 100 + [1514] * 10 + [9000]
    for size in lengths:
        rig.transmit(rig.random_frame(size))
    begun = len(rig.tx.cycles_of)
    await rig.bench.until(lambda: not rig.tx.items)
    cycles = rig.tx.cycles_of[begun:]
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles))), "a pause"
    rig.nic.running = True
    await rig.bench.until(lambda: len(rig.nic.sent[0]) == len(lengths))


@cocotb.test()
async def credits_hold_tails_back_until_the_nic_fetches(dut: Any) -> None:
    """Credits delay tails until the NIC fetches."""
    rig = rig_of(dut, seed=14)
    for credits in (1, 3):
        await rig.start(doorbells=0x00080001 | credits << 4, doorbell_timer=0)
        await rig.bench.until(lambda: rig.nic.rx[0].fetched == 8)
        rig.nic.running = False
        for _ in range(12):
            rig.transmit(rig.random_frame(60))
            await rig.bench.cycle(20)
        tails = [value for _, ring, value in rig.tails.log if ring == 1]
        assert tails == list(range(1, credits + 1))
        rig.nic.running = True
        await rig.bench.until(lambda: len(rig.nic.sent[0]) == 12)
        tails = [value for _, ring, value in rig.tails.log if ring == 1]
        assert tails[-1] == 12, tails
        assert len(tails) == credits + 1, tails


@cocotb.test()
async def a_tail_is_written_in_the_end_though_no_fetch_is_seen(dut: Any) -> None:
    """A tail is eventually written even if no fetch is seen."""
    rig = rig_of(dut, seed=15)
    await rig.start(doorbells=0x00080011, doorbell_timer=300)
    await rig.bench.until(lambda: rig.nic.rx[0].fetched == 8)
    rig.nic.running = False
    rig.transmit(rig.random_frame(60))
    await rig.bench.cycle(20)
    rig.transmit(rig.random_frame(60))
    await rig.bench.cycle(200)
    assert [value for _, ring, value in rig.tails.log if ring == 1] == [1]
    await rig.bench.cycle(150)
    assert [value for _, ring, value in rig.tails.log if ring == 1] == [1, 2]
    # The same for a receive tail: one slot less than a batch returned.
    rig.nic.running = True
    before = sum(1 for _, ring, _ in rig.tails.log if ring == 0)
    rig.arrive(rig.random_frame(60))
    await rig.bench.until(lambda: sum(1 for _, ring, _ in rig.tails.log if ring == 0) == before + 1)


@cocotb.test()
async def a_busy_nic_makes_few_tails(dut: Any) -> None:
    """A busy NIC causes few tails."""
    rig = rig_of(dut, seed=16)
    await rig.start("igb")
    rig.nic.habits = Habits(eager=0.05)
    rig.tails.delay = 60
    await rig.pass_all(80, 300, 60_000)
    assert len(rig.tails.log) < 80, len(rig.tails.log)
