# SPDX-License-Identifier: Apache-2.0
"""Speed of descriptors in cycles: rate, latency, and shares."""

from __future__ import annotations

from typing import Any

import cocotb
from dma_host import PAGE, Descriptor, DmaHost


@cocotb.test()
async def small_transfers_go_at_a_turn_in_two_cycles(dut: Any) -> None:
    """64 bytes each, one channel, reads of 225 cycles (900 ns): 0.4 descriptors a cycle, 100 M/s at 250 MHz."""
    for number in (0, 4):
        host = DmaHost(dut, "four", 4, 31)
        host.latency = host.answer_after = (225, 230)
        await host.bench.reset()
        await host.set_up([number], 10)
        for _ in range(900):
            host.post(number, [Descriptor(host.random.getrandbits(30) & ~63, 0, 64)])
        host.ring_bell(number)
        await host.bench.until(host.quiet)
        cycles = [one[0] for one in host.turn_log]
        rate = 600 / (cycles[850] - cycles[250])
        cocotb.log.warning("ring %d: %.3f turns a cycle, %d status words", number, rate, host.rings[number].statuses)
        assert rate >= 0.4


@cocotb.test()
async def channels_share_by_bytes(dut: Any) -> None:
    """With descriptors of very different sizes, and a data part of 64 bytes a cycle, shares differ by at most 2 %."""
    for first in (0, 4):
        host = DmaHost(dut, "four", 4, 32)
        await host.bench.reset()
        numbers = range(first, first + 4)
        await host.set_up(list(numbers), 10)
        sizes = (512, PAGE, 3000, 20 * PAGE + 77)
        for number, size in zip(numbers, sizes, strict=True):
            for _ in range(min(1000, 2_000_000 // size)):
                host.post(number, [Descriptor(host.random.getrandbits(30), 0, size)])
            host.ring_bell(number)
        host.turn_stall = 0.0
        debt = 0
        done = [0, 0, 0, 0]
        seen = 0
        for cycle in range(16_000):
            await host.bench.cycle()
            for _, number, size in host.turn_log[seen:]:
                debt += size
                if cycle > 2000:
                    done[number - first] += size
            seen = len(host.turn_log)
            debt = max(0, debt - 64)
            host.data_stalled = debt > 4 * PAGE
        mean = sum(done) / 4
        unfair = max(abs(one - mean) for one in done) / mean
        cocotb.log.warning("direction %d: %s bytes, unfair by %.2f %%", first // 4, done, 100 * unfair)
        assert mean > 190_000
        assert unfair <= 0.02
        assert max(done) - min(done) <= 2 * PAGE  # and the difference does not grow with time


@cocotb.test()
async def one_alone_is_quick(dut: Any) -> None:
    """Depth 1: doorbell to read, descriptor to turn, answer to status word, in cycles of 4 ns."""
    host = DmaHost(dut, "four", 4, 33)
    host.latency = host.answer_after = (1, 1)
    await host.bench.reset()
    await host.set_up([1])
    worst = [0, 0]
    for _ in range(30):
        host.post(1, [Descriptor(0, 0, 64)])
        reads, turns, words = len(host.read_log), len(host.turn_log), len(host.status_log)
        begun = host.bench.cycles
        host.ring_bell(1)
        await host.bench.until(host.quiet)
        worst[0] = max(worst[0], host.read_log[reads][0] - begun)
        worst[1] = max(worst[1], host.status_log[words][0] - host.turn_log[turns][0])
        await host.bench.cycle(host.random.randint(1, 20))
    cocotb.log.warning("doorbell to read %d cycles, turn to status word %d", *worst)
    assert worst[0] <= 10
    assert worst[1] <= 16
