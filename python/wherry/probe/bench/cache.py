# SPDX-License-Identifier: Apache-2.0
"""`wherry bench probe --only cache`: how an agent uses caches and memory (paper 001, section 6;
docs/design/probe-cache.md).

The program bench_probe_cache measures on two cores. route_trace simulates the routing kernel's loads and stores with
cache models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from wherry.errors import BenchError
from wherry.probe.bench.schema import (
    BENCHMARK,
    FAR,
    CacheAgent,
    CacheNeighbour,
    CacheTouch,
    CacheTraffic,
    ProbeResults,
)

LINE = 64
LAST, FLUSHED = "last level", "flushed"
"""Two places of data in the touch test, by their names in bench_probe_cache."""


def run_cache(results: ProbeResults, quick: bool, say: Callable[[str], None]) -> dict[str, int]:
    """Fills the rows, and returns the core of each thread. Raises NotFound if a program was not built; BenchError."""
    with BENCHMARK.scratch_directory() as directory:
        measured, simulated = directory / "measured.json", directory / "simulated.json"
        BENCHMARK.run_program("bench_probe_cache", measured, quick=quick, more=[])
        BENCHMARK.run_program("route_trace", simulated, quick=quick, more=[])
        said, traffic = BENCHMARK.read(measured), BENCHMARK.read(simulated)
    try:
        take(results, said["results"], traffic)
        if traffic["absent"]:
            say(f"  no simulation of this machine: {traffic['absent']}")
        return {name: int(core) for name, core in said["pinning"].items()}
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise BenchError(f"rows that docs/design/probe-cache.md does not describe: {error!r}") from None


def take(results: ProbeResults, said: Mapping[str, Any], traffic: Mapping[str, Any]) -> None:
    """Converts the programs' rows to rows of the results. Raises KeyError, TypeError, IndexError."""
    results.cache_agent.extend(CacheAgent(**row) for row in said["cache_agent"])
    results.cache_traffic.extend(traffic_of(row) for row in traffic["runs"])
    results.cache_touch.extend(touch_of(said["cache_touch"]))
    results.cache_neighbour.extend(CacheNeighbour(**row) for row in said["cache_neighbour"])


def traffic_of(run: Mapping[str, Any]) -> CacheTraffic:
    """The memory traffic of a run of route_trace."""
    levels, routed = run["levels"], run["routed_bytes"]

    def misses(level: int) -> float:
        return float(levels[level]["load_misses"] + levels[level]["store_misses"]) * LINE / float(routed)

    return CacheTraffic(
        system=run["system"],
        source=run["source"],
        direct=run["into_cache"],
        buffer_bytes=run["buffer_bytes"],
        payload=run["payload"],
        routed_bytes=routed,
        loads_per_byte=levels[-1]["load_misses"] * LINE / routed,
        fills_per_byte=levels[-1]["store_misses"] * LINE / routed,
        written_back_per_byte=run["written_back"] * LINE / routed,
        l1_misses_per_line=misses(0),
        l2_misses_per_line=misses(1),
    )


def touch_of(rows: Sequence[Mapping[str, Any]]) -> list[CacheTouch]:
    """The rows with their share of misses. If the processor did not count misses, the share is estimated from the
    times."""
    times = {row["place"]: row["ns_per_line"] for row in rows}
    found = []
    for row in rows:
        share: float | None = row["counted_share"]
        how: Literal["measured", "estimated", "not known"] = "measured"
        if share is None:
            share = estimated_share(row["ns_per_line"], times[LAST], times[FLUSHED])
            how = "not known" if share is None else "estimated"
        found.append(
            CacheTouch(
                place=row["place"],
                size=row["size"],
                ring_bytes=row["ring_bytes"],
                received_bytes=row["received_bytes"],
                ns_per_line=row["ns_per_line"],
                least_ns=row["least_ns"],
                most_ns=row["most_ns"],
                miss_share=share,
                share_is=how,
                samples=[sample * LINE for sample in row["samples"]],
            )
        )
    return found


def estimated_share(time: float, none: float, every: float) -> float | None:
    """Estimates the share of lines that come from memory. `none`: the time of a line if no line comes from memory;
    `every`: if all lines do. None: these two times do not differ enough for an estimate."""
    return min(1.0, max(0.0, (time - none) / (every - none))) if every > 1.1 * none else None


def cache_bars(results: ProbeResults) -> dict[str, dict[str, Any]]:
    """The bars of the rows that are present. These bars have no target."""
    known = BENCHMARK.published
    found: dict[str, dict[str, Any]] = {}

    def add(name: str, samples: Sequence[float], value: float, published: str) -> None:
        spread = [*samples, value]
        found[name] = {"value": value, "min": min(spread), "max": max(spread), "unit": "", "published": published}

    larger = {row.system: max(one.buffer_bytes for one in results.cache_traffic if one.system == row.system)
              for row in results.cache_traffic}  # fmt: skip
    for row in results.cache_traffic:
        which = (row.system, row.direct)
        if row.buffer_bytes == larger[row.system] and which == ("bluefield_3", False):
            ratio = known["bud_llc_dpu_vs_volume"]["value"]
            add("cache_traffic_without", [], row.loads_per_byte + row.fills_per_byte, f"{ratio:g}")
        elif row.buffer_bytes == larger[row.system] and which == ("xeon_6326", True):
            loaded, volume = known["bud_llc_x86"]["value"] / 1024, known["bud_comm_volume"]["value"]
            add("cache_loads_direct", [], row.loads_per_byte, f"{loaded / volume:.2g}: 249 MiB of 95 GiB")
    touch = {row.place: row for row in results.cache_touch}
    if LAST in touch and FLUSHED in touch:
        ratios = [a / b for a, b in zip(touch[FLUSHED].samples, touch[LAST].samples, strict=True)]
        shares = " %, ".join(f"{known[f'bud_dca_miss_{name}']['value']:g}" for name in ("intel", "bf3", "grace"))
        add("cache_flushed_times", ratios, touch[FLUSHED].ns_per_line / touch[LAST].ns_per_line,
            f"no times; misses of {shares} %: Intel, BlueField-3, Grace")  # fmt: skip
    beside = [row for row in results.cache_neighbour if row.neighbour == FAR and row.intensity == 1]
    if beside:
        slower = known["bud_intf_mem_slowdown"]["value"]
        add("cache_neighbour_kept", beside[0].samples, beside[0].kept, f"{1 - slower / 100:.2f}: BlueField-3")
    return found
