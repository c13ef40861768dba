# SPDX-License-Identifier: Apache-2.0
"""Two clocks of any ratio and phase, each with its own bench. Agents of one clock see only its edges."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from bench import Bench
from cocotb.triggers import Timer

# Periods of s_clk_i and m_clk_i, and the delay from the first edge of s_clk_i to that of m_clk_i.
CLOCKS = [(8, 8, 0), (8, 8, 3), (8, 9, 1), (9, 8, 2), (4, 12, 0), (12, 4, 1), (3, 20, 1), (20, 3, 2)]


class Side(Bench):
    """One clock with its reset and its agents. `Crossing` makes the edges."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, seed, reset=f"{name}_rst_i")
        self.clock = getattr(dut, f"{name}_clk_i")
        self.cycle = self.reset = None  # type: ignore[assignment] # by Crossing only

    def drive(self) -> None:
        """Sets inputs before an edge."""
        for agent in self.agents:
            agent.drive()

    def sample(self) -> None:
        """Reads outputs, just before the edge."""
        for agent in self.agents:
            agent.sample()
        self.cycles += 1

    def hold(self, on: bool) -> None:
        """Applies its reset from the next edge on. Meanwhile its agents do nothing, and forget work in progress."""
        if on:
            for agent in self.agents:
                agent.reset()
            self.held, self.agents = self.agents, []
        else:
            self.agents = self.held
        self._reset.set(int(on))


class Crossing:
    """Both sides of a clock crossing. `jitter` is the most by which each period varies at random."""

    def __init__(self, dut: Any, clocks: tuple[int, int, int], *, seed: int = 1, jitter: int = 0) -> None:
        self.random = random.Random(seed)
        self.s, self.m = Side(dut, "s", seed), Side(dut, "m", seed + 1)
        self.sides = (self.s, self.m)
        self.periods = clocks[:2]
        self.next = [0, clocks[2]]
        self.jitter = jitter
        for side in self.sides:
            side._reset.set(0)

    async def edge(self) -> None:
        """Runs to the next edge of either clock, or of both."""
        now = min(self.next)
        rising = [i for i in range(2) if self.next[i] == now]
        for i in rising:
            self.next[i] = now + max(1, self.periods[i] + self.random.randint(-self.jitter, self.jitter))
            self.sides[i].drive()
            self.sides[i].clock.value = 0
        for side in self.sides:
            for net in side.dirty:
                net.flush()
            side.dirty.clear()
        await Timer(1, "ns")
        for side in self.sides:
            side.phase += 1
        for i in rising:
            self.sides[i].sample()
            self.sides[i].clock.value = 1
        await Timer(1, "ns")
        for side in self.sides:
            side.phase += 1

    async def cycle(self, side: Side, count: int = 1) -> None:
        """Runs `count` cycles of one side."""
        end = side.cycles + count
        while side.cycles < end:
            await self.edge()

    async def until(self, done: Callable[[], bool], limit: int = 20_000) -> None:
        """Runs edges until done() is true."""
        for _ in range(limit):
            if done():
                return
            await self.edge()
        raise AssertionError(f"not done after {limit} edges")

    async def reset(self, *sides: Side, cycles: int = 2) -> None:
        """Resets some sides together, each for `cycles` of its own cycles."""
        for side in sides:
            side.hold(True)
        ends = [side.cycles + cycles for side in sides]
        await self.until(lambda: all(side.cycles >= end for side, end in zip(sides, ends, strict=True)))
        for side in sides:
            side.hold(False)
