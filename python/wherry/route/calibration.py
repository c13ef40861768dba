# SPDX-License-Identifier: Apache-2.0
"""The figures that `wherry advise` uses: two thresholds for a program's ratio, and the costs for its estimate.

A machine's values are the settings `advise.*` of its path profile (docs/guide/profile.md). `wherry advise --calibrate`
writes all of them, with the rule "kernel". `wherry probe profile` writes only `advise.line_ns`, unless a calibration
wrote it.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wherry.errors import Error, InvalidArgument, NotFound
from wherry.route import programs
from wherry.system import Advice, Profile, find_profile, load_profile, run_to_end, this_machine, write_profile

TOUCHES = (0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 4, 8, 16)
"""The points of the curve: cache lines that the handler of a message touches. One line per message is a ratio of 4."""
ROUNDS = 5
PLACEMENTS = {"inline": "{0},{1}", "shared": "{0}", "host": "{0},{1}"}
"""The cores of each placement, for two ranks on two nodes."""

COMMUNICATION_SHARE, HOST_SHARE = 1.5, 3.0
"""At the two thresholds, a message takes 1.5 and 3 times as long as without local work, so communication is two thirds
and one third of the time."""


@dataclass(frozen=True)
class Cost:
    """The cost of communication for a rank, in ns of core time."""

    message_ns: float
    byte_ns: float

    def seconds(self, messages: int, bytes_: int) -> float:
        """The core time to send and handle these messages, in seconds."""
        return (messages * self.message_ns + bytes_ * self.byte_ns) * 1e-9


@dataclass(frozen=True)
class Point:
    """The kernel's figures at one ratio: median ns per message, and the speed-up of host over shared, from all
    rounds."""

    ratio: float
    inline_ns: float
    shared_ns: float
    host_ns: float
    speedup: float
    speedup_min: float
    speedup_max: float
    counted_ratio: float | None = None
    """The ratio from the hardware's counter, if there is one. `ratio` is known by construction."""


@dataclass(frozen=True)
class Calibration:
    """The calibration of one machine."""

    communication_below: float
    """Programs with a ratio below this are communication-dominated."""
    host_above: float
    """Programs with a ratio above this are host-dominated."""
    line_ns: float
    """The cost of one randomly touched line, with several accesses in flight."""
    inline: Cost
    agent: Cost
    """A rank's cost if agents route."""
    source: str
    spread: dict[str, list[float]] = field(default_factory=dict)
    """The range [least, most] of each threshold over the rounds."""
    curve: list[Point] = field(default_factory=list)

    def nearest(self, ratio: float) -> Point | None:
        """The point of the curve that is nearest to `ratio`."""
        return min(self.curve, key=lambda point: abs(point.ratio - ratio), default=None)

    def write(self, path: Path) -> None:
        """Writes the values into this machine's profile at `path`, for load(). Keeps its other settings.

        Raises OSError.
        """
        why = f"bench/route/balance.cpp, {self.source}"
        settings = {f"advise.{name}": Advice(repr(value), "kernel", why) for name, value in _numbers(self).items()}
        figures = {"source": self.source, "spread": self.spread, "curve": [asdict(point) for point in self.curve]}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_profile(path, now, settings, {"advise": figures}, lambda key, _one: not key.startswith("advise."))


_LIMITS = {
    "communication_below": (0.0, 1e6),
    "host_above": (0.0, 1e6),
    "line_ns": (0.1, 1e4),
    "inline_message_ns": (0.0, 1e6),
    "inline_byte_ns": (0.0, 1e3),
    "agent_message_ns": (0.0, 1e6),
    "agent_byte_ns": (0.0, 1e3),
}
"""Limits of the settings. A value outside of its limits is a mistake."""


def _numbers(of: Calibration) -> dict[str, float]:
    """The numbers by the names of the settings, without "advise."."""
    return {
        "communication_below": of.communication_below,
        "host_above": of.host_above,
        "line_ns": of.line_ns,
        "inline_message_ns": of.inline.message_ns,
        "inline_byte_ns": of.inline.byte_ns,
        "agent_message_ns": of.agent.message_ns,
        "agent_byte_ns": of.agent.byte_ns,
    }


# The defaults for machines without a calibrated profile. They were measured on 2026-11-22 with `wherry advise
# --calibrate --json FILE` on two virtual cores of an AMD EPYC (Zen 5), on a shared host with nothing else running: 0.20
# [0.19, 0.21] and 1.35 [1.24, 1.53] (least and most of five rounds); a line takes 31 ns. docs/guide/route-advise.md
# explains the kernel and the thresholds.
COMMUNICATION_BELOW = 0.2
HOST_ABOVE = 1.35
LINE_NS = 31.0
INLINE_COST = Cost(message_ns=10.0, byte_ns=0.10)
AGENT_COST = Cost(message_ns=17.0, byte_ns=0.085)
DEFAULT = Calibration(
    COMMUNICATION_BELOW,
    HOST_ABOVE,
    LINE_NS,
    INLINE_COST,
    AGENT_COST,
    source="Wherry's own, from another machine perhaps: `wherry advise --calibrate` measures this one's",
)


def of_profile(profile: Profile) -> Calibration:
    """The profile's values, with the defaults for missing values. Raises InvalidArgument if a value is outside of its
    limits."""
    found = {name: profile.decimal(f"advise.{name}", *limits) for name, limits in _LIMITS.items()}
    said = {name: value for name, value in found.items() if value is not None}
    if not said:
        return DEFAULT
    numbers = _numbers(DEFAULT) | said
    if numbers["communication_below"] > numbers["host_above"]:
        raise InvalidArgument(f"{profile.file}: advise.communication_below is above advise.host_above")
    by_kernel = all(profile.settings[f"advise.{name}"].rule == "kernel" for name in said) and len(said) == len(_LIMITS)
    plain = replace(
        DEFAULT,
        communication_below=numbers["communication_below"],
        host_above=numbers["host_above"],
        line_ns=numbers["line_ns"],
        inline=Cost(numbers["inline_message_ns"], numbers["inline_byte_ns"]),
        agent=Cost(numbers["agent_message_ns"], numbers["agent_byte_ns"]),
        source=f"from profile {profile.file}: {', '.join(sorted(said))}; the rest {DEFAULT.source}",
    )
    if not by_kernel:
        return plain
    try:
        figures = profile.more["advise"]
        return replace(
            plain,
            source=f"from profile {profile.file}, {str(figures['source'])[:200]}",
            spread={str(name): [float(low), float(high)] for name, (low, high) in figures["spread"].items()},
            curve=[Point(**point) for point in figures["curve"]],
        )
    except KeyError as error:
        raise InvalidArgument(f"{profile.file}: the figures of advise lack {error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidArgument(f"{profile.file}: the figures of advise: {error}") from None


def load(path: Path) -> Calibration:
    """The calibration from a named profile. Raises InvalidArgument, also if the profile lacks these settings;
    NotFound."""
    try:
        profile = load_profile(path)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    found = of_profile(profile)
    if found is DEFAULT:
        raise InvalidArgument(f"{path} has no calibration: `wherry advise --calibrate --json {path}` adds it")
    return found


def find(warn: Callable[[str], None]) -> Calibration:
    """The calibration from the profile in use, else the default. Raises InvalidArgument if $WHERRY_PROFILE names a bad
    profile."""
    profile = find_profile(warn)
    if profile is None:
        return DEFAULT
    try:
        return of_profile(profile)
    except InvalidArgument as error:
        warn(f"the profile's calibration cannot be used: {error}")
        return DEFAULT


def line_bytes() -> int:
    """The size of a cache line of this machine in bytes."""
    try:
        return int(Path("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size").read_text())
    except (OSError, ValueError):
        return 64


def last_level_cache_bytes(directory: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """The size of this machine's largest cache in bytes. 0: unknown."""
    sizes = [0]
    for path in directory.glob("index*/size"):
        try:
            text = path.read_text().strip()
            sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]])
        except (OSError, ValueError, KeyError, IndexError):
            continue
    return max(sizes)


def crossing(ratios: Sequence[float], values: Sequence[float], level: float) -> float:
    """The ratio at which `values` first reach `level`, interpolated between two points. Raises Error if they never
    do."""
    for i, value in enumerate(values):
        if value < level:
            continue
        if i == 0:
            return ratios[0]
        below = values[i - 1]
        return ratios[i - 1] + (ratios[i] - ratios[i - 1]) * (level - below) / (value - below)
    raise Error(f"a message never took {level:g} times as long as at first: something else was using the machine")


def fit(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Fits a line and returns (intercept, slope). The Theil-Sen estimator (the median of all slopes) is robust to
    outliers."""
    slopes = [(b - a) / (t - s) for s, a in zip(xs, ys, strict=True) for t, b in zip(xs, ys, strict=True) if t > s]
    slope = statistics.median(slopes)
    return statistics.median(y - slope * x for x, y in zip(xs, ys, strict=True)), slope


def _run_kernel(placement: str, cores: Sequence[int], quick: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "wherry.cli", "run", "--nodes", "2", "--placement", placement, "--timeout", "60"]
    command += ["--cores", PLACEMENTS[placement].format(*cores), "--", str(programs.balance())]
    command += ["--touches", *map(str, TOUCHES), *(["--messages", "4e5", "--table", "64"] if quick else [])]
    done = run_to_end(command)
    for line in done.stdout.splitlines():
        if '"points"' in line and done.returncode == 0:
            found: dict[str, Any] = json.loads(line[line.index("{") :])
            return found
    raise Error(f"the calibration's kernel failed, placement {placement}: {done.stderr.strip() or done.stdout.strip()}")


def measure(cores: Sequence[int], *, quick: bool = False) -> Calibration:
    """Runs the kernel on the first two of `cores`, in all placements in turn. `quick`: few messages and rounds, for
    tests."""
    if len(cores) < 2:
        raise InvalidArgument("calibrating takes two cores, for the ranks and for their agents")
    rounds = [{name: _run_kernel(name, cores, quick) for name in PLACEMENTS} for _ in range(2 if quick else ROUNDS)]
    return evaluate(rounds, line_bytes(), last_level_cache_bytes())


def _ns(point: dict[str, Any]) -> float:
    return float(point["seconds"]) / int(point["messages"]) * 1e9


def _busy_ns(point: dict[str, Any]) -> float:
    """The time per message of all ranks together, without waiting. If ranks share a core, waiting cannot be
    distinguished from the other rank's turn."""
    busy = min(point["cpu_seconds"], point["rank_seconds"] - point["blocked_seconds"])
    return float(busy) / int(point["messages"]) * 1e9


def _by_size(small: float, large: float, small_bytes: int, large_bytes: int) -> Cost:
    byte_ns = max(0.0, (large - small) / (large_bytes - small_bytes))
    return Cost(max(0.0, small - byte_ns * small_bytes), byte_ns)


def evaluate(rounds: Sequence[dict[str, dict[str, Any]]], line: int, cache: int) -> Calibration:
    """Computes the calibration from each round's results by placement. The last point of each result has large
    messages."""
    table = rounds[0]["shared"]["table_bytes"]
    missing = max(0.0, 1 - cache / table)  # the share of touches that miss the last-level cache

    def of(placement: str, index: int, how: Any = _ns) -> list[float]:
        return [how(one[placement]["points"][index]) for one in rounds]

    curve, ratios = [], []
    for index, point in enumerate(rounds[0]["shared"]["points"][:-1]):
        ratios.append(point["touched"] * line * missing / point["bytes"])
        speedups = [shared / host for shared, host in zip(of("shared", index), of("host", index), strict=True)]
        counted = [one["shared"]["points"][index] for one in rounds]
        known = all(one["cache_misses"] is not None for one in counted)
        curve.append(
            Point(
                ratio=ratios[-1],
                inline_ns=statistics.median(of("inline", index)),
                shared_ns=statistics.median(of("shared", index)),
                host_ns=statistics.median(of("host", index)),
                speedup=statistics.median(speedups),
                speedup_min=min(speedups),
                speedup_max=max(speedups),
                counted_ratio=statistics.median(one["cache_misses"] * line / one["bytes"] for one in counted)
                if known
                else None,
            )
        )

    def threshold(shared_ns: Sequence[float], times: float) -> float:
        return crossing(ratios, [ns / shared_ns[0] for ns in shared_ns], times)

    shared = [point.shared_ns for point in curve]
    spread = {
        name: [threshold([_ns(p) for p in one["shared"]["points"][:-1]], times) for one in rounds]
        for name, times in (("communication_below", COMMUNICATION_SHARE), ("host_above", HOST_SHARE))
    }
    # From half a line per message on, the ranks' own work is the limit. The slope is the cost of a line, the intercept
    # the cost of communication.
    working = [index for index, touches in enumerate(TOUCHES) if touches >= 0.5]
    message_ns, touch_ns = fit([TOUCHES[i] for i in working], [curve[i].host_ns for i in working])
    small, large = (rounds[0]["host"]["points"][i]["message_bytes"] + 8 for i in (0, -1))
    inline_small, inline_large = (statistics.median(of("inline", i, _busy_ns)) for i in (0, -1))
    return Calibration(
        communication_below=threshold(shared, COMMUNICATION_SHARE),
        host_above=threshold(shared, HOST_SHARE),
        line_ns=touch_ns,
        inline=_by_size(inline_small, inline_large, small, large),
        agent=_by_size(max(0.0, message_ns), statistics.median(of("host", -1)), small, large),
        source=f"measured on {this_machine().cpu}",
        spread={name: [min(values), max(values)] for name, values in spread.items()},
        curve=curve,
    )
