# SPDX-License-Identifier: Apache-2.0
"""`wherry advise`: runs a program, and derives from its ranks' statistics which processor should route its messages.

The measure is the memory-to-communication ratio of paper 001, section 5.0.1: last-level cache misses times the size of
a cache line, divided by the routed bytes.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.errors import FailedPrecondition, NotFound
from wherry.route import launcher
from wherry.route.calibration import Calibration, line_bytes
from wherry.route.pinning import parse_cores, plan_cores

SMALL_TRANSFER = 8192
"""A transfer size in bytes below which most of the benefit of aggregation is lost (paper 001, section 5.0.2: a plateau
at 16 to 32 KiB)."""
MUCH_BLOCKED = 0.2
"""Above this share of the ranks' time in polls that found nothing to do, the advice mentions the wait."""
CANNOT_TELL = (
    "Cannot tell: nothing has counted what the program loads from memory, and an upper bound of its ratio says nothing "
    "about the ratio. Run `wherry advise` where misses are counted (a machine without virtualisation, "
    "kernel.perf_event_paranoid at most 2), or compare the run time of the program with the placements inline and host."
)
"""The advice if the ratio is not known."""


class Category(enum.StrEnum):
    """The category of a program (paper 001, table 2)."""

    communication = "communication-dominated"
    balanced = "balanced"
    host = "host-dominated"
    unknown = "cannot tell"
    """Only an upper bound of the ratio is known, so no category follows."""


@dataclass(frozen=True)
class RankFile:
    """The content of a file rank-N.json (docs/guide/route-launch.md)."""

    rank: int
    node: int
    placement: str
    seconds: float
    cpu_seconds: float
    blocked_seconds: float
    cache_misses: int | None
    cache_misses_missing: str
    statistics: dict[str, int]


@dataclass(frozen=True)
class Advice:
    """The advice from one run."""

    program: list[str]
    placement: str
    nodes: int
    ranks: int
    seconds: float
    messages: int
    routed_bytes: int
    average_transfer: float
    blocked_share: float
    """The share of the ranks' time in polls that found nothing to do."""
    cache_misses: int | None
    memory_bytes: float
    ratio: float
    estimated: bool
    bound: bool
    """Whether the ratio is only an upper bound."""
    how: str
    """How memory_bytes was determined."""
    category: Category
    what_to_do: list[str]
    thresholds: dict[str, Any]

    def write(self, path: Path) -> None:
        """Writes the advice as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"schema": 1, "name": "advise"} | dataclasses.asdict(self)
        path.write_text(json.dumps(document, indent=2) + "\n")


def run(job: launcher.Job, calibration: Calibration) -> tuple[int, Advice | None]:
    """Runs the job. Returns its exit status and, if that is 0, the advice. Raises Error if no advice is possible."""
    with launcher.scratch_directory() as directory:
        status = launcher.run(dataclasses.replace(job, statistics=directory))
        if status != 0:
            return status, None
        ranks = gather(directory, job)
    plan = plan_cores(job.placement, job.nodes, job.ranks_per_node, parse_cores(job.cores))
    alone = len(set().union(*plan.ranks)) == job.ranks
    return 0, conclude(job.program, ranks, calibration, alone=alone)


def gather(directory: Path, job: launcher.Job) -> list[RankFile]:
    """Reads the statistics of all ranks. Raises NotFound if a rank wrote none."""
    files = [directory / f"rank-{rank}.json" for rank in range(job.ranks)]
    missing = [rank for rank, file in enumerate(files) if not file.is_file()]
    if len(missing) == job.ranks:
        raise NotFound(
            f"{job.program[0]} left no statistics: it never started a wherry::route::Runtime, or ended without "
            "destroying it, or was linked with a version of Wherry that leaves none"
        )
    if missing:
        raise NotFound(
            f"rank {missing[0]} of {job.program[0]} left no statistics: it started no wherry::route::Runtime, or ended "
            "without destroying it"
        )
    return [RankFile(**json.loads(file.read_text())) for file in files]


def conclude(program: list[str], ranks: Sequence[RankFile], calibration: Calibration, *, alone: bool = True) -> Advice:
    """Derives the advice from the files of a job's ranks. `alone`: each rank had its own core. Raises
    FailedPrecondition if there was no communication."""

    def total(name: str) -> int:
        return sum(rank.statistics[name] for rank in ranks)

    messages = total("sent")
    # Bytes that ranks sent themselves, without forwarded bytes, which count at their sender.
    routed = total("bytes_out") - total("forwarded_bytes")
    if messages == 0 or routed == 0:
        raise FailedPrecondition(f"{program[0]} sent no message: there is no ratio, and no placement to choose")
    misses = None
    if all(rank.cache_misses is not None for rank in ranks):
        misses = sum(rank.cache_misses or 0 for rank in ranks)
    memory, how = _counted(misses) if misses is not None else _estimated(ranks, calibration, alone)
    ratio = memory / routed
    bound = misses is None or _is_amd()
    category = Category.unknown if misses is None else categorise(ratio, calibration)
    if bound and category is not Category.communication:  # a counted bound below the lowest threshold is enough
        category = Category.unknown
    blocked = sum(rank.blocked_seconds for rank in ranks) / max(sum(rank.seconds for rank in ranks), 1e-9)
    transfer = total("bytes_out") / max(total("transfers"), 1)
    placement = ranks[0].placement
    return Advice(
        program=program,
        placement=placement,
        nodes=len({rank.node for rank in ranks}),
        ranks=len(ranks),
        seconds=max(rank.seconds for rank in ranks),
        messages=messages,
        routed_bytes=routed,
        average_transfer=transfer,
        blocked_share=blocked,
        cache_misses=misses,
        memory_bytes=memory,
        ratio=ratio,
        estimated=misses is None,
        bound=bound,
        how=how,
        category=category,
        what_to_do=[
            _where(category, placement),
            *([] if category is Category.unknown else _kernel_says(ratio, calibration)),
            *_tuning(transfer, blocked, total("flush_full"), total("transfers")),
        ],
        thresholds={
            "communication_below": calibration.communication_below,
            "host_above": calibration.host_above,
            "source": calibration.source,
        },
    )


def categorise(ratio: float, calibration: Calibration) -> Category:
    """Compares a ratio with the thresholds. A ratio equal to a threshold is balanced."""
    if ratio < calibration.communication_below:
        return Category.communication
    return Category.host if ratio > calibration.host_above else Category.balanced


def _counted(misses: int) -> tuple[float, str]:
    line = line_bytes()
    how = f"{misses} last-level cache misses of {line} bytes, counted by the hardware"
    if _is_amd():
        how += "; on AMD's Zen the kernel counts those of the second level under this name: an upper bound"
    return float(misses * line), how


def _is_amd() -> bool:
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def _estimated(ranks: Sequence[RankFile], calibration: Calibration, alone: bool) -> tuple[float, str]:
    """Estimates memory bytes, as if all time outside of communication were spent on randomly touched lines."""
    local = 0.0
    for rank in ranks:
        statistics = rank.statistics
        busy = min(rank.cpu_seconds, rank.seconds - rank.blocked_seconds)
        cost = calibration.inline if rank.placement == "inline" else calibration.agent
        # The cost of a message covers sending and handling. A rank does half of that for each message it sends or
        # handles.
        messages = (statistics["sent"] + statistics["handled"]) // 2
        bytes_ = (statistics["bytes_out"] + statistics["bytes_in"]) // 2
        local += max(0.0, busy - cost.seconds(messages, bytes_))
    line = line_bytes()
    why = next(rank.cache_misses_missing for rank in ranks if rank.cache_misses is None)
    how = (
        f"an estimate, for misses were not counted ({why}): the ranks' {local:.3g} s of CPU time outside of "
        f"communication, as though all of it had gone into cache lines touched at random, "
        f"{line / calibration.line_ns:.2g} GB/s; a program that computes in its caches gets too high a ratio"
    )
    if not alone:
        how += (
            ". It is far too high where ranks take turns on a core and wait for each other, as they may here: their "
            "waiting counts as work. Trust one with a core for each rank"
        )
    return local * 1e9 / calibration.line_ns * line, how


def _where(category: Category, placement: str) -> str:
    if category is Category.unknown:
        advice = CANNOT_TELL
    elif category is Category.communication:
        advice = (
            "Keep routing inline: handing messages over costs more than there is local work to do meanwhile, and "
            "agents would be what limits. If you need agents, use host with more than one routing thread "
            "(route.routing_threads); the weaker cores of a DPU made such programs no faster (paper 001: 0.83, 0.99)."
        )
    elif category is Category.balanced:
        advice = (
            "Local work and communication take about as long: with a core to spare, host lets them overlap; without "
            "one, stay inline. A DPU gains little (paper 001: 1.13)."
        )
    else:
        advice = (
            "Local work dominates: take routing off the ranks' cores, by host where a core is to spare, by dpu where "
            "there is a SmartNIC, whose weaker cores suffice (paper 001: 1.40 to 1.55). Where every core can run a "
            "rank, stay inline."
        )
    return advice + (" Avoid shared: there the agent takes turns with the ranks." if placement == "shared" else "")


def _kernel_says(ratio: float, calibration: Calibration) -> list[str]:
    point = calibration.nearest(ratio)
    if point is None:
        return []
    return [
        f"On two cores, the calibration's kernel of ratio {point.ratio:.2g} took {point.inline_ns:.3g} ns for a "
        f"message of 8 bytes inline, {point.host_ns:.3g} with host and {point.shared_ns:.3g} with shared: host over "
        f"shared {point.speedup:.2f} [{point.speedup_min:.2f}, {point.speedup_max:.2f}]."
    ]


def _tuning(transfer: float, blocked: float, full: int, transfers: int) -> list[str]:
    hints = []
    if transfer < SMALL_TRANSFER:
        hints.append(
            f"Transfers are small, {transfer:.0f} bytes in the mean, and {100 * full / max(transfers, 1):.0f} % of "
            "them because a buffer was full: send more before polling, so that messages share buffers."
        )
    if blocked > MUCH_BLOCKED:
        hints.append(
            f"The ranks had nothing to do for {100 * blocked:.0f} % of their time: they wait for each other (uneven "
            "work?) or for the routers (more routing threads, more buffers: WHERRY_ROUTE_BUFFERS)."
        )
    return hints
