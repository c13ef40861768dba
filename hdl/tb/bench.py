# SPDX-License-Identifier: Apache-2.0
"""A bench for cocotb that walks one clock in steps: drive, settle, sample, rising edge.

Every driver and monitor is plain Python, called once a cycle. So a test of many instances costs two awaits in each
cycle and behaves alike in every simulator: the sampled values are those that the flip-flops see.
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
"""GPI's number for an ordinary write."""
# The runner requests this for Verilator. cocotb then also writes at once.
WRITES_AT_ONCE = os.environ.get("COCOTB_TRUST_INERTIAL_WRITES") == "1"


class Net:
    """A signal of the simulation: written at most once a cycle, and read so.

    Bits go between it and the simulator as they are. The way through cocotb's LogicArray, by four objects a value, was
    half of a test's time.
    """

    def __init__(self, bench: Bench, handle: Any) -> None:
        self.bench = bench
        self.handle = handle
        self.width = len(handle)
        self.driven = int(handle.value)  # as the test before left it
        self.seen = -1
        self.value = 0
        self._simulator = handle._handle if isinstance(handle, LogicObject | LogicArrayObject | PackedObject) else None

    def get(self) -> int:
        """Its value, settled."""
        if self.seen != self.bench.phase:
            simulator = self._simulator
            # A bit that is neither 0 nor 1 is a ValueError, either way.
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
        """Drives all of it, at once."""
        self.driven = value
        self.flush()

    def flush(self) -> None:
        """Writes what is driven."""
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
        """Their value, settled."""
        net = self.net
        value = net.value if net.seen == net.bench.phase else net.get()
        return (value >> self.low) & self._mask

    def set(self, value: int) -> None:
        """Drives them from now on."""
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
        """The signal `name` of an instance, or its element `index` of so many bits."""
        handle = getattr(scope, name)
        net = self._nets.setdefault(handle._path, Net(self, handle))
        return Pin(net) if index is None else Pin(net, index * width, width)

    def source(self, scope: Any, prefix: str = "s", fields: Iterable[str] = ("payload",), **options: Any) -> Source:
        """A sender at prefix_valid, prefix_ready and prefix_FIELD; see Source for the options."""
        pins = [self.pin(scope, f"{prefix}_{field}") for field in fields]
        return Source(self, self.pin(scope, f"{prefix}_valid"), self.pin(scope, f"{prefix}_ready"), pins, **options)

    def sink(self, scope: Any, prefix: str = "m", fields: Iterable[str] = ("payload",), **options: Any) -> Sink:
        """A receiver, likewise."""
        pins = [self.pin(scope, f"{prefix}_{field}") for field in fields]
        return Sink(self, self.pin(scope, f"{prefix}_valid"), self.pin(scope, f"{prefix}_ready"), pins, **options)

    async def settle(self) -> None:
        """Writes the driven values and lets them go through the logic, without an edge."""
        for net in self.dirty:
            net.flush()
        self.dirty.clear()
        await self._half
        self.phase += 1

    async def cycle(self, count: int = 1) -> None:
        """One cycle, or some."""
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
        """Resets the design. All participants forget transfers in flight."""
        for agent in self.agents:
            agent.reset()
        self._reset.set(1)
        agents, self.agents = self.agents, []
        await self.cycle(cycles)
        self.agents = agents
        self._reset.set(0)

    async def until(self, done: Callable[[], bool], limit: int = 20_000) -> None:
        """Cycles until done; fails after `limit`."""
        for _ in range(limit):
            if done():
                return
            await self.cycle()
        raise AssertionError(f"not done after {limit} cycles")


class Source:
    """Sends items, pausing in `idle` of the cycles; the fields of an idle cycle are garbage."""

    def __init__(self, bench: Bench, valid: Pin, ready: Pin, fields: list[Pin], idle: float = 0.0) -> None:
        self.bench, self.valid, self.ready, self.fields = bench, valid, ready, fields
        self.idle = idle
        self.items: deque[Item] = deque()
        self.sent: list[Item] = []
        self.cycles_of: list[int] = []
        self._active = False
        bench.agents.append(self)

    def drive(self) -> None:
        """Begins with the next item, or goes on with the one that waits."""
        if self._active:
            return
        self._active = bool(self.items) and self.bench.random.random() >= self.idle
        self.valid.set(self._active)
        item = self.items[0] if self._active else None
        values = (item,) if isinstance(item, int) else item
        for i, pin in enumerate(self.fields):
            pin.set(values[i] if values else self.bench.random.getrandbits(pin.width))

    def sample(self) -> None:
        """Records the taken beats."""
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
        """Queues so many random items of the first field, and returns them."""
        items = [self.bench.random.getrandbits(self.fields[0].width) for _ in range(count)]
        self.items.extend(items)
        return items


class Sink:
    """Takes items, being busy in `stall` of the cycles."""

    def __init__(self, bench: Bench, valid: Pin, ready: Pin, fields: list[Pin], stall: float = 0.0) -> None:
        self.bench, self.valid, self.ready, self.fields = bench, valid, ready, fields
        self.stall = stall
        self.items: list[Item] = []
        self.cycles_of: list[int] = []
        self._ready = False
        bench.agents.append(self)

    def drive(self) -> None:
        """Decides whether to take something."""
        self._ready = self.stall < 1.0 and self.bench.random.random() >= self.stall
        self.ready.set(self._ready)

    def sample(self) -> None:
        """Takes it."""
        if self._ready and self.valid.get():
            values = tuple(pin.get() for pin in self.fields)
            self.items.append(values[0] if len(values) == 1 else values)
            self.cycles_of.append(self.bench.cycles)

    def reset(self) -> None:
        """Forgets what it took."""
        self.items.clear()
        self.cycles_of.clear()
