# SPDX-License-Identifier: Apache-2.0
"""Tests axi_lite_demux: reads and writes at every pace to three subordinates and to unmapped addresses, with responses
in order."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench, Sink, Source
from bundles import Axi, Wrapped, simulate_wrapped

BASES = (0x0, 0x8000, 0xC000)
SIZES = (0x4000, 0x4000, 0x1000)  # unmapped: 0x4000..0x7FFF, and all above the last region
DECERR = 3
REGIONS = ", ".join(f"64'h{base:x}, 64'h{size:x}" for base, size in reversed(list(zip(BASES, SIZES, strict=True))))
INSTANCES = {
    "three": Wrapped(
        "axi_lite_demux",
        [Axi("s_axil", 16, 32, 0), Axi("m_axil", 16, 32, 0, count=3)],
        {"Outputs": 3, "Regions": f"{{{REGIONS}}}"},
    )
}


def where(address: int) -> int:
    """Returns the output whose region holds the address, or -1."""
    found = [i for i, (base, size) in enumerate(zip(BASES, SIZES, strict=True)) if base <= address < base + size]
    return found[0] if found else -1


class Channels:
    """The five channels of a port: of a manager at s_axil, or of a subordinate at mI_axil."""

    def __init__(self, bench: Bench, scope: Any, prefix: str) -> None:
        manager = prefix.startswith("s")

        def channel(name: str, fields: tuple[str, ...], *, ours: bool) -> Any:
            pins = [bench.pin(scope, f"{prefix}_{name}{field}") for field in ("valid", "ready", *fields)]
            return (Source if ours else Sink)(bench, pins[0], pins[1], pins[2:])

        self.aw = channel("aw", ("addr",), ours=manager)
        self.w = channel("w", ("data", "strb"), ours=manager)
        self.b = channel("b", ("resp",), ours=not manager)
        self.ar = channel("ar", ("addr",), ours=manager)
        self.r = channel("r", ("data", "resp"), ours=not manager)

    def pace(self, idle: float) -> None:
        """Sets the pace of all five channels."""
        for channel in (self.aw, self.w, self.b, self.ar, self.r):
            if isinstance(channel, Source):
                channel.idle = idle
            else:
                channel.stall = idle


class Subordinate(Channels):
    """Answers a read with its address and its own number, and records the writes."""

    def __init__(self, bench: Bench, scope: Any, number: int) -> None:
        super().__init__(bench, scope, f"m{number}_axil")
        self.number = number
        self.written: list[tuple[int, int, int]] = []
        bench.agents.append(self)

    def drive(self) -> None:
        """Does nothing, because the channels drive the signals."""

    def sample(self) -> None:
        """Answers the received requests, and records the writes."""
        while self.aw.items and self.w.items:
            self.written.append((self.aw.items.pop(0), *self.w.items.pop(0)))
            self.b.items.append(self.number)
        while self.ar.items:
            address = self.ar.items.pop(0)
            self.r.items.append((address << 8 | self.number, self.number))

    def reset(self) -> None:
        """Clears the recorded writes."""
        self.written.clear()


@cocotb.test()
async def each_gets_its_own(dut: Any) -> None:
    bench = Bench(dut)
    scope = dut.three
    manager = Channels(bench, scope, "s_axil")
    subordinates = [Subordinate(bench, scope, i) for i in range(3)]
    draw = bench.random
    for ours, theirs in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.6), (0.4, 0.4)):
        await bench.reset()
        manager.pace(ours)
        for i, subordinate in enumerate(subordinates):
            subordinate.pace(theirs * (i + 1) / 3)
        writes = [(draw.randrange(0, 0x10000, 4), draw.getrandbits(32), draw.getrandbits(4)) for _ in range(150)]
        reads = [draw.randrange(0, 0x10000, 4) for _ in range(150)]
        manager.aw.items.extend(address for address, _, _ in writes)
        manager.w.items.extend((data, strobes) for _, data, strobes in writes)
        manager.ar.items.extend(reads)
        await bench.until(lambda: len(manager.b.items) == 150 == len(manager.r.items))
        assert manager.b.items == [where(a) if where(a) >= 0 else DECERR for a, _, _ in writes]
        assert manager.r.items == [(a << 8 | where(a), where(a)) if where(a) >= 0 else (0, DECERR) for a in reads]
        for i, subordinate in enumerate(subordinates):
            assert subordinate.written == [item for item in writes if where(item[0]) == i]


def test_axi_lite_demux() -> None:
    simulate_wrapped(__file__, INSTANCES)
