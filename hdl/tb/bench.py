# SPDX-License-Identifier: Apache-2.0
"""A cocotb bench that steps one clock: drive, settle, sample, rising edge.

All drivers and monitors are plain Python, called once per cycle. So a test of many instances needs two awaits per
cycle. It behaves alike in every simulator, because the sampled values are those that the flip-flops see.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol

from cocotb.handle import LogicArrayObject, LogicObject, PackedObject
from cocotb.triggers import Timer

Item = int | tuple[int, ...]


class Agent(Protocol):
    """The methods that the bench calls in each cycle."""

    def drive(self) -> None:
        """Sets inputs."""

    def sample(self) -> None:
        """Reads outputs, just before the rising edge."""

    def reset(self) -> None:
        """Forgets transfers in flight."""


DEPOSIT = 0
"""GPI's code for an ordinary write."""
# The runner sets this for Verilator. cocotb then also writes immediately.
WRITES_AT_ONCE = os.environ.get("COCOTB_TRUST_INERTIAL_WRITES") == "1"


class Net:
    """A signal of the simulation. It is written at most once per cycle, and its value is cached.

    Bits pass between it and the simulator without conversion. cocotb's LogicArray makes four objects for each value,
    which took half of a test's time.
    """

    def __init__(self, bench: Bench, handle: Any) -> None:
        self.bench = bench
        self.handle = handle
        self.width = len(handle)
        self.driven = int(handle.value)  # the value that the previous test left
        self.seen = -1
        self.value = 0
        self._simulator = handle._handle if isinstance(handle, LogicObject | LogicArrayObject | PackedObject) else None

    def get(self) -> int:
        """Returns its value after settling."""
        if self.seen != self.bench.phase:
            simulator = self._simulator
            # In both cases a bit that is neither 0 nor 1 raises ValueError.
            self.value = int(self.handle.value) if simulator is None else int(simulator.get_signal_val_binstr(), 2)
            self.seen = self.bench.phase
        return self.value

    def set(self, low: int, width: int, value: int) -> None:
        """Drives some of its bits from now on."""
        mask = ((1 << width) - 1) << low
        driven = (self.driven & ~mask) | ((value << low) & mask)
        if driven != self.driven:
            self.driven = driven
            self.bench.dirty[self] = None

    def write(self, value: int) -> None:
        """Drives all its bits at once."""
        self.driven = value
        self.flush()

    def flush(self) -> None:
        """Writes the driven value to the simulator."""
        simulator = self._simulator
        if simulator is None or not WRITES_AT_ONCE:
            self.handle.value = self.driven
        elif self.width <= 32:
            simulator.set_signal_val_int(DEPOSIT, self.driven)
        else:
            simulator.set_signal_val_binstr(DEPOSIT, f"{self.driven:0{self.width}b}")


class Pin:
    """Some bits of a net."""

    def __init__(self, net: Net, low: int = 0, width: int | None = None) -> None:
        self.net = net
        self.low = low
        self.width = net.width if width is None else width
        self._mask = (1 << self.width) - 1

    def get(self) -> int:
        """Returns the value of these bits after settling."""
        net = self.net
        value = net.value if net.seen == net.bench.phase else net.get()
        return (value >> self.low) & self._mask

    def set(self, value: int) -> None:
        """Drives these bits from now on."""
        if (self.net.driven >> self.low) & self._mask != value:
            self.net.set(self.low, self.width, value)


class Bench:
    """The clock, the reset, and all agents."""

    def __init__(self, dut: Any, seed: int = 1, *, reset: str = "rst_i") -> None:
        self.dut = dut
        self.random = random.Random(seed)
        self.phase = 0
        self.cycles = 0
        self.dirty: dict[Net, None] = {}
        self.agents: list[Agent] = []
        self._nets: dict[str, Net] = {}
        self._reset = self.pin(dut, reset)
        self._half = Timer(1, "ns")  # of a cycle

    @cached_property
    def _clock(self) -> Net:
        return Net(self, self.dut.clk_i)

    def pin(self, scope: Any, name: str, index: int | None = None, width: int = 1) -> Pin:
        """Returns the signal `name` of an instance, or its element `index` of `width` bits."""
        handle = getattr(scope, name)
        net = self._nets.setdefault(handle._path, Net(self, handle))
        return Pin(net) if index is None else Pin(net, index * width, width)

    def source(self, scope: Any, prefix: str = "s", fields: Iterable[str] = ("payload",), **options: Any) -> Source:
        """Returns a sender at prefix_valid, prefix_ready and prefix_FIELD. See Source for the options."""
        pins = [self.pin(scope, f"{prefix}_{field}") for field in fields]
        return Source(self, self.pin(scope, f"{prefix}_valid"), self.pin(scope, f"{prefix}_ready"), pins, **options)

    def sink(self, scope: Any, prefix: str = "m", fields: Iterable[str] = ("payload",), **options: Any) -> Sink:
        """Returns a receiver at the ports of the same names."""
        pins = [self.pin(scope, f"{prefix}_{field}") for field in fields]
        return Sink(self, self.pin(scope, f"{prefix}_valid"), self.pin(scope, f"{prefix}_ready"), pins, **options)

    async def settle(self) -> None:
        """Writes the driven values and lets them propagate through the logic, without a clock edge."""
        for net in self.dirty:
            net.flush()
        self.dirty.clear()
        await self._half
        self.phase += 1

    async def cycle(self, count: int = 1) -> None:
        """Runs `count` cycles."""
        for _ in range(count):
            for agent in self.agents:
                agent.drive()
            self._clock.write(0)
            await self.settle()
            for agent in self.agents:
                agent.sample()
            self.cycles += 1
            self._clock.write(1)
            await self._half
            self.phase += 1

    async def reset(self, cycles: int = 2) -> None:
        """Resets the design. All agents forget transfers in flight."""
        for agent in self.agents:
            agent.reset()
        self._reset.set(1)
        agents, self.agents = self.agents, []
        await self.cycle(cycles)
        self.agents = agents
        self._reset.set(0)

    async def until(self, done: Callable[[], bool], limit: int = 20_000) -> None:
        """Runs cycles until done() is true, and fails after `limit`."""
        for _ in range(limit):
            if done():
                return
            await self.cycle()
        raise AssertionError(f"not done after {limit} cycles")


class Source:
    """Sends items. It pauses in a share `idle` of the cycles, in which the fields have random values."""

    def __init__(self, bench: Bench, valid: Pin, ready: Pin, fields: list[Pin], idle: float = 0.0) -> None:
        self.bench, self.valid, self.ready, self.fields = bench, valid, ready, fields
        self.idle = idle
        self.items: deque[Item] = deque()
        self.sent: list[Item] = []
        self.cycles_of: list[int] = []
        self._active = False
        bench.agents.append(self)

    def drive(self) -> None:
        """Starts the next item, or keeps offering the current one."""
        if self._active:
            return
        self._active = bool(self.items) and self.bench.random.random() >= self.idle
        self.valid.set(self._active)
        item = self.items[0] if self._active else None
        values = (item,) if isinstance(item, int) else item
        for i, pin in enumerate(self.fields):
            pin.set(values[i] if values else self.bench.random.getrandbits(pin.width))

    def sample(self) -> None:
        """Records the accepted beats."""
        if self._active and self.ready.get():
            self.sent.append(self.items.popleft())
            self.cycles_of.append(self.bench.cycles)
            self._active = False

    def reset(self) -> None:
        """Forgets its items."""
        self.items.clear()
        self._active = False
        self.valid.set(0)

    def random_items(self, count: int) -> list[int]:
        """Queues `count` random items of the first field, and returns them."""
        items = [self.bench.random.getrandbits(self.fields[0].width) for _ in range(count)]
        self.items.extend(items)
        return items


class Sink:
    """Receives items. It is busy in a share `stall` of the cycles."""

    def __init__(self, bench: Bench, valid: Pin, ready: Pin, fields: list[Pin], stall: float = 0.0) -> None:
        self.bench, self.valid, self.ready, self.fields = bench, valid, ready, fields
        self.stall = stall
        self.items: list[Item] = []
        self.cycles_of: list[int] = []
        self._ready = False
        bench.agents.append(self)

    def drive(self) -> None:
        """Decides whether to be ready."""
        self._ready = self.stall < 1.0 and self.bench.random.random() >= self.stall
        self.ready.set(self._ready)

    def sample(self) -> None:
        """Records the received item."""
        if self._ready and self.valid.get():
            values = tuple(pin.get() for pin in self.fields)
            self.items.append(values[0] if len(values) == 1 else values)
            self.cycles_of.append(self.bench.cycles)

    def reset(self) -> None:
        """Forgets the received items."""
        self.items.clear()
        self.cycles_of.clear()
