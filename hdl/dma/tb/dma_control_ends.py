# SPDX-License-Identifier: Apache-2.0
"""Errors and interruptions: errors, resets, bus mastering, masks, and a blocked host."""

from __future__ import annotations

from typing import Any

import cocotb
from dma_control_paths import finish, some, traffic
from dma_host import ABORTED, MALFORMED, MEMORY, PAGE, POISONED, TIMEOUT, UNSUPPORTED, Descriptor, DmaHost


@cocotb.test()
async def an_error_stops_its_ring_only(dut: Any) -> None:
    """Covers errors of a turn, of a fetch and of a descriptor: count and code name the descriptor.

    The vector is signalled, and all other rings continue. A reset then restarts the ring.
    """
    host = DmaHost(dut, "four", 4, 11)
    await host.bench.reset()
    numbers = list(host.rings)
    await host.set_up(numbers, 5, threshold=200)
    cases = {0: UNSUPPORTED, 1: POISONED, 2: TIMEOUT, 4: MEMORY, 5: ABORTED, 6: MALFORMED, 7: MALFORMED}
    for number in numbers:
        made = [some(host.random, notify=0.0) for _ in range(24)]
        index = host.random.randrange(24)
        if number in (0, 4):
            host.bad_turns[number, index] = cases[number]
        elif number == 6:
            made[index].bytes = 0
        elif number == 7:
            made[index].host, made[index].bytes, made[index].stream = 0x1F00, 300, True
            host.packet_channel = 3
        elif number in cases:
            host.bad_descriptors[number, index] = cases[number]
        host.post(number, made)
        host.ring_bell(number)
    for _ in range(4000):
        await host.bench.cycle()
        for number in (1, 2, 5, 6, 7):
            ring = host.rings[number]
            first = _fails_at(host, number)
            if ring.history[-1].count == first and not ring.history[-1].error:
                host.fail(number, first, cases[number])
        if all(host.rings[n].history[host.rings[n].told].error for n in cases):
            break
    await host.bench.until(host.quiet)
    await host.bench.cycle(50)
    host.check_done()
    for number, code in cases.items():
        assert host.rings[number].history[-1].error == code
        assert host.rings[number].messages == 1
        assert await host.bits("ring_state", "failed", number) == 1
    assert host.done(host.rings[3]) == 24
    assert not host.rings[3].messages
    for number in cases:
        await host.restart(number)
        await host.run(number)
    await traffic(host, 20, numbers)
    await finish(host)


def _fails_at(host: DmaHost, number: int) -> int:
    """The first descriptor that cannot be executed. A failed read loses all descriptors that it asked for."""
    ring = host.rings[number]
    if number == 6:
        return next(i for i, one in enumerate(ring.descriptors) if not one.bytes)
    if number == 7:
        return next(i for i, one in enumerate(ring.descriptors) if one.stream)
    index = next(i for n, i in host.bad_descriptors if n == number)
    return index & ~15


@cocotb.test()
async def an_error_of_any_completion_of_a_fetch_fails_it(dut: Any) -> None:
    """Poison comes with data, and good completions may follow it. No descriptor of the read is executed.

    The code is that of the first completion with an error. The same tags then serve good reads.
    """
    host = DmaHost(dut, "four", 4, 21)
    await host.bench.reset()
    await host.set_up([2, 5], 5)
    for index in range(16):
        ring = host.rings[5]
        host.post(5, [some(host.random, notify=0.0) for _ in range(24)])
        host.spoiled_descriptors[5, index] = POISONED
        if index % 3 == 0:
            host.spoiled_descriptors[5, 15] = host.spoiled_descriptors.get((5, 15), ABORTED)
        host.fail(5, 0, POISONED)
        host.ring_bell(5)
        await traffic(host, 4, [2])
        await host.bench.until(host.quiet)
        await host.bench.cycle(60)
        host.check_done()
        assert ring.history[ring.told].error == POISONED
        assert ring.cut == 0
        assert await host.bits("ring_state", "failed", 5) == 1
        await host.restart(5)
        await host.run(5)
        await traffic(host, 20, [2, 5])
        await finish(host)
        await host.restart(5)
        await host.run(5)


@cocotb.test()
async def a_fetch_that_brings_too_much_or_too_little_fails(dut: Any) -> None:
    """By a byte, by a descriptor, or by more than a read may have. Other descriptors in the store stay unchanged."""
    host = DmaHost(dut, "four", 4, 22)
    await host.bench.reset()
    await host.set_up([2, 5], 6)
    for wrong_by in (-1, 1, -31, -32, 32, -33, -64, 64, -96, 128, 512):
        ring = host.rings[5]
        host.post(5, [some(host.random, 400, notify=0.0) for _ in range(host.random.choice([16, 37, 7]))])
        before = len(ring.descriptors)
        host.ring_bell(5)
        await host.bench.until(host.quiet)
        host.post(5, [some(host.random, notify=0.0) for _ in range(10)])  # they begin in the middle of a group of 16
        host.wrong_by[5] = wrong_by
        host.fail(5, before, MALFORMED)
        host.ring_bell(5)
        await traffic(host, 4, [2])
        await host.bench.until(host.quiet)
        await host.bench.cycle(60)
        host.check_done()
        assert ring.history[ring.told].error == MALFORMED, wrong_by
        assert ring.cut == before
        del host.wrong_by[5]
        await host.restart(5)
        await host.run(5)
        await traffic(host, 10, [2, 5])
        await finish(host)
        await host.restart(5)
        await host.run(5)


@cocotb.test()
async def lengths_that_cannot_be_are_refused(dut: Any) -> None:
    """0, and 2^28 or more, are refused; 2^28 - 1 starts."""
    host = DmaHost(dut, "four", 4, 12)
    await host.bench.reset()
    await host.set_up([0, 1, 2, 3])
    for number, size in enumerate([0, 1 << 28, 0xFFFFFFFF]):
        host.post(number, [Descriptor(0, 0, 64), Descriptor(0, 0, size)])
        host.ring_bell(number)
    host.post(3, [Descriptor(1, 2, (1 << 28) - 1)])
    host.ring_bell(3)
    for number in range(3):
        await host.bench.until(lambda: host.rings[number].history[-1].count == 1)  # noqa: B023
        host.fail(number, 1, MALFORMED)
    await host.bench.until(lambda: all(host.rings[n].history[host.rings[n].told].error for n in range(3)))
    await host.bench.until(lambda: len([one for one in host.turn_log if one[1] == 3]) > 20)
    await host.run(3, 0)  # this ring is not waited for


@cocotb.test()
async def a_reset_ring_posts_nothing_of_its_old_life(dut: Any) -> None:
    """The reset comes at any moment, with work in flight and under back-pressure. Other rings are not affected."""
    host = DmaHost(dut, "four", 4, 13)
    await host.bench.reset()
    numbers = [0, 3, 4, 6]
    await host.set_up(numbers, 5)
    host.write_stall, host.turn_stall, host.read_stall = 0.7, 0.3, 0.5
    host.latency = (5, 100)
    for _ in range(25):
        victim = host.random.choice(numbers)
        for number in numbers:
            for _ in range(min(host.room(number), 12)):
                host.post(number, [some(host.random, 400)])
                if host.random.random() < 0.5:
                    host.ring_bell(number, host.random.random() < 0.5)
            host.ring_bell(number)
        await host.bench.cycle(host.random.randint(1, 250))
        host.bell.items = type(host.bell.items)(
            one for i, one in enumerate(host.bell.items) if one[0] >> 6 != victim or (i == 0 and host.bell._active)
        )
        await host.restart(victim)
        await host.run(victim)
    await finish(host, 40_000)


@cocotb.test()
async def a_stopped_ring_goes_on_where_it_was(dut: Any) -> None:
    """The ring is idle when all work in flight was reported; then it runs again."""
    host = DmaHost(dut, "four", 4, 14)
    await host.bench.reset()
    await host.set_up([1, 5], 6)
    for number in (1, 5):
        for _ in range(60):
            host.post(number, [some(host.random)])
        host.ring_bell(number)
    for _ in range(12):
        await host.bench.cycle(host.random.randint(1, 200))
        await host.run(1, 0)
        for _ in range(300):
            if await host.bits("ring_state", "idle", 1):
                break
        await host.bench.cycle(40)
        ring = host.rings[1]
        assert ring.history[ring.told].count == ring.history[-1].count
        cut = ring.bytes_cut
        await host.bench.cycle(100)
        assert ring.bytes_cut == cut
        await host.run(1)
    await finish(host)


@cocotb.test()
async def a_reset_of_the_function_in_flight(dut: Any) -> None:
    """With work in flight, all registers are reset, no post leaves, and the engine starts again."""
    host = DmaHost(dut, "four", 4, 15)
    for life in range(6):
        if life == 0:
            await host.bench.reset()
        numbers = list(host.rings)
        await host.set_up(numbers, 5)
        host.write_stall, host.turn_stall, host.read_stall = 0.5, 0.3, 0.5
        await traffic(host, 10, numbers)
        await host.bench.cycle(host.random.randint(1, 80))
        host.pins["flr_i"].set(1)
        host.set_function(bus_master=0, msix_enable=0)
        await host.bench.until(lambda: host.pins["flr_done_o"].get() == 1)
        host.bell.items.clear()
        for ring in host.rings.values():
            ring.dead = True
        await host.bench.cycle(20)
        host.pins["flr_i"].set(0)
        host.set_function()
        await host.bench.cycle(100)
        for number in numbers:
            assert await host.value("ring_control", number) == 0
            assert await host.value("ring_state", number) == 2
            assert await host.value("msix_control", number) == 1
        assert await host.value("msix_pending") == 0
        assert not host.answers[0]
        assert not host.answers[1]
        for number in numbers:
            host.rings[number] = type(host.rings[number])(number)
    await host.set_up(list(host.rings), 4)
    await traffic(host, 20, list(host.rings))
    await finish(host)


@cocotb.test()
async def without_bus_mastering_nothing_is_asked_or_posted(dut: Any) -> None:
    """An offered request still leaves; then none. Later everything continues without a loss."""
    host = DmaHost(dut, "four", 4, 16)
    await host.bench.reset()
    await host.set_up(list(host.rings), 6)
    for number in host.rings:
        for _ in range(50):
            host.post(number, [some(host.random)])
        host.ring_bell(number)
    for _ in range(8):
        await host.bench.cycle(host.random.randint(10, 150))
        host.set_function(bus_master=0)
        assert await host.bits("function_state", "bus_master") == 0
        await host.bench.cycle(20)
        before = len(host.read_log), len(host.turn_log), len(host.status_log)
        await host.bench.cycle(200)
        assert (len(host.read_log), len(host.turn_log), len(host.status_log)) == before
        host.set_function()
    await finish(host)


@cocotb.test()
async def a_masked_vector_waits_and_comes_when_the_mask_falls(dut: Any) -> None:
    """The vector's mask, the function's mask, or MSI-X being off. The pending bit shows it, and no message is lost."""
    host = DmaHost(dut, "four", 4, 17)
    await host.bench.reset()
    await host.set_up([0, 5])
    ring = host.rings[5]
    for how in ("vector", "function", "enable") * 4:
        host.write_stall = host.random.choice([0.0, 0.9])
        messages = ring.messages
        host.post(5, [Descriptor(0, 0, 64, notify=True)])
        host.ring_bell(5, carries=True)
        await host.bench.cycle(host.random.randint(0, 60))
        if how == "vector":
            await host.write("msix_control", 1, 5)
        else:
            host.set_function(msix_mask=how == "function", msix_enable=how != "enable")
        await host.bench.cycle(5)
        host.write_stall = 0.0
        await host.bench.until(host.quiet)
        await host.bench.cycle(60)
        pending = await host.value("msix_pending")
        assert pending >> 5 & 1 == (ring.messages == messages)
        assert pending & ~(1 << 5) == 0
        held = ring.messages
        await host.bench.cycle(100)
        assert ring.messages == held
        if how == "vector":
            await host.write("msix_control", 0, 5)
        host.set_function()
        await host.bench.cycle(60)
        assert ring.messages == messages + 1
        assert await host.value("msix_pending") == 0


@cocotb.test()
async def interrupts_come_by_threshold_and_timer(dut: Any) -> None:
    """After a count, or after a time since the first event; always after the status word."""
    host = DmaHost(dut, "four", 4, 18)
    await host.bench.reset()
    await host.set_up([0], 6, threshold=5, timer=100)
    await host.set_up([4], 6, threshold=0, timer=0)
    for number in (4, 0):
        for _ in range(13):
            host.post(number, [Descriptor(0, 0, 64, notify=True)])
            host.ring_bell(number)
            await host.bench.until(host.quiet)
    await host.bench.cycle(40)
    assert host.rings[0].message_at == [5, 10]
    assert host.rings[4].message_at == list(range(1, 14))
    begun = host.bench.cycles
    await host.bench.until(lambda: host.rings[0].messages == 3)
    assert 500 <= host.bench.cycles - begun <= 900
    assert host.rings[0].message_at[-1] == 13
    await host.bench.cycle(2000)
    assert host.rings[0].messages == 3


@cocotb.test()
async def a_host_that_takes_no_writes_loses_nothing(dut: Any) -> None:
    """The last state is posted after any wait. The same for a data part that accepts or answers no turns."""
    host = DmaHost(dut, "four", 4, 19)
    await host.bench.reset()
    await host.set_up(list(host.rings), 5)
    for what in ("write_stall", "read_stall", "turn_stall", "done_idle"):
        setattr(host, what, 1.0)
        for number in host.rings:
            for _ in range(30):
                host.post(number, [some(host.random)])
            host.ring_bell(number)
        statuses = sum(ring.statuses for ring in host.rings.values())
        await host.bench.cycle(3000)
        setattr(host, what, 0.0)
        await host.bench.until(host.quiet)
        if what == "write_stall":  # the offered ones, and then the last state
            assert sum(ring.statuses for ring in host.rings.values()) - statuses <= 20
    await finish(host)


@cocotb.test()
async def a_channel_whose_turns_are_not_answered_leaves_the_others_alone(dut: Any) -> None:
    """Exactly 128 of its turns are issued."""
    host = DmaHost(dut, "four", 4, 20)
    await host.bench.reset()
    await host.set_up([0, 1], 8)
    host.done_idle = 1.0
    host.post(0, [Descriptor(0, 0, 200 * PAGE)])
    host.ring_bell(0)
    await host.bench.cycle(800)
    assert len(host.turn_log) == 128
    host.post(1, [Descriptor(0, 0, 3 * PAGE)])
    host.ring_bell(1)
    await host.bench.cycle(100)
    assert len(host.turn_log) == 131
    host.done_idle = 0.0
    await finish(host)
