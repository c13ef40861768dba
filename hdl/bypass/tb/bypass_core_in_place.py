# SPDX-License-Identifier: Apache-2.0
"""Frames in place are transmitted from their receive slots, with verdicts of every kind."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_cores import rig_of
from bypass_judge import Judge
from bypass_nic import Habits


@cocotb.test()
async def verdicts_are_obeyed_in_order(dut: Any) -> None:
    """Verdicts take effect in order."""
    for name, seed in (("one", 21), ("four", 22)):
        rig = rig_of(dut, name, seed=seed)
        judge = Judge(rig)
        await rig.start("igb", in_place=True, doorbell_timer=400)
        errors = total = 0
        for habits, most in ((Habits(), 1514), (Habits(shuffle=5, line=4), 9000), (Habits(eager=0.3), 300)):
            rig.nic.habits = habits
            for size in rig.lengths(60, most):
                error = rig.bench.random.random() < 0.1
                errors += error
                total += 1
                judge.arrive(rig.random_frame(size), rig.bench.random.randrange(rig.queues), error=error)
            await rig.bench.until(judge.done, 60_000)
        assert rig.nic.sent == judge.expected
        await rig.bench.cycle(1200)  # time for a tail that waits for its timer, and for its fetch
        found = await rig.counters()
        assert found["rx_in"] == total == found["rx_frames"] + found["rx_error"]
        assert found["rx_error"] == errors
        assert found["verdicts_drop"] == judge.dropped
        assert found["tx_in"] == found["tx_posted"] == found["tx_done"] == sum(map(len, judge.expected))
        for queue in range(rig.queues):  # all slots except one have returned to the NIC
            assert await rig.registers.field("queue_state", "rx_given", queue) >= rig.rx_ring - 1 - 8
        assert not rig.nic.errors


@cocotb.test()
async def slots_go_round_while_some_are_sent(dut: Any) -> None:
    """Slots are reused while some of them are transmitted."""
    rig = rig_of(dut, "four", seed=23)
    judge = Judge(rig, forward=1.0)
    await rig.start("ixgbe", in_place=True, doorbell_timer=400)
    rig.nic.habits = Habits(cache=16)
    for round_ in range(3):
        # While the NIC's transmitter sleeps, slots fill; no frame is lost or overwritten.
        for queue in range(4):
            for size in rig.lengths(20):
                judge.arrive(rig.random_frame(size), queue)
        begin, rig.nic._begin = rig.nic._begin, lambda queue: None  # type: ignore[method-assign]
        await rig.bench.cycle(600)
        rig.nic._begin = begin  # type: ignore[method-assign]
        await rig.bench.until(judge.done, 30_000)
        assert rig.nic.sent == judge.expected, round_


@cocotb.test()
async def a_function_may_add_frames_of_its_own(dut: Any) -> None:
    """A function may also send frames of its own."""
    rig = rig_of(dut, seed=24)
    judge = Judge(rig, forward=0.5)
    await rig.start("e1000e", in_place=True)
    own = [rig.random_frame(size) for size in rig.lengths(40)]
    for size, frame in zip(rig.lengths(40), own, strict=True):
        judge.arrive(rig.random_frame(size), 0)
        rig.transmit(frame)
    await rig.bench.until(lambda: judge.seen[0] == 40 and len(rig.nic.sent[0]) == len(judge.expected[0]) + 40, 30_000)
    # Each kind keeps its own order.
    assert [frame for frame in rig.nic.sent[0] if frame in own] == own
    assert [frame for frame in rig.nic.sent[0] if frame not in own] == judge.expected[0]
