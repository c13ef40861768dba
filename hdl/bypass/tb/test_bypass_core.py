# SPDX-License-Identifier: Apache-2.0
"""The complete bypass core with a NIC modelled after datasheets: frames pass both ways, unchanged and in order."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_cores import CORES, DEEPER, MORE, PACKAGES, rig_of, top_of
from bypass_formats import FORMATS
from bypass_nic import Habits
from simulate import simulate


@cocotb.test()
async def frames_pass_both_ways_unchanged(dut: Any) -> None:
    rig = rig_of(dut)
    await rig.start()
    there, back = rig.offer(60)
    await rig.bench.until(lambda: rig.came(there, back))
    assert rig.of_queue(0) == there[0]
    assert rig.nic.sent == back
    found = await rig.counters()
    assert found["rx_in"] == found["rx_frames"] == found["tx_in"] == found["tx_posted"] == found["tx_done"] == 60
    assert found["rx_bytes"] == sum(len(f) for f in there[0])
    assert found["tx_bytes"] == sum(len(f) for f in back[0])
    assert found["tails"] == len(rig.tails.log)
    assert set(found) == {
        "rx_in",
        "rx_frames",
        "rx_bytes",
        "tx_in",
        "tx_posted",
        "tx_bytes",
        "tx_done",
        "tails",
        "fetches",
    }
    assert not rig.nic.errors


@cocotb.test()
async def every_nic_understands_and_is_understood(dut: Any) -> None:
    rig = rig_of(dut, seed=2)
    for kind in FORMATS:
        await rig.start(kind)
        for habits in (Habits(), Habits(words=True), Habits(line=4, piece=512, shuffle=6, cache=64)):
            rig.nic.habits = habits
            await rig.pass_all(10, 700 if habits.words else 1514)
        assert not rig.nic.errors, kind


@cocotb.test()
async def long_frames_take_several_descriptors(dut: Any) -> None:
    rig = rig_of(dut, seed=3)
    await rig.start("ixgbe")
    for size in (2047, 2048, 2049, 4096, 4097, 8191, 8192, 9000, 9728, 64):
        frame = rig.random_frame(size)
        rig.arrive(frame)
        rig.transmit(frame)
        await rig.bench.until(lambda: len(rig.of_queue(0)) == 1 == len(rig.nic.sent[0]))
        assert rig.of_queue(0) == rig.nic.sent[0] == [frame]
        rig.received.frames.clear()
        rig.nic.sent[0].clear()
    await rig.pass_all(40, 9000)


@cocotb.test()
async def queues_are_separate_and_their_rings_go_round(dut: Any) -> None:
    rig = rig_of(dut, "four", seed=4)
    for kind, habits in (("igb", Habits(cache=8)), ("ice", Habits(line=2, cache=16, shuffle=4))):
        await rig.start(kind, doorbells=0x00080311 | (3 if kind == "ice" else 0) << 8)
        rig.nic.habits = habits
        await rig.pass_all(45)
        await rig.pass_all(25, 9000)
        if kind == "ice":
            assert all(value % 8 == 0 for _, ring, value in rig.tails.log if ring % 2 == 0)


@cocotb.test()
async def any_pace_is_kept(dut: Any) -> None:
    rig = rig_of(dut, "four", seed=5)
    await rig.start("i40e")
    for idle, stall, eager in ((0.0, 0.7, 1.0), (0.7, 0.0, 0.3), (0.5, 0.5, 0.5), (0.0, 0.0, 0.2)):
        rig.nic.manager.pace(idle, stall)
        rig.tx.idle, rig.rx.stall = idle, stall
        rig.tails.aw.stall, rig.tails.w.stall = stall, idle
        rig.nic.habits = Habits(eager=eager, line=4, shuffle=3)
        await rig.pass_all(12, 4000, 60_000)


def test_bypass_core() -> None:
    simulate(__file__, text=top_of(CORES), sources=PACKAGES, more=MORE, deeper=DEEPER)
