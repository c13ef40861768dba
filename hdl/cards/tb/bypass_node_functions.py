# SPDX-License-Identifier: Apache-2.0
"""bypass_node with the functions, as in bypass_functions_card: the functions answer frames that a NIC writes."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_nic import Habits
from card_rig import CardRig
from echo_model import Host, asking, check, fate
from functions_rig import ECHO, IN_PLACE, NOBODY, OUTSIDE


async def echo(rig: CardRig, host: Host, count: int) -> None:
    """Sends `count` frames on each pair; each is answered as scapy predicts, or counted as dropped."""
    asked = [[asking(rig.bench.random, 1200) for _ in range(count)] for _ in range(rig.queues)]
    opinions = [[fate(frame, host) for frame in frames] for frames in asked]
    for queue, frames in enumerate(asked):
        for frame in frames:
            rig.arrive(frame, queue)
    replies = sum(opinion.reply is not None for queue in opinions for opinion in queue)
    await rig.bench.until(lambda: sum(map(len, rig.nic.sent)) == replies, 60_000)
    for queue, frames in enumerate(asked):
        answered = [(f, o) for f, o in zip(frames, opinions[queue], strict=True) if o.reply is not None]
        for (frame, opinion), found in zip(answered, rig.nic.sent[queue], strict=True):
            check(frame, found, opinion)
    found = await rig.counters()
    assert found["rx_frames"] == count * rig.queues
    assert found.get("tx_done", 0) + found.get("verdicts_drop", 0) >= replies
    assert not rig.nic.errors
    for sent in rig.nic.sent:
        sent.clear()


@cocotb.test()
async def a_frame_passes_the_bridge_to_echo_and_back(dut: Any) -> None:
    """Covers streams and frames in place, at several speeds. The functions' registers are also behind BAR 0."""
    rig = CardRig(dut, "functions", seed=21)
    for kind, in_place, idle in (("igb", False, 0.0), ("i40e", False, 0.4), ("ixgbe", True, 0.2)):
        await rig.begin(kind, Host(), ECHO | IN_PLACE, in_place=in_place)
        rig.nic.habits = Habits(shuffle=3)
        rig.nic.manager.pace(idle, idle)
        assert await rig.functions.read("id") == 0x42595046
        assert await rig.functions.read("capability") == 0x18
        await echo(rig, Host(), 25)


@cocotb.test()
async def the_function_is_chosen_while_frames_come(dut: Any) -> None:
    """Frames go first to no function, then to the external one (the bench), then to echo."""
    rig = CardRig(dut, "functions", seed=22)
    await rig.begin("ixgbe", Host(), NOBODY)
    rig.nic.manager.pace(0.0, 0.0)
    for _ in range(4):
        rig.arrive(rig.random_frame(100))
    await rig.bench.cycle(400)
    assert (await rig.functions.counters())["discarded"] == 4
    await rig.functions.write("receive", OUTSIDE)
    await rig.pass_all(6, 1514, 60_000)
    await rig.functions.write("receive", ECHO)
    rig.arrive(frame := bytes.fromhex("02000000000102000000000a") + rig.random_frame(60))
    await rig.functions.write("echo_control", 1 << 4)  # reflect
    await rig.bench.until(lambda: bool(rig.nic.sent[0]))
    assert rig.nic.sent[0] == [frame[6:12] + frame[:6] + frame[12:]]


@cocotb.test()
async def a_reset_of_the_link_in_mid_flight_leaves_nothing(dut: Any) -> None:
    """The reset comes at any moment, with the generator running. Afterwards no function is selected; after a new setup,
    echo answers."""
    rig = CardRig(dut, "functions", seed=23)
    for _ in range(5):
        await rig.begin("ixgbe", Host(reflect=True), ECHO | IN_PLACE, in_place=bool(rig.bench.random.getrandbits(1)))
        await rig.functions.write("generator", 1)
        for _ in range(12):
            rig.arrive(asking(rig.bench.random, 1500), rig.bench.random.randrange(rig.queues))
        await rig.bench.cycle(rig.bench.random.randint(20, 600))
        await rig.restart("ixgbe")
        assert await rig.functions.read("receive") == 0
        assert await rig.functions.read("generator") == 0
        assert await rig.functions.counters() == {}
        assert await rig.counters() == {}
        await rig.functions.set_up(Host(), ECHO | IN_PLACE)
        await rig.set_up()
        await echo(rig, Host(), 6)
