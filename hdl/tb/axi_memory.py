# SPDX-License-Identifier: Apache-2.0
"""A port of HBM with a random latency."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from bench import Bench, Pin, Sink, Source


class Bytes:
    """The content of a memory, in units of 32 bytes. Several ports may share it."""

    def __init__(self, initial: Callable[[int], int] = lambda address: 0) -> None:
        self.initial = initial
        self.written: dict[int, int] = {}

    def read(self, address: int) -> int:
        """Returns 32 bytes."""
        value = self.written.get(address)
        return self.initial(address) if value is None else value

    def write(self, address: int, data: int, strobes: int) -> None:
        """Writes the bytes whose strobes are set, out of 32."""
        mask = int.from_bytes(bytes(255 * (strobes >> i & 1) for i in range(32)), "little")
        self.written[address] = (self.read(address) & ~mask) | (data & mask)

    def word(self, address: int) -> int:
        """Returns 64 bytes."""
        return self.read(address) | self.read(address + 32) << 256


def memory_ports(channels: int) -> str:
    """Returns the pins of memory's ports, for a module with a manager's bundles m_axi_req and m_axi_resp."""
    lines = [f"  memory_req_t [{channels - 1}:0] m_axi_req;", f"  memory_resp_t [{channels - 1}:0] m_axi_resp;"]
    widths = {"araddr": 34, "arlen": 4, "awaddr": 34, "awlen": 4, "rdata": 256, "rresp": 2, "bresp": 2}
    widths |= {"wdata": 256, "wstrb": 32, "wlast": 1}
    widths |= {f"{channel}{signal}": 1 for channel in ("ar", "aw", "w", "r", "b") for signal in ("valid", "ready")}
    lines += [f"  logic [{channels - 1}:0][{width - 1}:0] m_axi_{name};" for name, width in widths.items()]
    lines += [f"  `AXI3_TO_FLAT(m_axi, {c}, m_axi_req[{c}], m_axi_resp[{c}])" for c in range(channels)]
    return "\n".join(lines) + "\n"


class Memory:
    """An AXI3 subordinate that checks the manager against A3.4 (bursts) and A5.3 (order), and guarantees nothing beyond
    them.

    A read returns the content at its request or at its answer. A write takes effect when its data come or when it is
    confirmed. So a manager that reads and writes one address at the same time may get either content.
    """

    def __init__(self, bench: Bench, scope: Any, content: Bytes | None = None, index: int | None = None) -> None:
        def pin(name: str, width: int = 1) -> Pin:
            return bench.pin(scope, f"m_axi_{name}", index, width)

        self.bench, self.delay, self.errors = bench, (5, 30), 0.0
        self.content = content or Bytes()
        self.shared = content is not None
        self.ar = Sink(bench, pin("arvalid"), pin("arready"), [pin("araddr", 34), pin("arlen", 4)])
        self.aw = Sink(bench, pin("awvalid"), pin("awready"), [pin("awaddr", 34), pin("awlen", 4)])
        self.w = Sink(bench, pin("wvalid"), pin("wready"), [pin("wdata", 256), pin("wstrb", 32), pin("wlast")])
        self.r = Source(bench, pin("rvalid"), pin("rready"), [pin("rdata", 256), pin("rresp", 2)])
        self.b = Source(bench, pin("bvalid"), pin("bready"), [pin("bresp", 2)])
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        """Forgets transactions in flight, and also its content unless it is shared."""
        if not self.shared:
            self.content.written.clear()
        self.reads: deque[tuple[int, int, list[int] | None, int]] = deque()
        self.writes: deque[tuple[int, list[tuple[int, int, int]]]] = deque()
        self.late = self.bench.random.random() < 0.5
        self.read_bursts: list[tuple[int, int]] = []
        self.write_bursts: list[tuple[int, int]] = []

    def drive(self) -> None:
        """Does nothing, because its agents drive the signals."""

    def sample(self) -> None:
        """Accepts commands, and sends the answers that are due."""
        now, draw = self.bench.cycles, self.bench.random
        for address, length in self.ar.items:
            self.check(address, length)
            self.read_bursts.append((address, length))
            data = None if draw.random() < 0.5 else self.data(address, length)
            self.reads.append((self.due(self.reads), address, data, length))
        self.ar.items.clear()
        while self.aw.items and len(self.w.items) > self.aw.items[0][1]:
            address, length = self.aw.items.pop(0)
            self.check(address, length, 64 if length else 32)
            self.write_bursts.append((address, length))
            beats = []
            for i in range(length + 1):
                data, strobes, last = self.w.items.pop(0)
                assert last == (i == length)
                beats.append((address + 32 * i, data, strobes))
            if not self.late:
                self.store(beats)
            self.writes.append((self.due(self.writes), beats))
        while self.reads and self.reads[0][0] <= now:
            _, address, data, length = self.reads.popleft()
            self.r.items += [(beat, 0) for beat in data or self.data(address, length)]
        while self.writes and self.writes[0][0] <= now:
            _, beats = self.writes.popleft()
            if self.late:
                self.store(beats)
            self.b.items.append(2 if draw.random() < self.errors else 0)

    def store(self, beats: list[tuple[int, int, int]]) -> None:
        """Stores the beats of a write."""
        for beat in beats:
            self.content.write(*beat)

    def data(self, address: int, length: int) -> list[int]:
        """Returns the present content."""
        return [self.content.read(address + 32 * i) for i in range(length + 1)]

    def due(self, queue: deque[Any]) -> int:
        """Returns the cycle in which to answer a request of this cycle, not before the requests in the queue."""
        at = self.bench.cycles + self.bench.random.randint(*self.delay)
        return max(at, queue[-1][0]) if queue else at

    def check(self, address: int, length: int, aligned: int = 64) -> None:
        """Checks a burst against the rules."""
        assert length < 16
        assert address % aligned == 0
        assert address // 4096 == (address + 32 * length) // 4096
