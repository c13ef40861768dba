# SPDX-License-Identifier: Apache-2.0
"""`wherry report`: the JSON of benchmarks and jobs as one HTML page that needs no other file.

Every figure of papers 001 and 004, and table of 003, that Wherry reproduces gets a plot, with the published values
beside ours, and its data as a table. Absolute figures belong to the machine that the page names; the claims are the
bars, which are ratios within one run.
"""

from __future__ import annotations

import dataclasses
import html
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wherry import _bases, _plots, _published, _report_kv, _report_route, bench_schema
from wherry._bench import met_of, size_text
from wherry._sections import Section
from wherry.bench_schema import Bench, BenchError, Buffers, Initiate, MoveBench, RouteBench
from wherry.bench_schema_kv import KvBench, parse_kv
from wherry.system import paths, secure


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation coefficient; None where it is not defined (fewer than two points, or no variation)."""
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:
        return None


def buffer_gains(rows: Iterable[Buffers]) -> dict[str, float]:
    """What figure 4 is about, in percent, as far as the rows allow: peak of page-aligned over other destinations
    ("alignment"), and caching at 1 MiB, page-aligned source ("cache_aligned", "cache_unaligned")."""
    rows = list(rows)
    gains: dict[str, float] = {}
    peak = {kind: max((r.gbps for r in rows if r.server_alloc == kind), default=0.0) for kind in ("memalign", "malloc")}
    if peak["malloc"] > 0 and peak["memalign"] > 0:
        gains["alignment"] = 100 * (peak["memalign"] / peak["malloc"] - 1)
    for name, kind in (("cache_aligned", "memalign"), ("cache_unaligned", "malloc")):
        chosen = [r for r in rows if (r.size, r.server_alloc, r.client_alloc) == (1 << 20, kind, "memalign")]
        with_cache = [r.gbps for r in chosen if r.cache]
        without = [r.gbps for r in chosen if not r.cache]
        if with_cache and without and without[0] > 0:
            gains[name] = 100 * (with_cache[0] / without[0] - 1)
    return gains


def _initiate_sentence(rows: Sequence[Initiate]) -> str:
    medians = [row.p50_us for row in rows]
    cold = [row.after_wait_p50_us for row in rows]
    parts = [
        f"Ours: medians from {min(medians):.3g} to {max(medians):.3g} us with warm caches, "
        f"from {min(cold):.3g} to {max(cold):.3g} us right after the wait for a transfer"
    ]
    for columns in sorted({row.columns for row in rows}):
        chosen = [row for row in rows if row.columns == columns]
        r = pearson([row.size for row in chosen], [row.p50_us for row in chosen])
        if r is not None:
            parts.append(f"correlation with the size {r:+.2f} ({columns} column{'s' if columns > 1 else ''})")
    return "; ".join(parts) + "."


def sections_of(bench: MoveBench) -> list[Section]:
    """The experiments that this run holds, in the order of the paper's figures."""
    known = _published.values("move")
    results = bench.results
    found: list[Section] = []

    def add(
        rows: Sequence[Any], anchor: str, title: str, figure: str, question: str, draw: Any, ours: str = ""
    ) -> None:
        if rows:
            shown = [entry for entry in known.values() if entry["shown_in"] == f"figure_{figure}"]
            name = f"figure {figure}" if figure else ""
            found.append(Section(anchor, title, name, question, lambda: draw(rows, known), shown, ours, rows))

    add(
        results.initiate,
        "initiate",
        "What an offload costs the host",
        "2",
        "Time that the offload call keeps the host, by size. It should not depend on the size.",
        _plots.initiate,
        _initiate_sentence(results.initiate) if results.initiate else "",
    )
    add(
        results.bandwidth,
        "bandwidth",
        "Bandwidth against a raw get",
        "3",
        "One transfer at a time from heap memory, against a raw UCX get of the same size (the paper: qperf, NCQE 1).",
        _plots.bandwidth,
    )
    add(
        results.mapped,
        "mapped",
        "Memory that the agent maps",
        "",
        "Memory that Wherry allocated is mapped by an agent on the same machine: plain loads, against one memcpy.",
        _plots.mapped,
    )
    gains = buffer_gains(results.buffers)
    names = {"alignment": "page-aligned destinations", "cache_aligned": "caching at 1 MiB, page-aligned",
             "cache_unaligned": "caching at 1 MiB, from malloc"}  # fmt: skip
    sentence = "; ".join(f"{names[name]} {gain:+.0f} %" for name, gain in gains.items())
    add(
        results.buffers,
        "buffers",
        "Buffer management",
        "4",
        "Allocators of both sides, and whether the agent keeps its destination buffers.",
        _plots.buffers,
        f"Ours: {sentence}." if sentence else "",
    )
    for api, figure, name in (("cpp", "7", "C++ API"), ("c_abi", "8", "C ABI")):
        add(
            [row for row in results.conversion if row.api == api],
            f"conversion-{api}",
            f"Where the host's conversion time goes: {name}",
            figure,
            "Share of each step from columns to Arrow IPC. What the largest steps are, in-transit placement saves.",
            lambda rows, known, api=api: _plots.conversion(rows, api, known),
        )
    add(
        results.approaches,
        "approaches",
        "Five ways to Arrow IPC",
        "11",
        "Host time, and throughput from the first get to the finished IPC buffer on the agent. As in the paper, the "
        "throughput leaves out the initiation, and for host serialization the serialization. In the middle the source "
        "is in no cache as modified, the same for all; on the right the host has written it just before.",
        _plots.approaches,
    )
    flight = [
        {"columns": columns, **dataclasses.asdict(row)}
        for columns, rows in ((1, results.flight), (16, results.flight_16_columns))
        for row in rows
    ]
    add(
        flight,
        "flight",
        "Against Arrow Flight",
        "",
        "DoPut of the same batch over loopback: throughput, and the CPU time of the application's process.",
        lambda _rows, known: _plots.flight(results.flight, results.flight_16_columns, known),
    )
    return found


def build(files: Sequence[str | os.PathLike[str]]) -> str:
    """The page for these files: benchmarks (`"name"`: `"move"`, `"route"`, `"kv"`) and runs of the main job.

    Raises BenchError, which names the file and what is wrong with it.
    """
    if not files:
        raise BenchError("no file to report on")
    body: list[str] = []
    links: list[tuple[str, str]] = []
    for index, path in enumerate(files):
        document = bench_schema.read_json(path)
        name = document.get("name") if isinstance(document, dict) else None
        if name == "move":
            move = bench_schema.parse_move(document, os.fspath(path))
            body.append(_bench(move, sections_of(move), path, index, links))
        elif name == "route":
            route = bench_schema.parse_route(document, os.fspath(path))
            body.append(_bench(route, _report_route.sections_of(route), path, index, links))
        elif name == "kv":
            kv = parse_kv(document, os.fspath(path))
            body.append(_bench(kv, _report_kv.sections_of(kv), path, index, links))
        elif name == "lammps_lj":
            body.append(_lammps(document, path, index, links))
        else:
            raise BenchError(f"{os.fspath(path)}: name is {name!r}; 'move', 'route', 'kv' or 'lammps_lj' is expected")
    style = (paths.PACKAGE / "data" / "report.css").read_text(encoding="utf-8")
    menu = "".join(f'<a href="#{anchor}">{_e(title)}</a>' for anchor, title in links)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Wherry report</title>'
        f"<style>\n{style}</style></head>\n<body><main>\n"
        "<header><h1>Wherry report</h1><p>Measured values of this machine beside the published ones of papers 004 "
        "(SDMS, which move answers: AMD EPYC 7543P, BlueField-2, 100 Gbit/s InfiniBand), 001 (Buddy, which route "
        "answers: Intel Xeon Gold 6326, BlueField-3, 100 Gbit/s) and 003 (replication, which kv answers: Alveo U55C, "
        "100 Gbit/s). Claims are ratios within one run; "
        "absolute figures belong to the machine below. "
        '<span class="published">Published values are drawn in this colour.</span></p>'
        f"<nav>{menu}</nav></header>\n{''.join(body)}\n</main></body></html>\n"
    )


def write(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Path:
    """Writes the page of build() to `out`, complete or not at all. Raises BenchError, OSError."""
    page = build(files)
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    with secure.replacing(target) as partial:
        partial.write_text(page, encoding="utf-8")
    return target


def _e(text: object) -> str:
    return html.escape(str(text))


def _bench(
    bench: Bench,
    sections: Sequence[Section],
    path: str | os.PathLike[str],
    index: int,
    links: list[tuple[str, str]],
) -> str:
    prefix = f"r{index}-"
    parts = [f'<h2 id="{prefix}bars">Benchmark <code>{bench.name}</code></h2>']
    links.append((f"{prefix}bars", f"Bars of {bench.name}"))
    parts.append(_bars(bench))
    for section in sections:
        anchor = prefix + section.anchor
        links.append((anchor, section.title))
        parts.append(_section(section, anchor))
    links.append((f"{prefix}machine", "Machine"))
    facts: dict[str, object] = {"measured": bench.when, "machine": _machine(dataclasses.asdict(bench.machine))}
    if isinstance(bench, RouteBench | KvBench):
        facts["cores"] = ", ".join(f"{name} is core {core}" for name, core in bench.pinning.items())
    else:
        facts["pinning"] = ", ".join(f"{who} on core {core}" for who, core in bench.pinning.items())
        facts["transports"] = f"{bench.transports} ({bench.one_sided})"
    facts["repetitions"] = bench.repetitions
    if isinstance(bench, KvBench) and bench.not_measured:
        facts["not measured"] = "; ".join(f"{name}: {why}" for name, why in bench.not_measured.items())
    facts["versions"] = ", ".join([f"wherry {bench.wherry}", *(f"{k} {v}" for k, v in bench.versions.items())])
    parts.append(_facts(f"{prefix}machine", facts, path, "make bench report", f"wherry bench {bench.name}"))
    return "\n".join(parts)


def _machine(machine: Mapping[str, Any]) -> str:
    memory = machine["memory_bytes"] / (1 << 30)
    return f"{machine['cpu']}, {machine['cores']} cores, {memory:.1f} GiB, Linux {machine['kernel']}"


def _facts(anchor: str, facts: Mapping[str, object], path: str | os.PathLike[str], make: str, command: str) -> str:
    rows = "".join(f"<dt>{_e(name)}</dt><dd>{_e(value)}</dd>" for name, value in facts.items())
    return (
        f'<h2 id="{anchor}">Machine, versions, and how to reproduce</h2><div class="card"><dl class="facts">{rows}</dl>'
        f"<pre>{_e(make)}\n\n# or, by hand\n{_e(command)} --json {_e(os.fspath(path))}\n"
        f"wherry report {_e(os.fspath(path))} --out build/report.html</pre></div>"
    )


def _verdict(passed: bool | None) -> str:
    if passed is None:
        return ""
    return '<span class="verdict pass">met</span>' if passed else '<span class="verdict miss">missed</span>'


def _bars(bench: Bench) -> str:
    bars = bench.bars
    if not bars:
        return '<div class="card">This run has no bars: it was a part of the benchmark.</div>'
    lines = []
    for name, bar in bars.items():
        unit = f" {_e(bar.unit)}" if bar.unit else ""
        basis = _bases.basis_of(name, bench.results)
        beside = f"; beside it, {_e(basis.beside)}" if basis.beside else ""
        uses = f"<br><small>uses {_e(basis.uses)}{beside}</small>" if basis.uses else ""
        lines.append(
            f'<tr><td><code>{_e(name)}</code>{uses}</td><td class="number"><b>{bar.value:.3g}</b>{unit}</td>'
            f'<td class="number"><small>{bar.min:.3g} to {bar.max:.3g}</small></td>'
            f'<td class="number">{_e(bar.target or "")}</td>'
            f"<td>{_verdict(bar.passed)}</td>"
            f'<td class="published">{_e(bar.published or "")}</td></tr>'
        )
    return (
        f'<div class="card"><h3>{met_of(bench)} bars met</h3><div class="scroll"><table><thead><tr><th>bar</th>'
        '<th class="number">median</th><th class="number">min to max</th><th class="number">target</th><th>verdict</th>'
        f"<th>published</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div></div>"
    )


def _section(section: Section, anchor: str) -> str:
    svg = _plots.to_svg(_plots.styled(section.draw), anchor)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{_e(section.title)}" ', 1)
    reference = f" <small>({section.figure} of the paper)</small>" if section.figure else ""
    paper = "; ".join(
        f"{_e(entry['quantity'])}: {_e(_published.text_of(entry))} <small>[{_e(entry['source'])}]</small>"
        for entry in section.published
    )
    caption = _e(section.question)
    if section.ours:
        caption += f" {_e(section.ours)}"
    if paper:
        caption += f'<br><span class="published">Paper: {paper}.</span>'
    return (
        f'<section class="card" id="{anchor}"><h3>{_e(section.title)}{reference}</h3><figure>{svg}'
        f"<figcaption>{caption}</figcaption></figure>{_data(section.rows)}</section>"
    )


def _data(rows: Sequence[Any]) -> str:
    """The numbers behind a plot, folded away."""
    records = [dict(row) if isinstance(row, Mapping) else dataclasses.asdict(row) for row in rows]
    names = list(records[0])
    head = "".join(f"<th>{_e(name)}</th>" for name in names)
    lines = ["".join(_cell(name, record[name]) for name in names) for record in records]
    return (
        f"<details><summary>the numbers ({len(records)} rows)</summary>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table></div></details>"
    )


def _cell(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else value
        return f"<td>{_e(text)}</td>"
    if name == "size":
        return f'<td class="number">{size_text(value)}</td>'
    return f'<td class="number">{value:.4g}</td>' if isinstance(value, float) else f'<td class="number">{value}</td>'


_TOTALS = [
    ("call_us", "offload call", "us"),
    ("hold_ms", "sources held", "ms"),
    ("stall_ms", "of it not covered by the application's bookkeeping", "ms"),
    ("host_convert_write_ms", "host serialising itself: convert and write (as the paper's baseline)", "ms"),
    ("host_wrap_write_ms", "host serialising itself: wrap and write (the best way)", "ms"),
    ("agent_gb_s", "agent throughput", "GB/s"),
]


def _lammps(document: Mapping[str, Any], path: str | os.PathLike[str], index: int, links: list[tuple[str, str]]) -> str:
    prefix = f"r{index}-lammps"
    try:
        verdict, totals, frames, parameters = (document[k] for k in ("verdict", "totals", "frames", "parameters"))
        lines = "".join(
            f'<tr><td>{_e(what)}</td><td class="number"><b>{totals[key]["median"]:.3g}</b> {unit}</td>'
            f'<td class="number"><small>{totals[key]["min"]:.3g} to {totals[key]["max"]:.3g}</small></td></tr>'
            for key, what, unit in _TOTALS
        )
        svg = _plots.to_svg(_plots.styled(lambda: _plots.lammps(frames)), prefix)
        worst = verdict["largest_relative_difference"]
        agreement = f"largest relative difference {worst:.1e}" if worst is not None else "figures do not agree"
        facts = {
            "measured": document["when"],
            "machine": _machine(document["machine"]),
            "pinning": ", ".join(f"{who} on core {core}" for who, core in document["pinning"].items()),
            "transports": f"{document['transports']} ({document['one_sided']})",
            "versions": ", ".join(
                f"{k} {v}" for k, v in [("wherry", document["wherry"]), *document["versions"].items()]
            ),
        }
        intro = (
            f"{parameters['atoms']:,} atoms, {parameters['steps']} steps, a frame every {parameters['every']}: "
            f"{verdict['frames_read']} of {verdict['frames_offloaded']} frames read and checked, {agreement} "
            f"(allowed: {verdict['tolerance']:g})."
        )
        passed = bool(verdict["pass"])
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{os.fspath(path)} is no summary of the job lammps_lj: {error!r}") from None
    links.append((prefix, "LAMMPS job"))
    return (
        f'<h2 id="{prefix}">Main job: LAMMPS</h2><section class="card"><h3>An independent reader checks the physics '
        f"{_verdict(passed)}</h3><p>{_e(intro)}</p><table><thead><tr><th>per frame</th>"
        f'<th class="number">median</th><th class="number">min to max</th></tr></thead><tbody>{lines}</tbody></table>'
        f"<figure>{svg}</figure>{_data(frames)}</section>"
        + _facts(f"{prefix}-machine", facts, path, "make run report", "python -m wherry.jobs.lammps_lj")
    )
