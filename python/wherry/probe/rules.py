# SPDX-License-Identifier: Apache-2.0
"""The rules by which settings follow from what was measured (docs/profile.md has the table).

Each is a function of the figures, and gives a setting's value and the figures that it comes from; or nothing, where the
figures do not say. The reasons of each are research that docs/profile.md sums up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Machine:
    """What rules know of it beside the figures."""

    l2_bytes: int
    last_level_bytes: int = 0
    """Of the largest cache; 0: unknown."""
    cores: int = 0
    """0: unknown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What a row of a run says. Times are of one transfer, ns."""

    bytes: int
    p50_ns: float
    cache: str = "warm"
    depth: int = 1
    other_cpu_ns: float = 0
    """User and system, of the process on the other side."""


@dataclass(frozen=True, slots=True)
class Line:
    """Time against size: t0 and a rate, least squares of the relative error, with the worst of these errors."""

    t0_ns: float
    bytes_per_ns: float
    error: float


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting and why."""

    key: str
    value: int | float
    rule: str
    why: str


Figures = Mapping[str, Sequence[Figure]]
"""By path, as `wherry probe list` names them."""


def line(figures: Iterable[Figure]) -> Line | None:
    """t = t0 + bytes / rate, with weights 1 / t^2, and neither negative. None: fewer than three sizes."""
    points = sorted({(one.bytes, one.p50_ns) for one in figures if one.bytes > 0 and one.p50_ns > 0})
    if len({size for size, _ in points}) < 3:
        return None
    # Of (t0 + b s - t) / t the squares' sum is least: two normal equations.
    uu = sum(1 / (t * t) for _, t in points)
    us = sum(s / (t * t) for s, t in points)
    ss = sum(s * s / (t * t) for s, t in points)
    u1, s1 = sum(1 / t for _, t in points), sum(s / t for s, t in points)
    determinant = uu * ss - us * us
    t0, slope = (u1 * ss - s1 * us) / determinant, (s1 * uu - u1 * us) / determinant
    if t0 < 0:
        t0, slope = 0.0, s1 / ss
    if slope <= 0:
        return None
    error = max(abs(t0 + slope * s - t) / t for s, t in points)
    return Line(t0, 1 / slope, error)


def _first(figures: Figures, *paths: str) -> tuple[str, Line] | None:
    for path in paths:
        if (found := line(figures.get(path, ()))) is not None:
            return path, found
    return None


def _power_of_two(value: float, least: int, most: int) -> int:
    """The smallest that is not below `value`, within limits that are powers of two."""
    return min(most, max(least, 1 << max(0, math.ceil(math.log2(max(value, 1))))))


def transfer_unit(figures: Figures, _machine: Machine) -> list[Setting]:
    """move.transfer_unit: the smallest unit whose transfer has 98 % of the path's rate, so t0 is 2 % of it."""
    if (found := _first(figures, "ucx.get.shm", "ipc.cma.get")) is None:
        return []
    path, fit = found
    least = 49 * fit.t0_ns * fit.bytes_per_ns
    unit = _power_of_two(least, 64 * KIB, 64 * MIB)
    why = f"{path}: {fit.t0_ns:.0f} ns and {fit.bytes_per_ns:.1f} GB/s, so 98 % from {least:.0f} B on"
    return [
        Setting("move.transfer_unit", unit, "plateau", why),
        Setting("move.window", 2 * unit, "window", f"two units of {unit} bytes: one is under way while one is told of"),
    ]


def streaming_copy(figures: Figures, _machine: Machine) -> list[Setting]:
    """move.streaming_copy_from: the smallest size from which on non-temporal stores win, with nothing in the caches."""
    plain = {one.bytes: one.p50_ns for one in figures.get("cpu.memcpy", ()) if one.cache == "flushed"}
    stream = {one.bytes: one.p50_ns for one in figures.get("cpu.stream", ()) if one.cache == "flushed"}
    start = None
    for size in sorted(plain.keys() & stream.keys(), reverse=True):
        if stream[size] >= plain[size]:
            break
        start = size
    if start is None or start < 64 * KIB:
        return []
    share = stream[start] / plain[start]
    why = f"cpu.stream takes {share:.2f} of cpu.memcpy's time at {start} B, flushed, and wins beyond"
    return [Setting("move.streaming_copy_from", start, "crossover", why)]


def spin(figures: Figures, machine: Machine) -> list[Setting]:
    """poll.spin_us: as long as waking up takes, so that spinning never costs more than twice the better choice.

    Only on a machine of one core, where the time that the agent spins is taken from its clients. An agent on a core to
    spare takes it from nobody, and to nap between the offloads of a program that posts one each millisecond only makes
    each of them later.

    Karlin, Manasse, McGeoch, Owicki: Competitive randomized algorithms for non-uniform problems (SODA 1990), section 1:
    the deterministic rule for one spin or block.
    """
    rows = figures.get("wake.nap", ())
    if not rows or machine.cores != 1:
        return []
    wake_ns = min(one.p50_ns for one in rows)
    return [
        Setting(
            "poll.spin_us", min(2000, max(1, math.ceil(wake_ns / 1000))), "ski rental", f"wake.nap: {wake_ns:.0f} ns"
        )
    ]


def nap(figures: Figures, _machine: Machine) -> list[Setting]:
    """poll.nap_us: an agent that naps without end, and looks after each nap, uses 5 % of its core.

    What falling asleep and waking up takes of a core is what the other side of wake.futex uses for it: it does so once
    for each transfer.
    A client may have to wait for the end of a nap: none is longer than the default's, whatever it costs.
    """
    costs = [one.other_cpu_ns for one in figures.get("wake.futex", ()) if one.other_cpu_ns > 0]
    if not costs:
        return []
    nap_us = min(100, max(20, round(20 * min(costs) / 1000)))
    return [Setting("poll.nap_us", nap_us, "idle share", f"wake.futex: {min(costs):.0f} ns of its core for a wake-up")]


def random_line(figures: Figures, machine: Machine) -> list[Setting]:
    """advise.line_ns: a load of a random line, several under way, out of memory that caches hold half of at most."""
    rows = [
        one
        for one in figures.get("cpu.chase", ())
        if one.depth >= 8 and machine.last_level_bytes and one.bytes >= 2 * machine.last_level_bytes
    ]
    if not rows:
        return []
    found = min(rows, key=lambda one: (-one.bytes, one.depth))
    why = f"cpu.chase: {found.depth} chains in {found.bytes >> 20} MiB"
    return [Setting("advise.line_ns", round(found.p50_ns, 2), "random line", why)]


def buffers(figures: Figures, machine: Machine) -> list[Setting]:
    """route.buffer_bytes: handing a buffer on, two cache lines that change cores, takes 5 % of filling it.

    Beyond that all buffers of a rank towards two next hops must not push its data out of half of the second cache.
    """
    spins = figures.get("wake.spin", ())
    copy = line(one for one in figures.get("cpu.memcpy", ()) if one.cache == "warm" and one.bytes <= 256 * KIB)
    if not spins or copy is None:
        return []
    bounce_ns = min(one.p50_ns for one in spins)
    size = _power_of_two(20 * 2 * bounce_ns * copy.bytes_per_ns, 4 * KIB, 256 * KIB)
    limit = machine.l2_bytes // 2 // (2 * 4)
    why = f"wake.spin: {bounce_ns:.0f} ns, cpu.memcpy: {copy.bytes_per_ns:.1f} GB/s"
    if 4 * KIB <= limit < size:
        size, why = 1 << (limit.bit_length() - 1), f"{why}, of a second cache of {machine.l2_bytes} B"
    return [Setting("route.buffer_bytes", size, "hand-over", why)]


RULES: tuple[Callable[[Figures, Machine], list[Setting]], ...] = (
    transfer_unit,
    streaming_copy,
    spin,
    nap,
    buffers,
    random_line,
)


def apply(figures: Figures, machine: Machine) -> list[Setting]:
    """What all rules say."""
    return [setting for rule in RULES for setting in rule(figures, machine)]
