# SPDX-License-Identifier: Apache-2.0
"""The core with the smallest rings and the most pairs, and with the largest rings."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_attack import attack, balance
from bypass_cores import CORNERS, PACKAGES, rig_of, top_of
from bypass_judge import Judge
from bypass_nic import Habits
from simulate import simulate


@cocotb.test()
async def frames_pass_on_all_pairs(dut: Any) -> None:
    for name, count in (("sixteen", 10), ("big", 30)):
        for kind in ("igb", "ice"):
            rig = rig_of(dut, name, seed=51)
            await rig.start(kind)
            rig.nic.habits = Habits(shuffle=4, cache=12)
            await rig.pass_all(count, 700, 60_000)
            await rig.pass_all(2, 9000, 60_000)
            balance(await rig.counters())
            assert not rig.nic.errors


@cocotb.test()
async def the_largest_rings_go_round(dut: Any) -> None:
    rig = rig_of(dut, "big", seed=52)
    await rig.start("ixgbe")
    rig.nic.habits = Habits(cache=256, fetch=64)
    for _ in range(12):
        there = [rig.random_frame(60) for _ in range(100)]
        back = [rig.random_frame(60) for _ in range(360)]
        for frame in there:
            rig.arrive(frame)
        for frame in back:
            rig.transmit(frame)
        await rig.bench.until(lambda: rig.came([there], [back]))  # noqa: B023
        assert (rig.of_queue(0), rig.nic.sent[0]) == (there, back)
        rig.received.frames.clear()
        rig.nic.sent[0].clear()


@cocotb.test()
async def in_place_on_all_pairs(dut: Any) -> None:
    for name, count in (("sixteen", 200), ("big", 80)):
        rig = rig_of(dut, name, seed=53)
        judge = Judge(rig)
        await rig.start("ixgbe", in_place=True, doorbell_timer=300)
        for size in rig.lengths(count, 9000):
            judge.arrive(rig.random_frame(size), rig.bench.random.randrange(rig.queues))
        await rig.bench.until(judge.done, 60_000)
        assert rig.nic.sent == judge.expected
        balance(await rig.counters())


@cocotb.test()
async def a_hostile_nic_on_sixteen_pairs(dut: Any) -> None:
    rig = rig_of(dut, "sixteen", seed=54)
    await rig.start("i40e", doorbell_timer=200)
    rig.nic.honest = False
    for _ in range(250):
        attack(rig)
        rig.transmit(rig.random_frame(60), rig.bench.random.randrange(16))
        await rig.bench.cycle(2)
    await rig.bench.until(lambda: not rig.nic.manager.w.items, 5000)
    rig.nic.running = False
    for queue in range(16):
        await rig.registers.write("queue_control", 0, queue)
    await rig.bench.until(lambda: not rig.tx.items)
    await rig.bench.cycle(2000)
    for queue in range(16):
        assert await rig.registers.field("queue_state", "idle", queue) == 1
    balance(await rig.counters())
    rig.nic.restart()
    rig.received.forget()
    rig.rx.items.clear()
    await rig.set_up()
    await rig.pass_all(5)


def test_bypass_core_corners() -> None:
    simulate(__file__, text=top_of(CORNERS), sources=PACKAGES)
