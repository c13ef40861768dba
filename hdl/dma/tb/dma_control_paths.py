# SPDX-License-Identifier: Apache-2.0
"""The paths of descriptors: from doorbells of every kind to turns, status words, packet entries and interrupts."""

from __future__ import annotations

from random import Random
from typing import Any

import cocotb
from dma_host import PAGE, Descriptor, DmaHost


def some(random: Random, longest: int = 3 * PAGE, stream: float = 0.0, notify: float = 0.3) -> Descriptor:
    """A random descriptor of up to `longest` bytes; with stream, a buffer within a page, or a packet's whole lines."""
    host = random.getrandbits(40)
    size = random.choice([1, 64, PAGE, random.randint(1, 200), random.randint(1, longest)])
    streams = random.random() < stream
    if streams:
        size = min(size, PAGE - host % PAGE)
    return Descriptor(
        host,
        random.getrandbits(40),
        size,
        streams,
        random.random() < notify,
        bool(random.getrandbits(1)) or (streams and size % 64 != 0),
        random.getrandbits(64),
    )


async def finish(host: DmaHost, limit: int = 20_000) -> None:
    """Waits until all is reported, and then some cycles in which no other post may come."""
    await host.bench.until(host.quiet, limit)
    await host.bench.cycle(60)
    host.check_done()


@cocotb.test()
async def one_descriptor_goes_the_whole_path(dut: Any) -> None:
    """A doorbell, a fetch of 32 bytes, a turn, an answer, a status word."""
    for name, channels in (("one", 1), ("four", 4)):
        host = DmaHost(dut, name, channels)
        await host.bench.reset()
        await host.set_up([0])
        host.post(0, [Descriptor(0x1000_0040, 0x2000, 64)])
        host.ring_bell(0)
        await finish(host)
        assert host.read_log[0][1:] == (host.rings[0].base, 32)
        assert [one[1:] for one in host.turn_log] == [(0, 64)]
        assert [one[1:] for one in host.status_log] == [(0, 1)]
        assert not host.rings[0].messages


async def traffic(host: DmaHost, count: int, numbers: list[int], **shape: float) -> None:
    """Posts `count` descriptors in each ring, in random portions, with doorbells of every kind."""
    random = host.random
    left = dict.fromkeys(numbers, count)
    while any(left.values()):
        number = random.choice(numbers)
        portion = min(left[number], host.room(number), random.choice([1, 1, 2, 5, 16, 40]))
        if portion:
            kind = random.choice(["lazy", "carries", "broken"])
            for last in range(portion):
                stream = shape.get("stream", 0.0)
                host.post(number, [some(random, stream=stream)])
                if kind != "lazy" or last == portion - 1 or random.random() < 0.3:
                    host.ring_bell(number, kind == "carries", random.choice([4, 8, 16, 32]) if kind == "broken" else 0)
            left[number] -= portion
        await host.bench.cycle(random.choice([1, 3, 30, 100]))
        await host.bench.until(lambda: len(host.bell.items) < 40)


@cocotb.test()
async def all_rings_at_once_whatever_everybody_does(dut: Any) -> None:
    """Rings of 16 to 256 descriptors, wrapping at any place, at any speed of the host and of the data part."""
    for seed, (bits, boundary, max_read) in enumerate([(4, 64, 2), (5, 128, 0), (8, 64, 1), (6, 128, 5)]):
        host = DmaHost(dut, "four", 4, seed + 20)
        host.max_read = max_read
        host.boundary = boundary
        await host.bench.reset()
        host.read_stall, host.write_stall = host.random.choice([0.0, 0.6]), host.random.choice([0.0, 0.8])
        host.turn_stall, host.done_idle = host.random.choice([0.0, 0.6]), host.random.choice([0.0, 0.7])
        host.bell_idle = host.random.choice([0.0, 0.5])
        host.latency = host.random.choice([(2, 5), (5, 200)])
        await host.set_up(list(host.rings), bits)
        await traffic(host, 40, list(host.rings))
        await finish(host)
        for ring in host.rings.values():
            assert ring.history[-1].count == 40
            assert ring.messages
            assert ring.message_at[-1] == sum(one.notify for one in ring.descriptors)


@cocotb.test()
async def one_channel_each_way_works_too(dut: Any) -> None:
    """The engine has one channel in each direction. Rings that do not exist have no effect."""
    host = DmaHost(dut, "one", 1, 5)
    await host.bench.reset()
    await host.set_up([0, 4], 5)
    host.bell.items.append((64 * 2 + 32, 4, 7))
    host.bell.items.append((64 * 7, 64, 7 << 256))
    await traffic(host, 60, [0, 4])
    await finish(host)
    assert host.rings[0].history[-1].count == host.rings[4].history[-1].count == 60


@cocotb.test()
async def a_small_ring_goes_round_often(dut: Any) -> None:
    """40 laps of a ring of 16."""
    host = DmaHost(dut, "four", 4, 6)
    await host.bench.reset()
    await host.set_up([1], 4)
    # 16 descriptors together need one or two reads.
    for _ in range(40):
        for _ in range(16):
            host.post(1, [Descriptor(host.random.getrandbits(30) & ~63, 0, 64)])
        host.ring_bell(1)
        await host.bench.until(host.quiet)
    assert host.rings[1].history[-1].count == 640
    assert len(host.read_log) <= 80


@cocotb.test()
async def carried_descriptors_are_not_fetched(dut: Any) -> None:
    """If the ring has no other work, a turn comes within 8 cycles of the doorbell."""
    host = DmaHost(dut, "four", 4, 7)
    await host.bench.reset()
    await host.set_up([2, 6])
    for i in range(50):
        number = (2, 6)[i % 2]
        host.post(number, [some(host.random)])
        begun, turns = host.bench.cycles, len(host.turn_log)
        host.ring_bell(number, carries=True)
        await host.bench.until(lambda: len(host.turn_log) > turns)  # noqa: B023
        assert host.turn_log[turns][0] - begun <= 11
        await host.bench.until(host.quiet)
    assert not host.read_log
    # A carried descriptor behind descriptors that are not fetched yet is fetched like them.
    host.read_stall = 1.0
    host.post(2, [some(host.random)])
    host.ring_bell(2)
    host.post(2, [some(host.random)])
    host.ring_bell(2, carries=True)
    await host.bench.cycle(50)
    host.read_stall = 0.0
    await finish(host)
    assert host.read_log


@cocotb.test()
async def no_doorbell_waits_for_a_read(dut: Any) -> None:
    """The host does not accept reads, as while a tag is overdue. Doorbells of every kind are accepted nevertheless:
    behind an AXI bridge, the answer to an earlier read may be waiting behind them."""
    host = DmaHost(dut, "four", 4, 8)
    await host.bench.reset()
    await host.set_up([0, 2, 6])
    host.read_stall = 1.0
    for i in range(24):
        number = (0, 2, 6)[i % 3]
        host.post(number, [some(host.random)])
        host.ring_bell(number, carries=i % 4 != 0)
        await host.bench.until(lambda: not host.bell.items, 100)
    await host.bench.cycle(50)
    assert not host.read_log
    host.read_stall = 0.0
    await finish(host)


@cocotb.test()
async def packets_have_entries_and_do_not_hold_back_others(dut: Any) -> None:
    """A buffer's entry gives the bytes that a packet filled. A channel without packets does not block others."""
    host = DmaHost(dut, "four", 4, 8)
    await host.bench.reset()
    await host.set_up([0, 1, 4, 5], 5)
    host.random_packets = True
    host.packet_channel = None
    for number in (0, 1, 4, 5):
        for _ in range(20):
            host.post(number, [some(host.random, stream=1.0 if number in (1, 4) else 0.0)])
        host.ring_bell(number)
    await host.bench.until(lambda: all(host.done(host.rings[n]) == 20 for n in (0, 1, 5)))
    assert not host.rings[4].bytes_cut
    for _ in range(400):
        if host.quiet():
            break
        host.packet_channel = host.random.choice([None, 0, 0, 1])
        await host.bench.cycle(host.random.randint(1, 60))
        assert sum(one[3].stream for one in host.answers[1]) <= 1
    host.packet_channel = 0
    await finish(host)
    assert len(host.rings[4].entries) == 20
    assert host.rings[4].entries_seen == 20
