# SPDX-License-Identifier: Apache-2.0
"""bypass_functions with a NIC modelled after datasheets: the NIC sends echo's answers, and no other frames."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
from bypass_cores import PACKAGES
from echo_model import ADDRESS, MAC, PEER, PEER_MAC, Host, asking, check, fate
from functions_rig import ECHO, IN_PLACE, NOBODY, OUTSIDE, FunctionsRig
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether
from simulate import simulate

TOP = """
module top (input wire clk_i, input wire rst_i);
  bypass_functions #(.QueueBits(1), .RxRingBits(5), .TxRingBits(5)) two (.clk_i, .rst_i);
endmodule
"""
QUEUES = {"queue_bits": 1, "rx_bits": 5, "tx_bits": 5}


@cocotb.test()
async def ping_is_answered(dut: Any) -> None:
    """Begins as a host does: it resolves the address by ARP, and then pings it."""
    rig = FunctionsRig(dut, "two", **QUEUES)
    await rig.begin("e1000e", Host(), ECHO)
    rig.arrive(bytes(Ether(src=PEER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=PEER_MAC, psrc=PEER, pdst=ADDRESS)))
    await rig.bench.until(lambda: len(rig.nic.sent[0]) == 1)
    answer = Ether(rig.nic.sent[0][0])
    assert (answer.src, answer.dst, answer[ARP].op) == (MAC, PEER_MAC, 2)
    assert (answer[ARP].hwsrc, answer[ARP].psrc) == (MAC, ADDRESS)
    for size in (0, 18, 56, 1472, 8972):
        data = rig.random_frame(size)
        ping = Ether(src=PEER_MAC, dst=answer[ARP].hwsrc) / IP(src=PEER, dst=ADDRESS) / ICMP(id=7, seq=size) / data
        rig.nic.sent[0].clear()
        rig.arrive(bytes(ping))
        await rig.bench.until(lambda: len(rig.nic.sent[0]) == 1)
        pong = Ether(rig.nic.sent[0][0])
        assert (pong[IP].src, pong[IP].dst, pong[ICMP].type, pong[ICMP].seq) == (ADDRESS, PEER, 0, size)
        assert bytes(pong[ICMP].payload)[:size] == data
        sum_ = pong[ICMP].chksum
        del pong[ICMP].chksum
        assert Ether(bytes(pong))[ICMP].chksum == sum_
    assert not rig.nic.errors


@cocotb.test()
async def all_kinds_come_back_or_are_counted(dut: Any) -> None:
    rig = FunctionsRig(dut, "two", seed=2, **QUEUES)
    for kind, in_place, host in (
        ("ixgbe", False, Host()),
        ("igb", True, Host()),
        ("i40e", False, Host(udp_any=True, reflect=True)),
        ("ice", True, Host(reflect=True)),
    ):
        await rig.begin(kind, host, ECHO | IN_PLACE, in_place=in_place)
        asked = [[asking(rig.bench.random, 5000) for _ in range(60)] for _ in range(2)]
        expected = [[fate(frame, host) for frame in frames] for frames in asked]
        for queue, frames in enumerate(asked):
            for frame in frames:
                rig.arrive(frame, queue)
        replies = sum(f.reply is not None for fates in expected for f in fates)
        await rig.bench.until(lambda: sum(map(len, rig.nic.sent)) == replies)  # noqa: B023
        counters = await rig.functions.counters()
        counted = Counter(f.counter for fates in expected for f in fates)
        assert counters == {**counted, "filter_missed": 120}
        for queue in range(2):
            pairs = [(f, e) for f, e in zip(asked[queue], expected[queue], strict=True) if e.reply is not None]
            for (frame, opinion), found in zip(pairs, rig.nic.sent[queue], strict=True):
                check(frame, found, opinion)
        assert not rig.nic.errors


@cocotb.test()
async def the_choice_is_made_at_run_time(dut: Any) -> None:
    """Frames are discarded, or go to an external function, whose own frames leave beside those of echo."""
    rig = FunctionsRig(dut, "two", seed=3, **QUEUES)
    await rig.begin("ixgbe", Host(reflect=True), NOBODY)
    for _ in range(5):
        rig.arrive(rig.random_frame(100))
    await rig.bench.cycle(400)
    assert await rig.functions.counters() == {"filter_missed": 5, "discarded": 5}
    await rig.functions.write("receive", OUTSIDE)
    await rig.pass_all(20)
    await rig.functions.write("receive", ECHO)
    frames = [b"\x02" + rig.random_frame(60) for _ in range(30)]
    frames = [frame[:6] + b"\x02" + frame[7:] for frame in frames]
    others = [rig.random_frame(200) for _ in range(30)]
    for frame, other in zip(frames, others, strict=True):
        rig.arrive(frame)
        rig.transmit(other)
    await rig.bench.until(lambda: len(rig.nic.sent[0]) == 60)
    assert [frame for frame in rig.nic.sent[0] if len(frame) == 200] == others
    assert [f[6:12] + f[:6] + f[12:] for f in rig.nic.sent[0] if len(f) == 61] == frames
    assert not rig.received.update()


@cocotb.test()
async def a_reset_in_mid_flight_leaves_nothing(dut: Any) -> None:
    """A reset at any moment, with frames of all kinds and the generator. After a new setup, echo answers."""
    rig = FunctionsRig(dut, "two", seed=4, **QUEUES)
    draw = rig.bench.random
    for turn in range(6):
        in_place = bool(turn % 2)
        await rig.begin("ixgbe", Host(reflect=True), ECHO | IN_PLACE, in_place=in_place)
        await rig.functions.write("generator", 1)
        for _ in range(20):
            rig.arrive(asking(draw, 1500), draw.randrange(2))
        await rig.bench.cycle(draw.randint(10, 300))
        await rig.bench.reset()
        rig.nic.restart()
        await rig.bench.cycle(200)
        assert not any(rig.nic.sent)
        assert not rig.tails.log
        assert await rig.functions.counters() == {}
        assert await rig.counters() == {}
        await rig.begin("igb", Host(), ECHO | IN_PLACE, in_place=in_place)
        asked = [asking(draw, 700) for _ in range(12)]
        for frame in asked:
            rig.arrive(frame)
        answered = [(f, o) for f, o in ((f, fate(f, Host())) for f in asked) if o.reply is not None]
        await rig.bench.until(lambda: len(rig.nic.sent[0]) == len(answered))  # noqa: B023
        for (frame, opinion), found in zip(answered, rig.nic.sent[0], strict=True):
            check(frame, found, opinion)


def test_bypass_functions() -> None:
    simulate(__file__, text=TOP, sources=PACKAGES, deeper=())
