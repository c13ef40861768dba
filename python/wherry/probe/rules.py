# SPDX-License-Identifier: Apache-2.0
"""The rules that derive settings from measured figures (docs/guide/profile.md has a table of them).

Each rule is a function. It returns settings with the figures that determined them, or an empty list if figures are
missing. docs/guide/profile.md summarises the research behind each rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wherry.probe.comparing import compare_rounds

KIB, MIB = 1 << 10, 1 << 20
DEFAULT_UNIT = 4 * MIB
"""The default of move.transfer_unit without a profile (src/move/service/offload_engine.hpp)."""
DOUBT = 0.05
"""The probability that the confidence interval of a median does not contain it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Properties of the machine that rules use in addition to the figures."""

    l2_bytes: int
    last_level_bytes: int = 0
    """Size of the largest cache. 0: unknown."""
    cores: int = 0
    """The number of cores. 0: unknown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The figures of a row of a run. Times are per transfer, in ns."""

    bytes: int
    p50_ns: float
    cache: str = "warm"
    depth: int = 1
    other_cpu_ns: float = 0
    """The user and system time of the process on the other side."""
    rounds: Sequence[float] = ()
    """The median of each round; `p50_ns` is the median of these. Round number n of all sizes and paths was measured at
    about the same time."""


@dataclass(frozen=True, slots=True)
class Line:
    """A fit of time against size: t0 and a rate by least squares of the relative error, and the largest relative
    error."""

    t0_ns: float
    bytes_per_ns: float
    error: float


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, and the reason for its value."""

    key: str
    value: int | float
    rule: str
    why: str


Figures = Mapping[str, Sequence[Figure]]
"""Figures by the name of the path in `wherry probe list`."""


def line(figures: Iterable[Figure]) -> Line | None:
    """Fits t = t0 + bytes / rate, with weights 1 / t^2 and t0 >= 0. None: there are fewer than three sizes, or the rate
    is not positive."""
    points = sorted({(one.bytes, one.p50_ns) for one in figures if one.bytes > 0 and one.p50_ns > 0})
    if len({size for size, _ in points}) < 3:
        return None
    # Two normal equations minimise the sum of squares of (t0 + b s - t) / t.
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
    """The smallest power of two that is at least `value`, within limits that are powers of two."""
    return min(most, max(least, 1 << max(0, math.ceil(math.log2(max(value, 1))))))


def median_interval(values: Sequence[float], doubt: float = DOUBT) -> tuple[float, float]:
    """A confidence interval of the median of the values' distribution, which may be any distribution.

    It is the interval of the sign test (Hollander, Wolfe, "Nonparametric Statistical Methods", section 3.6). For seven
    values it is the minimum and the maximum. 0 and infinity: there are too few values.
    """
    inner = sorted(values)
    beyond, left = 0, 0.0
    for k in range(len(inner) // 2):
        left += 2 * math.comb(len(inner), k) / 2 ** len(inner)
        if left > doubt:
            break
        beyond = k + 1
    return (0.0, math.inf) if beyond == 0 else (inner[beyond - 1], inner[-beyond])


def _plateau_begins(figures: Sequence[Figure]) -> list[float]:
    """For each round, the smallest transfer in bytes that reaches 98 % of the path's rate, so that t0 is 2 % of its
    time."""
    rounds = min((len(one.rounds) for one in figures), default=0)
    lines = [line(Figure(one.bytes, one.rounds[r]) for one in figures) for r in range(rounds)]
    return [49 * one.t0_ns * one.bytes_per_ns for one in lines if one is not None]


def transfer_unit(figures: Figures, _machine: Machine) -> list[Setting]:
    """move.transfer_unit: the smallest transfer that reaches 98 % of the path's rate.

    Each round gives one value of this size, so there is a confidence interval. The rule takes the unit in the interval
    that is nearest to the default. So the setting differs from the default only if the default is outside the interval.
    """
    if (found := _first(figures, "ucx.get.shm", "ipc.cma.get")) is None:
        return []
    path, fit = found
    low, high = median_interval(_plateau_begins(figures[path]))
    least, most = (_power_of_two(min(of, 64 * MIB), 64 * KIB, 64 * MIB) for of in (low, high))
    unit = min(max(DEFAULT_UNIT, least), most)
    why = f"{path}: {fit.t0_ns:.0f} ns and {fit.bytes_per_ns:.1f} GB/s, so 98 % from {low:.0f} to {high:.0f} B on"
    return [
        Setting("move.transfer_unit", unit, "plateau", why),
        Setting("move.window", 2 * unit, "window", f"two units of {unit} bytes: one is under way while one is told of"),
    ]


def streaming_copy(figures: Figures, _machine: Machine) -> list[Setting]:
    """move.streaming_copy_from: the smallest size from which non-temporal stores are faster with empty caches.

    They count as faster by the rule of `wherry probe compare`: by more than 5 %, and by more than the rounds' spread.
    """
    plain = {one.bytes: one for one in figures.get("cpu.memcpy", ()) if one.cache == "flushed"}
    stream = {one.bytes: one for one in figures.get("cpu.stream", ()) if one.cache == "flushed"}
    start, share = None, 1.0
    for size in sorted(plain.keys() & stream.keys(), reverse=True):
        a, b = plain[size], stream[size]
        ratio, _, _, verdict = compare_rounds(a.rounds or [a.p50_ns], b.rounds or [b.p50_ns])
        if verdict != "faster":
            break
        start, share = size, ratio
    if start is None or start < 64 * KIB:
        return []
    why = f"cpu.stream takes {share:.2f} of cpu.memcpy's time at {start} B, flushed, and wins beyond"
    return [Setting("move.streaming_copy_from", start, "crossover", why)]


def spin(figures: Figures, machine: Machine) -> list[Setting]:
    """poll.spin_us: the time of a wake-up, so that spinning never costs more than twice the optimum.

    The rule applies only to a machine with one core, where the agent's spinning uses its clients' time. On a spare
    core, the agent does not take time from others. If a program posts one offload each millisecond, naps between them
    would only delay every offload.

    Source: Karlin, Manasse, McGeoch, Owicki: Competitive randomized algorithms for non-uniform problems (SODA 1990),
    section 1, the deterministic rule for a single choice between spinning and blocking.
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
    """poll.nap_us: the nap with which an agent that always naps, and polls after each nap, uses 5 % of its core.

    The CPU cost of sleeping and waking up is the other side's cost in wake.futex, which sleeps once per transfer. A
    client may have to wait for the end of a nap, so a nap is never longer than the default nap.
    """
    costs = [one.other_cpu_ns for one in figures.get("wake.futex", ()) if one.other_cpu_ns > 0]
    if not costs:
        return []
    nap_us = min(100, max(20, round(20 * min(costs) / 1000)))
    return [Setting("poll.nap_us", nap_us, "idle share", f"wake.futex: {min(costs):.0f} ns of its core for a wake-up")]


def random_line(figures: Figures, machine: Machine) -> list[Setting]:
    """advise.line_ns: the time to load a random line, with several loads in flight, from memory of at least twice the
    cache size."""
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
    """route.buffer_bytes: the size at which passing on a buffer (two cache lines change cores) takes 5 % of the time to
    fill it.

    In addition, all buffers of a rank towards two next hops may use at most half of the second-level cache.
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
    """The settings of all rules."""
    return [setting for rule in RULES for setting in rule(figures, machine)]
