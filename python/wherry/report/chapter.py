# SPDX-License-Identifier: Apache-2.0
"""The report's chapter of one JSON document, with bars, sections and facts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from matplotlib.figure import Figure

from wherry import services
from wherry.bench import (
    Run,
    basis_of,
    benchmarks,
    met_of,
    parse_as,
    published_text,
    published_values,
    read_json,
)
from wherry.errors import BenchError
from wherry.report.plots import Published
from wherry.units import number_text


@dataclass(frozen=True, slots=True)
class Section:
    """A section about one experiment: its question, its plot, its data and the paper's values."""

    anchor: str
    title: str
    figure: str
    """The corresponding figure of the paper, such as "figure 2", or empty."""
    question: str
    draw: Callable[[], Figure]
    published: Sequence[Mapping[str, Any]]
    """The published values that the plot shows."""
    ours: str
    """One sentence about our result, or empty."""
    rows: Sequence[Any]
    """The rows of the data table: dataclasses or mappings of one kind."""

    @property
    def paper(self) -> list[tuple[str, str, str]]:
        """The published values in words: quantity, value, source."""
        return [(entry["quantity"], published_text(entry), entry["source"]) for entry in self.published]


class Sections:
    """Collects the sections of one benchmark, for the experiments that a run contains."""

    def __init__(self, part: str) -> None:
        """`part`: the service, such as "kv", whose published values the plots show."""
        self.found: list[Section] = []
        self._known = published_values(part)

    def add(
        self,
        rows: Sequence[Any],
        anchor: str,
        title: str,
        question: str,
        draw: Callable[[Any, Published], Figure],
        *,
        figures: Sequence[str] = (),
        ours: str = "",
    ) -> None:
        """Adds a section if there are rows. `figures`: the paper's figures and tables, such as "figure 7" or "table
        5.7"."""
        if not rows:
            return
        names = {name.replace(" ", "_").replace(".", "_") for name in figures}
        shown = [entry for entry in self._known.values() if entry["shown_in"] in names]
        known = self._known
        self.found.append(
            Section(anchor, title, ", ".join(figures), question, lambda: draw(rows, known), shown, ours, rows)
        )


@dataclass(frozen=True, slots=True)
class BarLine:
    """A bar with its verdict."""

    name: str
    value: str
    unit: str
    spread: str
    target: str
    passed: bool | None
    published: str
    uses: str
    beside: str


@dataclass(frozen=True, slots=True)
class Totals:
    """The main figures of a job, which are shown before its plot."""

    title: str
    passed: bool
    text: str
    head: Sequence[str]
    lines: Sequence[tuple[str, str, str, str]]
    """For each figure: the quantity, its median, the unit, and the range from minimum to maximum."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """The chapter of one JSON document in the report."""

    heading: str
    """The first part of the heading. The second part, `code`, is set as code."""
    code: str
    anchor: str
    link: str
    """The chapter's line in the menu."""
    facts: Mapping[str, object]
    command: str
    """The command that wrote the document."""
    make: str
    """The target of the Makefile that writes the document."""
    bars: Sequence[BarLine] | None = None
    """The bars. None: this type of document has no bars."""
    met: str = ""
    """How many bars are met: "3 of 4"."""
    part: str = ""
    """A sentence that says why the run is partial. Empty if the run is complete."""
    sections: Sequence[Section] = ()
    totals: Totals | None = None
    """Figures that are shown before the only section, under the section's title."""


def read_chapter(file: str) -> Chapter:
    """Reads a JSON document and returns the chapter that its service makes. Raises BenchError, which names the file and
    the error."""
    document = read_json(file)
    known: dict[str, Callable[[Any, str], Chapter]] = {}
    for part in services.parts("report"):
        known |= part.CHAPTERS
    name = document.get("name") if isinstance(document, dict) else None
    if name not in known:
        *names, last = map(repr, known)
        raise BenchError(f"{file}: name is {name!r}; {', '.join(names)} or {last} is expected")
    return known[name](document, file)


def papers() -> list[str]:
    """A phrase for each paper whose evaluation a benchmark repeats."""
    return [one.paper for one in benchmarks().values()]


Kind = TypeVar("Kind", bound=Run)


def bench_chapter(
    kind: type[Kind],
    document: Any,
    file: str,
    sections: Callable[[Kind], Sequence[Section]],
    facts: Callable[[Kind], Mapping[str, object]] = lambda bench: {"cores": cores_text(bench.pinning)},
) -> Chapter:
    """The chapter of a benchmark's document. `facts`: additional facts to show. Raises BenchError, which names the
    file."""
    bench = parse_as(kind, document, file)
    return Chapter(
        heading="Benchmark",
        code=bench.name,
        anchor="bars",
        link=f"Bars of {bench.name}",
        facts={
            "measured": bench.when,
            "machine": machine_text(dataclasses.asdict(bench.machine)),
            **facts(bench),
            "repetitions": bench.repetitions,
            "versions": versions_text(bench.wherry, bench.versions),
        },
        command=" ".join(
            [f"wherry bench {bench.name}", *(["--quick"] if bench.quick else []), *(f"--only {o}" for o in bench.only)]
        ),
        part=_part(bench),
        make="make bench report",
        bars=_bars(bench),
        met=met_of(bench),
        sections=sections(bench),
    )


def _part(bench: Run) -> str:
    only = f"only {', '.join(bench.only)}" if bench.only else ""
    if bench.quick:
        return f"A quick run{f', {only}' if only else ''}: a look, not a measurement."
    return f"A part of the benchmark: {only}." if only else ""


def _bars(bench: Run) -> list[BarLine]:
    lines = []
    for name, bar in bench.bars.items():
        basis = basis_of(name, bench)
        lines.append(
            BarLine(
                name=name,
                value=number_text(bar.value),
                unit=bar.unit,
                spread=f"{number_text(bar.min)} to {number_text(bar.max)}",
                target=bar.target or "",
                passed=bar.passed,
                published=bar.published or "",
                uses=basis.uses,
                beside=basis.beside,
            )
        )
    return lines


def machine_text(machine: Mapping[str, Any]) -> str:
    """A machine in one line."""
    memory = machine["memory_bytes"] / (1 << 30)
    return f"{machine['cpu']}, {machine['cores']} cores, {memory:.1f} GiB, Linux {machine['kernel']}"


def cores_text(pinning: Mapping[str, int]) -> str:
    """The core of each process, in one line."""
    return ", ".join(f"{name} is core {core}" for name, core in pinning.items())


def versions_text(wherry: str, versions: Mapping[str, str]) -> str:
    """Versions in one line."""
    return ", ".join([f"wherry {wherry}", *(f"{name} {version}" for name, version in versions.items())])
