# SPDX-License-Identifier: Apache-2.0
"""dma_bram: a second manager reads what descriptors wrote to the card, and the reverse, while both work."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import Burst
from bench import Bench
from dma_engine_rig import DATA, Lane, start, top_of
from dma_rig import LINE, held
from hdl_tools import ROOT, files
from simulate import simulate

INSTANCES = {"little": {"Channels": 2, "Words": 512, "Stream": 0}}
LINES = 64  # of a burst


def ask(one: Lane, address: int) -> None:
    """Requests a burst of the second manager."""
    one.other.ask(Burst(1, address, LINES, 6))


async def whole(one: Lane, address: int, size: int) -> bytes:
    """Reads bytes as the second manager."""
    one.other.r.items.clear()
    for at in range(address, address + size, LINES * LINE):
        ask(one, at)
    await one.bench.until(lambda: one.other.reads_done() == size // (LINES * LINE), 5_000)
    bursts = one.other.read()[1]
    assert all(response == 0 for burst in bursts for _, response in burst)
    return b"".join(data.to_bytes(LINE, "little") for burst in bursts for data, _ in burst)


@cocotb.test()
async def two_masters_see_one_memory(dut: Any) -> None:
    """Moves 16 KiB each way, in descriptors of odd sizes at odd addresses, beside the second manager's bursts."""
    bench = Bench(dut, 1)
    one = Lane(bench, "little", 2, bram=True)
    await start(bench, [one])
    size, half = 16384, 16384
    at = 0
    ring = 0
    while at < size:
        part = min(bench.random.randint(1, 3000), size - at)
        one.post(ring, DATA + at, at, part)
        ask(one, half + bench.random.randrange(2) * 4096)  # meanwhile, elsewhere
        at, ring = at + part, 1 - ring
        await bench.until(lambda: one.done() or bench.random.random() < 0.01, 10_000)
    await bench.until(one.done, 20_000)
    await bench.until(lambda: not one.other.ar.items, 5_000)
    await bench.cycle(300)
    assert await whole(one, 0, size) == bytes(held(1)(DATA + i) for i in range(size))

    written = bench.random.randbytes(size)
    for at in range(0, size, LINES * LINE):
        lines = [written[i : i + LINE] for i in range(at, at + LINES * LINE, LINE)]
        data = [(int.from_bytes(line, "little"), (1 << LINE) - 1) for line in lines]
        one.other.write(Burst(2, half + at, LINES, 6, data=data))
    await bench.until(lambda: len(one.other.responses) == size // (LINES * LINE), 10_000)
    at = 0
    while at < size:
        part = min(bench.random.randint(1, 3000), size - at)
        one.post(4 + at % 2, DATA + 0x10_0000 + at, half + at, part)
        ask(one, 0)
        at += part
        await bench.until(lambda: one.done() or bench.random.random() < 0.01, 10_000)
    await bench.until(one.done, 20_000)
    assert bytes(one.host.written[DATA + 0x10_0000 + i] for i in range(size)) == written
    assert len(one.host.written) == size


def test_dma_bram() -> None:
    simulate(__file__, text=top_of("dma_bram", INSTANCES), sources=tuple(ROOT / path for path in files("*_pkg.sv")))
