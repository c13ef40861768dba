# SPDX-License-Identifier: Apache-2.0
"""The report's chapters of `wherry bench probe` and of `wherry probe run`. Plots are in wherry.probe.report.plots."""

from __future__ import annotations

from typing import Any

from wherry.probe.bench.run import figures_of
from wherry.probe.bench.schema import Absent, PathFigures, ProbeBench, ProbeResults, ThesisLoad
from wherry.probe.lines import Provenance
from wherry.probe.report import plots
from wherry.probe.report.cache import add_cache
from wherry.probe.report.designs import design_sections
from wherry.probe.report.model import chapter as model_chapter
from wherry.probe.report.model import stored_sections
from wherry.probe.schema import load
from wherry.report import Chapter, Section, Sections, bench_chapter
from wherry.units import size_text

SPIKE = "rep_t5_5_read_4k"
CASES = {1: "CMAC and host memory", 2: "CMAC and HBM", 3: "HBM and host memory"}
"""The cases of paper 003."""
PROVENANCES: dict[Provenance, str] = {
    "measured": "Measured on this machine.",
    "simulated": "Simulated: the time is that of a simulation.",
    "modelled": "Modelled: the time is that of a formula.",
}
"""The provenances of figures. A plot never mixes them."""
BESIDE = 1024
"""The packet size in bytes for plots that compare paths."""
PREDICTED = "Simulated and predicted: the thesis has one packet at a time. No number was set for this."


def chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of a JSON document of the benchmark. Raises BenchError."""
    return bench_chapter(ProbeBench, document, file, _sections, _facts)


def _sections(bench: ProbeBench) -> list[Section]:
    return sections_of(bench.results) + (stored_sections() if "model_heldout_worst" in bench.bars else [])


def run_chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of a file that `wherry probe run --json` wrote. Raises BenchError."""
    run = load(file)
    absent = [Absent(path.id, path.absent) for path in run.paths if path.absent]
    return Chapter(
        heading="Paths",
        code="wherry probe run",
        anchor="paths",
        link="Paths of this machine",
        facts={
            "measured": run.when,
            "machine": run.machine_key,
            **{name.replace("_", " "): value for name, value in sorted(run.environment.items())},
            "rounds": run.settings.rounds,
            "versions": f"wherry {run.wherry}",
        },
        command="wherry probe run",
        make="bench report",
        sections=sections_of(ProbeResults(paths=figures_of(run), absent=absent)),
    )


CHAPTERS = {"probe": chapter, "probe_run": run_chapter, "probe_model": model_chapter}


def _facts(bench: ProbeBench) -> dict[str, object]:
    facts: dict[str, object] = {name.replace("_", " "): value for name, value in sorted(bench.environment.items())}
    if bench.not_run:
        facts["bars not run"] = "; ".join(f"{name}: {why}" for name, why in bench.not_run.items())
    return facts


def sections_of(results: ProbeResults) -> list[Section]:
    """The sections of the experiments that the results contain."""
    sections = Sections("probe")
    for provenance, words in PROVENANCES.items():
        _paths(sections, [row for row in results.paths if row.provenance == provenance], provenance, words)
    sections.add(
        results.same,
        "same",
        "One run, everything twice",
        "Each path and shape was measured as two series that took turns. The interval is that of the ratio of the two, "
        "99 %, from the rounds' medians. One that lies wholly beyond the band of 5 % would be called a difference.",
        lambda rows, _: plots.same(rows),
        ours=f"No difference in {sum(row.verdict == 'no difference' for row in results.same)} of {len(results.same)}.",
    )
    sections.add(
        results.spoiled,
        "spoiled",
        "One byte flipped where the data landed",
        "A byte of the destination was changed before each check. Every cell of every path must be told as wrong.",
        lambda rows, _: plots.spoiled(rows),
    )
    sections.found.extend(design_sections(results))
    sections.add(
        results.dma,
        "dma",
        "The DMA engine as a card",
        "Simulated: RTL, driver and PCIe; no card was used. The bound counts TLP bytes of the payload only.",
        lambda rows, _: plots.dma(rows),
    )
    sections.add(
        results.suites,
        "suites",
        "Runs of the program",
        "How long a suite takes, the start of programs included.",
        lambda rows, _: plots.suites(rows),
    )
    _thesis(sections, results)
    _load(sections, results)
    add_cache(sections, results)
    return sections.found


def _paths(sections: Sections, rows: list[PathFigures], provenance: Provenance, words: str) -> None:
    plain = [row for row in rows if not row.shape and row.depth == 1 and row.group not in ("wake",) and
             row.id != "cpu.chase"]  # fmt: skip
    remote = [row for row in rows if row.shape == "remote" and row.depth == 1]
    sections.add(
        [*plain, *remote],
        f"latency-{provenance}",
        "Latency by size",
        f"{words} One transfer at a time: the median of the rounds' medians, with the smallest and largest of them.",
        lambda rows, _: plots.latency(rows),
    )
    moving = [row for row in rows if row.gbytes_per_s > 0 and row.group != "wake" and row.id != "cpu.chase"]
    sections.add(
        moving,
        f"bandwidth-{provenance}",
        "Bandwidth by size",
        f"{words} The best depth of each size; 10^9 bytes a second.",
        lambda rows, _: plots.bandwidth(rows),
    )
    wakes = [row for row in rows if row.group == "wake"]
    sections.add(
        wakes,
        f"wake-{provenance}",
        "Waking another process",
        f"{words} From the call until the woken process has answered with a line of 64 bytes, and what a call costs in "
        "CPU time on both sides.",
        lambda rows, _: plots.wake(rows),
        ours=_wake_sentence(wakes),
    )
    sections.add(
        [row for row in rows if row.id == "cpu.chase"],
        f"chase-{provenance}",
        "The way to memory",
        f"{words} Loads that depend on each other, in so much memory, and the time of one. With more chains more are "
        "under way.",
        lambda rows, _: plots.chase(rows),
        ours=_chase_sentence([row for row in rows if row.id == "cpu.chase"]),
    )


def _wake_sentence(rows: list[PathFigures]) -> str:
    return "; ".join(f"{row.id}: {row.p50_ns / 1000:.3g} us" for row in rows)


def _chase_sentence(rows: list[PathFigures]) -> str:
    alone = [row for row in rows if row.depth == 1]
    return "; ".join(f"{size_text(row.size)}: {row.p50_ns:.3g} ns" for row in alone)


def _thesis(sections: Sections, results: ProbeResults) -> None:
    """Adds a section for each case of paper 003, and one for the latency spike."""
    for case, title in CASES.items():
        of_case = [cell for cell in results.thesis if cell.case == case]
        predicted = sum(cell.mark == "predicted" for cell in of_case)
        sections.add(
            of_case,
            f"thesis-{case}",
            f"The thesis's shell, case {case}: {title}",
            "Simulated: the sections of a packet's path. The upper bar of each pair is the simulation's, the lower one "
            f"is published (Table 5.{2 * case}). Numbers were set to 128 bytes and 2 KiB; {predicted} of "
            f"{len(of_case)} cells are predicted.",
            lambda rows, _: plots.stacks(rows),
        )
    published = next((cell.published_ns for cell in results.thesis if cell.id == SPIKE), None)
    sections.add(
        results.thesis_spike,
        "thesis-spike",
        "The thesis's shell: 4 KiB from HBM to the host",
        "Simulated: a descriptor is cut where a buffer crosses a boundary of 4 KiB, and the engine does one "
        "transaction after the other. Without either there is no spike.",
        lambda rows, _: plots.spike(rows, published),
    )


def _load(sections: Sections, results: ProbeResults) -> None:
    """Adds the sections of the shell under load: latency against offered rate, rates at saturation, and concurrent
    paths."""
    alone = [row for row in results.thesis_load if row.scenario == "alone"]
    sections.add(
        alone,
        "thesis-load",
        "The thesis's shell under load: latency against offered rate",
        f"{PREDICTED} Packets come by chance, and wait for those before them. Solid: the mean; dotted: 99 % of packets "
        "are faster; the grey mark: one packet alone, as in the thesis's tables.",
        lambda rows, _: plots.load_latency(rows),
    )
    full = [row for row in alone if row.share == 1]
    sections.add(
        full,
        "thesis-rates",
        "The thesis's shell under load: rates at saturation",
        f"{PREDICTED} 1.2 times the bound is offered. Dashed: the bound of the slowest stage, by hand. Right: "
        "the share of packets that the packet adapter dropped.",
        lambda rows, _: plots.load_rates(rows),
        ours=_losses(full),
    )
    sections.add(
        [row for row in results.thesis_load if row.scenario != "alone" and row.bytes == BESIDE],
        "thesis-together",
        f"The thesis's shell under load: paths beside each other, {size_text(BESIDE)}",
        f"{PREDICTED} Each path is offered the same share of what it reaches alone. Off the diagonal, paths "
        "take from each other.",
        lambda rows, _: plots.load_together(rows),
    )


def _losses(rows: list[ThesisLoad]) -> str:
    lost = [row for row in rows if row.dropped]
    ways = plots.LOAD_WAYS
    return "; ".join(
        f"{ways[row.case, row.way]}, {size_text(row.bytes)}: {row.dropped} of {row.packets} lost" for row in lost
    )
