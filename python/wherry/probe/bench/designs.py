# SPDX-License-Identifier: Apache-2.0
"""The experiment `designs`: the four FPGA designs of paper 000, simulated by designs_bench (docs/design/designs.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from wherry.errors import BenchError

SCHEMA = "wherry.designs_bench/1"
CAP_GBYTES = 9.45
"""The rate of one channel beside a MicroBlaze: the middle of paper 000's range, 9.4 to 9.5 (section 6.3)."""
BRAM_BYTES = 1 << 20
RUN_BYTES = 8 << 20

TARGETS = {
    "sim_linux_c2h_gbs": (">= 12", "GB/s"),
    "sim_linux_c2h_most_gbs": ("<= 13", "GB/s"),
    "sim_xdma_preset_bram_1m": (">= 7.1", "GB/s"),
    "sim_xdma_preset_bram_1m_most": ("<= 7.9", "GB/s"),
    "sim_turns_1k_of_one": ("<= 1", ""),
    "sim_turns_4k_over_512": (">= 2.5", ""),
    "sim_turns_4k_of_one": (">= 0.85", ""),
    "sim_designs_cpu_minutes": ("<= 5", "min"),
}
"""Every bar: its target, and its unit."""

USES = {
    "sim_linux_c2h_gbs": "design_linux: the least of c2h with 3 and 4 channels in all windows of the recording, whole "
    "runs, core 100 MHz, controller card. Simulated",
    "sim_linux_c2h_most_gbs": "the same rows, the most. Simulated",
    "sim_xdma_preset_bram_1m": "designs: bram, one channel, 1 MiB, interrupt, preset xdma: the less of h2c and c2h. "
    "Simulated; its call was fitted to these two",
    "sim_xdma_preset_bram_1m_most": "the same two, the larger. Simulated",
    "sim_turns_1k_of_one": "design_turns: writes of four streams in one bank, turns of 1 KiB, over those of one, "
    "controller litedram, at the memory's port. Simulated",
    "sim_turns_4k_over_512": "the same four streams: turns of 4 KiB over turns of 512 B. Simulated",
    "sim_turns_4k_of_one": "four streams with turns of 4 KiB over one stream of such bursts. Simulated",
    "sim_designs_cpu_minutes": "CPU time of the figure set, figures 8 to 18, on one core",
}


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """The simulated rate of a design at one transfer size."""

    design: str
    flow: str
    channels: int
    size: int
    """The bytes of one transfer. The driver splits a transfer of more than 8 MiB into several runs; only one run was
    simulated."""
    notice: str
    preset: str
    controller: str
    gbytes_per_s: float
    """The rate of all channels together, in 10^9 bytes per second."""
    transfer_us: float


@dataclass(frozen=True, slots=True)
class DesignTurns:
    """Streams that access different rows of one memory bank in turns."""

    controller: str
    flow: str
    turn: int
    streams: int
    memory_gbytes_per_s: float
    """The rate at the memory's port."""
    engine_gbytes_per_s: float
    """The rate through the DMA engine with a link of unlimited rate."""


@dataclass(frozen=True, slots=True)
class DesignWay:
    """The rate of one channel by the latency of the interconnect to the memory."""

    flow: str
    slices: int
    cycles: int
    """The round trip to the memory in cycles of 300 MHz."""
    gbytes_per_s: float


@dataclass(frozen=True, slots=True)
class DesignLinux:
    """A design's rate while Linux on the soft core uses the same memory."""

    controller: str
    core_mhz: int
    """The clock of the soft core. 0: the core is idle."""
    flow: str
    channels: int
    gbytes_per_s: float
    window: int | None = None
    """The window of the recorded Linux traffic that was replayed. None if the core is idle."""


@dataclass(frozen=True, slots=True)
class DesignFirmware:
    """A design's rate while firmware runs on the soft core."""

    firmware: str
    flow: str
    channels: int
    gbytes_per_s: float


@dataclass(frozen=True, slots=True)
class Designs:
    """The results of designs_bench."""

    points: list[DesignPoint]
    turns: list[DesignTurns]
    ways: list[DesignWay]
    linux: list[DesignLinux]
    firmwares: list[DesignFirmware]
    cpu_minutes: float
    traffic: str
    """The source of the recorded Linux traffic."""


def read(document: Any) -> Designs:
    """Reads the program's JSON. Raises BenchError."""
    try:
        if document["schema"] != SCHEMA or document["simulated"] is not True:
            raise BenchError(f"designs_bench wrote schema {document['schema']!r}; {SCHEMA!r} is expected")
        wrong = [row for part in ("figures", "turns", "interconnect", "linux", "firmwares") for row in document[part]
                 if row["error"]]  # fmt: skip
        if wrong:
            raise BenchError(f"designs_bench: {len(wrong)} rows have an error; the first: {wrong[0]}")
        return Designs(
            [_point(row) for row in document["figures"]],
            [DesignTurns(**_without_error(row)) for row in document["turns"]],
            [DesignWay(**_without_error(row)) for row in document["interconnect"]],
            [DesignLinux(**_without_error(row)) for row in document["linux"]],
            [DesignFirmware(**_without_error(row)) for row in document["firmwares"]],
            document["figures_cpu_s"] / 60,
            document["traffic"],
        )
    except (KeyError, TypeError) as error:
        raise BenchError(f"designs_bench wrote rows that docs/design/designs.md does not describe: {error!r}") from None


def _without_error(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "error"}


def _point(row: dict[str, Any]) -> DesignPoint:
    rest = _without_error(row)
    size, transfer_ns = rest.pop("bytes"), rest.pop("transfer_ns")
    return DesignPoint(**rest, size=size, transfer_us=transfer_ns / 1000)


def peak(points: Iterable[DesignPoint], design: str, flow: str, channels: int, size: int = RUN_BYTES) -> float:
    """The rate in GB/s of the paper's set-up: XDMA and interrupts. The default of `size` is a whole run."""
    return next(point.gbytes_per_s for point in points
                if (point.design, point.flow, point.channels, point.size, point.notice, point.preset)
                == (design, flow, channels, size, "interrupt", "xdma"))  # fmt: skip


def cap_cycles(ways: Iterable[DesignWay], flow: str, gbytes: float = CAP_GBYTES) -> float:
    """The round trip in cycles of 300 MHz at which one channel reaches `gbytes`, interpolated between two points of the
    sweep."""
    found = sorted((way for way in ways if way.flow == flow), key=lambda way: way.cycles)
    for before, after in pairwise(found):
        if before.gbytes_per_s >= gbytes >= after.gbytes_per_s:
            part = (before.gbytes_per_s - gbytes) / (before.gbytes_per_s - after.gbytes_per_s)
            return before.cycles + part * (after.cycles - before.cycles)
    raise BenchError(f"no length of the way gives {gbytes} GB/s {flow}")


def values_of(found: Designs) -> dict[str, float]:
    """The bars' values."""
    linux = [row.gbytes_per_s for row in found.linux
             if (row.controller, row.core_mhz, row.flow) == ("card", 100, "c2h") and row.channels >= 3]  # fmt: skip
    bram = [peak(found.points, "bram", flow, 1, BRAM_BYTES) for flow in ("h2c", "c2h")]
    writes = {(row.turn, row.streams): row.memory_gbytes_per_s for row in found.turns
              if (row.controller, row.flow) == ("litedram", "h2c")}  # fmt: skip
    return {
        "sim_linux_c2h_gbs": min(linux),
        "sim_linux_c2h_most_gbs": max(linux),
        "sim_xdma_preset_bram_1m": min(bram),
        "sim_xdma_preset_bram_1m_most": max(bram),
        "sim_turns_1k_of_one": writes[1024, 4] / writes[1024, 1],
        "sim_turns_4k_over_512": writes[4096, 4] / writes[512, 4],
        "sim_turns_4k_of_one": writes[4096, 4] / writes[4096, 1],
        "sim_designs_cpu_minutes": found.cpu_minutes,
    }


def bars_of(found: Designs) -> dict[str, dict[str, Any]]:
    """The bars in the form of a benchmark's JSON."""
    bars = {}
    for name, value in values_of(found).items():
        target, unit = TARGETS[name]
        comparison, limit = target.split()
        met = value >= float(limit) if comparison == ">=" else value <= float(limit)
        bars[name] = {"value": value, "min": value, "max": value, "target": target, "pass": met, "unit": unit,
                      "published": None}  # fmt: skip
    return bars
