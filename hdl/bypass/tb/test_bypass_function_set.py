# SPDX-License-Identifier: Apache-2.0
"""The functions alone: echo against scapy at every speed, line rate, latencies, registers, resets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
from bypass_cores import PACKAGES
from echo_model import ADDRESS, MAC, PEER, PEER_MAC, Fate, Host, asking, check, fate
from function_set_rig import INSTANCES, TOP, SetRig
from functions_rig import CHECKER, ECHO, IN_PLACE, OUTSIDE
from scapy.layers.inet import ICMP, IP, UDP, defragment, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from simulate import simulate

from wherry.bypass.generated.functions_registers import REGISTERS

MORE = ("bypass_function_filter", "bypass_function_generator")
ECHO_LATENCY, HEAD_LATENCY, OUTSIDE_LATENCY = 6, 5, 2  # cycles, for a set with a filter
HOSTS = (
    Host(),
    Host(udp_any=True),
    Host(reflect=True),
    Host(arp=False, udp=False),
    Host(icmp=False, udp_port=9, reflect=True),
)


async def ask(rig: SetRig, host: Host, count: int, most: int) -> None:
    """Mixes frames of the stream and in place; each is answered as scapy predicts, or counted."""
    draw = rig.bench.random
    await rig.functions.clear()
    streamed: list[tuple[bytes, Fate]] = []
    shown: list[tuple[bytes, Fate]] = []
    for _ in range(count):
        frame = asking(draw, most)
        streamed.append((frame, fate(frame, host)))
        rig.give(frame, draw.randrange(16))
        if draw.random() < 0.5:
            frame = asking(draw)
            shown.append((frame, fate(frame, host)))
            rig.show(frame, draw.randrange(16))
    pairs = [item[3] >> 16 & 0xFF for item in rig.rx.items if item[2]]  # type: ignore[index]
    replies = [
        (frame, opinion, pair)
        for (frame, opinion), pair in zip(streamed, pairs, strict=True)
        if opinion.reply is not None
    ]

    def came() -> bool:
        done = not rig.rx.items and len(rig.verdict.items) == len(shown)
        return done and len(rig.sent.update()) == len(replies)

    await rig.bench.until(came, 60_000)
    for (pair, found), (frame, opinion, expected) in zip(rig.sent.frames, replies, strict=True):
        assert pair == expected
        check(frame, found, opinion)
    for verdict, (frame, opinion) in zip(rig.verdicts, shown, strict=True):
        assert verdict.forward == (opinion.reply is not None)
        if opinion.reply is not None:
            assert verdict.replaced
            check(frame, verdict.replaced[: len(frame)] + frame[64:], opinion)
    counted = Counter(opinion.counter for _, opinion in streamed + shown)
    counters = await rig.functions.counters()
    assert counters == {**counted, "filter_missed": len(streamed) + len(shown)}
    rig.out.items.clear()
    rig.sent.forget()
    rig.verdict.items.clear()


@cocotb.test()
async def echo_is_as_scapy_has_it(dut: Any) -> None:
    for name in INSTANCES:
        rig = SetRig(dut, name)
        await rig.begin()
        for host in HOSTS:
            await rig.functions.set_up(host, ECHO | IN_PLACE)
            await ask(rig, host, 120, 400)
        await rig.functions.set_up(HOSTS[0], ECHO | IN_PLACE)
        await ask(rig, HOSTS[0], 15, 9000)


@cocotb.test()
async def at_every_pace(dut: Any) -> None:
    """Includes outputs that are blocked for a long time."""
    rig = SetRig(dut, seed=2)
    await rig.begin()
    await rig.functions.set_up(HOSTS[2], ECHO | IN_PLACE)
    for idle, stall in ((0.0, 0.5), (0.6, 0.0), (0.4, 0.4), (0.0, 0.9)):
        rig.pace(idle, stall)
        await ask(rig, HOSTS[2], 60, 300)
    rig.pace(0.0, 1.0)
    frames = [bytes([2]) + rig.bench.random.randbytes(149) for _ in range(60)]
    frames = [frame[:6] + bytes([2]) + frame[7:] for frame in frames]
    for frame in frames:
        rig.give(frame)
        rig.show(frame)
    await rig.bench.cycle(400)
    assert len(rig.rx.items) + len(rig.head.items) > 120  # full, and waits
    rig.verdict.stall = 0.0  # one alone
    await rig.bench.cycle(200)
    rig.pace(0.0, 0.0)
    await rig.bench.until(lambda: len(rig.sent.update()) == 60 == len(rig.verdict.items))
    assert [found for _, found in rig.sent.frames] == [f[6:12] + f[:6] + f[12:] for f in frames]


@cocotb.test()
async def a_beat_a_cycle_and_in_so_many(dut: Any) -> None:
    rig = SetRig(dut, seed=3)
    await rig.begin()
    await rig.functions.set_up(HOSTS[0], ECHO | IN_PLACE)
    ping = bytes(Ether(src=PEER_MAC, dst=MAC) / IP(src=PEER, dst=ADDRESS) / ICMP() / Raw(bytes(18)))
    for size, count in ((60, 40), (64, 40), (65, 30), (1514, 5), (9000, 2)):
        rig.rx.cycles_of.clear()
        for _ in range(count):
            rig.give(bytes(Ether(src=PEER_MAC, dst=MAC) / IP(src=PEER, dst=ADDRESS) / ICMP() / Raw(bytes(size - 42))))
        await rig.bench.until(lambda: len(rig.sent.update()) == count)  # noqa: B023
        beats = count * -(-size // 64)
        assert len(rig.out.items) == beats
        assert rig.out.cycles_of[-1] - rig.out.cycles_of[0] == beats - 1
        assert rig.out.cycles_of[0] - rig.rx.cycles_of[0] == ECHO_LATENCY
        rig.out.items.clear()
        rig.out.cycles_of.clear()
        rig.sent.forget()
    for _ in range(40):
        rig.show(ping)
    await rig.bench.until(lambda: len(rig.verdict.items) == 40)
    assert rig.verdict.cycles_of[-1] - rig.verdict.cycles_of[0] == 39
    assert rig.verdict.cycles_of[0] - rig.head.cycles_of[0] == HEAD_LATENCY
    await rig.functions.write("receive", OUTSIDE)
    rig.rx.cycles_of.clear()
    for _ in range(40):
        rig.give(ping)
    await rig.bench.until(lambda: len(rig.passed.update()) == 40)
    assert [found for _, found in rig.passed.frames] == [ping] * 40
    assert [there - here for here, there in zip(rig.rx.cycles_of, rig.elsewhere.cycles_of, strict=True)] == [
        OUTSIDE_LATENCY
    ] * 40


@cocotb.test()
async def fragments_make_a_whole_answer(dut: Any) -> None:
    """Sends a ping and a datagram that are longer than the network's frames."""
    rig = SetRig(dut, seed=4)
    await rig.begin()
    await rig.functions.set_up(Host(udp_any=True), ECHO)
    for size in (1473, 3000, 8192, 20_000):
        data = rig.bench.random.randbytes(size)
        for above in (ICMP(id=3, seq=9), UDP(sport=1234, dport=7)):
            whole = IP(src=PEER, dst=ADDRESS, id=77) / above / Raw(data)
            parts = fragment(IP(bytes(whole)), 1480)
            for part in parts:
                rig.give(bytes(Ether(src=PEER_MAC, dst=MAC) / part).ljust(60, b"\0"))
            rig.sent.forget()
            rig.out.items.clear()
            await rig.bench.until(lambda: len(rig.sent.update()) == len(parts))  # noqa: B023
            replies = [IP(found[14 : 14 + int.from_bytes(found[16:18], "big")]) for _, found in rig.sent.frames]
            answer = IP(bytes(defragment(replies)[0]))
            assert (answer.src, answer.dst) == (ADDRESS, PEER)
            layer = type(above)
            assert bytes(answer[layer].payload) == data
            sum_ = answer[layer].chksum
            del answer[layer].chksum
            assert IP(bytes(answer))[layer].chksum == sum_


@cocotb.test()
async def sums_of_ones_and_zeros(dut: Any) -> None:
    """If RFC 1624 allows two results, a message of zeros must not get the checksum 0."""
    rig = SetRig(dut, seed=5)
    await rig.begin()
    await rig.functions.set_up(Host(), ECHO)
    for data in (bytes(18), b"\xff" * 18, b"\xf7\xff" + bytes(16), b"\0\1\xf7\xfe" + bytes(14), b"\x08\0" + bytes(16)):
        for id_, seq in ((0, 0), (0xFFFF, 0), (0xF7FF, 0), (0xF7FE, 1)):
            frame = bytes(Ether(src=PEER_MAC, dst=MAC) / IP(src=PEER, dst=ADDRESS) / ICMP(id=id_, seq=seq) / Raw(data))
            rig.give(frame)
            rig.sent.forget()
            rig.out.items.clear()
            await rig.bench.until(lambda: len(rig.sent.update()) == 1)
            check(frame, rig.sent.frames[0][1], fate(frame, Host()))


@cocotb.test()
async def registers_are_as_their_page_has_them(dut: Any) -> None:
    for name, (rules, generator) in INSTANCES.items():
        rig = SetRig(dut, name, 6)
        await rig.begin()
        expected = {}
        for key, register in REGISTERS.items():
            counts = 0x100 <= register.offset < 0x400 or register.offset >= 0x800
            for index in range(0, register.count, 37 if register.count > 100 else 1):
                at = register.at(index)
                expected[at] = 0 if counts else register.reset
                if key == "latency_least":
                    expected[at] = 0xFFFFFFFF if generator else 0
        expected[REGISTERS["capability"].offset] = rules | generator << 4
        while await rig.functions.read("filter_state"):
            pass
        for at, value in expected.items():
            assert await rig.bus.read_at(at) == value, hex(at)
        written = [
            (key, index)
            for key, register in REGISTERS.items()
            if register.access == "rw" and key not in ("control", "generator")
            for index in range(0, register.count, 11 if register.count > 100 else 1)
        ]
        rig.bench.random.shuffle(written)
        masks = {"receive": 0x13, "echo_mac_high": 0xFFFF, "echo_control": 0xFFFF001F, "filter_default": 1}
        masks |= {"filter_rule": 3, "generator_bytes": 0x3FFF, "generator_run": 0xFFFF, "histogram": 0x1F}
        for key, index in written:
            value = rig.bench.random.getrandbits(32)
            at = REGISTERS[key].at(index)
            assert await rig.bus.write_at(at, value, 7) == 2  # SLVERR: not a whole word
            await rig.functions.write(key, value, index)
            expected[at] = value & masks.get(key, 0xFFFFFFFF)
        for at, value in expected.items():
            if at != REGISTERS["filter_state"].offset:
                assert await rig.bus.read_at(at) == value, hex(at)
        for at in (0x014, 0x060, 0x0CC, 0x0FC, 0x148, 0x1B0, 0x200, 0x3FC):
            assert await rig.bus.write_at(at, 0xFFFFFFFF) == 0
            assert await rig.bus.read_at(at) == 0, hex(at)
        await rig.begin()
        assert await rig.functions.read("echo_ip") == 0


@cocotb.test()
async def a_reset_at_any_moment_leaves_nothing(dut: Any) -> None:
    for seed in range(6):
        rig = SetRig(dut, seed=10 + seed)
        await rig.begin()
        await rig.functions.set_up(HOSTS[2], rig.bench.random.choice([ECHO, CHECKER, OUTSIDE]) | IN_PLACE)
        await rig.functions.write("generator", 1)
        rig.pace(0.2, rig.bench.random.choice([0.0, 0.5, 1.0]))
        for _ in range(40):
            rig.give(asking(rig.bench.random, 500))
            rig.show(asking(rig.bench.random, 500))
        await rig.bench.cycle(rig.bench.random.randint(5, 150))
        await rig.begin()
        rig.pace(0.0, 0.0)
        await rig.bench.cycle(30)
        assert not rig.out.items
        assert not rig.verdict.items
        assert not rig.elsewhere.items
        await rig.functions.set_up(HOSTS[0], ECHO | IN_PLACE)
        await ask(rig, HOSTS[0], 20, 300)


def test_bypass_function_set() -> None:
    simulate(__file__, text=TOP, sources=PACKAGES, more=MORE)
