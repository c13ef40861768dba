# SPDX-License-Identifier: Apache-2.0
"""The report's chapter of `wherry bench bypass`: its sections. Plots are in wherry.bypass.report.plots."""

from __future__ import annotations

from typing import Any

from wherry.bypass.bench.schema import BypassBench, BypassResults
from wherry.bypass.report import plots
from wherry.report import Chapter, Section, Sections, bench_chapter

SIMULATED = "Simulated: the Verilated core beside models of NIC and PCIe."
MODELLED = (
    "Modelled: the paper's core, NIC and fabric as models. Dashed lines and crosses are the paper's measurements."
)


def chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of a JSON document of bypass. Raises BenchError."""
    return bench_chapter(BypassBench, document, file, sections_of, _facts)


CHAPTERS = {"bypass": chapter}


def _facts(bench: BypassBench) -> dict[str, object]:
    facts: dict[str, object] = {"hardware": "none: our core is simulated RTL, the paper's and all NICs are models"}
    for core in bench.results.rtl_core[:1]:
        facts["our core"] = (
            f"{core.queue_pairs} queue pair, {core.slots} slots, {core.tx_descriptors} transmit descriptors, "
            f"{core.pack_bytes >> 10} KiB of packed buffer; simulated, and by Yosys"
        )
    if bench.not_measured:
        facts["not measured"] = "; ".join(f"{name}: {why}" for name, why in bench.not_measured.items())
    if bench.not_run:
        facts["bars not run"] = "; ".join(f"{name}: {why}" for name, why in bench.not_run.items())
    return facts


def sections_of(bench: BypassBench) -> list[Section]:
    """The sections of the experiments that this run contains."""
    sections = Sections("bypass")
    _ours(sections, bench.results)
    _papers(sections, bench.results)
    _rest(sections, bench.results)
    return sections.found


def _ours(sections: Sections, results: BypassResults) -> None:
    sections.add(
        results.rtl_rates,
        "rtl-rates",
        "Our core at line rate, both directions at once",
        f"{SIMULATED} Share of what Ethernet allows, and of what the card's PCIe link carries of such packets.",
        plots.rtl_rates,
    )
    sections.add(
        results.rtl_latency,
        "rtl-latency",
        "Our core on switch and root complexes",
        f"{SIMULATED} 300 bytes at 10 Gbit/s line rate. Crosses: what the paper measured with its core.",
        plots.rtl_latency,
        figures=("figure 8",),
    )
    sections.add(
        results.rtl_overload,
        "rtl-overload",
        "Our core under overload",
        f"{SIMULATED} More is offered than port, function or root let through: the share of what an ideal core passes.",
        plots.rtl_overload,
    )
    sections.add(
        results.rtl_cycles,
        "rtl-cycles",
        "Our core in cycles",
        f"{SIMULATED} A packet at a time, from port to port, cycles of 4 ns. The paper's handlers take 7 and 2 cycles, "
        "and one more for each 8 bytes.",
        plots.rtl_cycles,
    )


def _papers(sections: Sections, results: BypassResults) -> None:
    sections.add(
        results.latency_over_time,
        "figure-7",
        "Latency over time",
        f"{MODELLED} 300 bytes at 10 Gbit/s. The model has no noise of its own: its jitter is the fabric's. "
        "The software's peaks every 2 s have no known cause and are not modelled.",
        plots.latency_over_time,
        figures=("figure 7",),
        ours=_latency_sentence(results),
    )
    sections.add(
        results.rates,
        "figure-8",
        "Latency and loss by rate",
        f"{MODELLED} Input rate in Gbit/s of frames with FCS. Black: our core, simulated RTL; stars: "
        "at line rate, for longer. Its NIC is the one of any_fetches: compare it with the solid lines.",
        lambda rows, published: plots.rates(rows, published, results.rtl_curves, results.rtl_latency),
        figures=("figure 8",),
    )
    sections.add(
        results.overload_over_time,
        "figure-9",
        "Overload with and without flow control",
        f"{MODELLED} The paper's core at line rate. Shaded: packets left out of order. How many do is not predicted.",
        lambda rows, published: plots.overload(rows, published, results.overload),
        figures=("figure 9",),
        ours=_overload_sentence(results),
    )
    sections.add(
        results.tcp,
        "table-1",
        "Long packets",
        "Modelled: 1514 bytes at line rate, of which 1448 are data. TCP's own queues and its losses on the Intel root "
        "are not modelled: latencies are lower bounds.",
        plots.tcp,
        figures=("table I",),
    )
    sections.add(
        results.batching,
        "table-2",
        "Tail writes by batches",
        f"{MODELLED} one_fetch: the NIC has one read of transmit descriptors under way. any_fetches: any number.",
        plots.batching,
        figures=("table II",),
    )
    sections.add(
        results.constants,
        "model",
        "How far the models can be trusted",
        "Each figure of the paper that the models give, and by how much they miss it. Fitted: a constant was set for "
        "it. Predicted: none was. The table lists the constants.",
        lambda rows, published: plots.errors(rows, published, results),
    )


def _rest(sections: Sections, results: BypassResults) -> None:
    sections.add(
        results.resources,
        "resources",
        "Resources",
        "Yosys for UltraScale+; bypass_core is the whole, with one queue pair at 10 Gbit/s. The paper's are Vivado's: "
        "its rings and buffers, and with the PCIe bridge.",
        plots.resources,
        figures=("section IV F",),
    )
    sections.add(
        results.qemu,
        "qemu",
        "Behind QEMU's NICs",
        "Simulated RTL, driven by the DMA engine of a NIC that nobody here wrote: formats and order of accesses, not "
        "times.",
        plots.qemu,
    )


def _latency_sentence(results: BypassResults) -> str:
    parts = [
        f"{row.scenario} {row.mean_us:.2f} us ({row.published_us} published, {row.mark})"
        for row in results.latency
        if row.reading == "one_fetch"
    ]
    return f"The models give: {'; '.join(parts)}." if parts else ""


def _overload_sentence(results: BypassResults) -> str:
    parts = [
        f"{row.topology}, write-back {'on' if row.writeback else 'off'}: {row.loss_percent:.2f} % lost "
        f"({row.published_loss_percent:g} % published, {row.mark}), {row.latency_us:.0f} us"
        for row in results.overload
        if row.published_loss_percent is not None
    ]
    return f"The model gives: {'; '.join(parts)}." if parts else ""
