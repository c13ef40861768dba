# SPDX-License-Identifier: Apache-2.0
"""What the report shows of one JSON document: a chapter, of bars, sections and facts."""

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


@dataclass(frozen=True, slots=True)
class Section:
    """What the experiment asks, how it is drawn, what the paper found, and what we did."""

    anchor: str
    title: str
    figure: str
    """Of the paper, as "figure 2", or nothing."""
    question: str
    draw: Callable[[], Figure]
    published: Sequence[Mapping[str, Any]]
    """The published values that the plot shows."""
    ours: str
    """One sentence about our result, or nothing."""
    rows: Sequence[Any]
    """Dataclasses or mappings of one kind: the data table."""

    @property
    def paper(self) -> list[tuple[str, str, str]]:
        """The published values in words: what, how much, where."""
        return [(entry["quantity"], published_text(entry), entry["source"]) for entry in self.published]


class Sections:
    """Collects the experiments of one benchmark that a run holds."""

    def __init__(self, part: str) -> None:
        """`part`: whose published values they are drawn with, as "kv"."""
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
        """Nothing if there are no rows. `figures`: of the paper, as "figure 7" or "table 5.7"."""
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
    """A claim, and what became of it."""

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
    """What a job says of itself in a few figures, before its plot."""

    title: str
    passed: bool
    text: str
    head: Sequence[str]
    lines: Sequence[tuple[str, str, str, str]]
    """What, its median, the unit, least to most."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One document of the report."""

    heading: str
    """In two parts: the second one is set as code."""
    code: str
    anchor: str
    link: str
    """The heading's line in the menu."""
    facts: Mapping[str, object]
    command: str
    """What wrote the document."""
    make: str
    """The target of the Makefile that does."""
    bars: Sequence[BarLine] | None = None
    """None: such a document has none."""
    met: str = ""
    """How many of them: "3 of 4"."""
    sections: Sequence[Section] = ()
    totals: Totals | None = None
    """Before the only section, whose title is theirs."""


def read_chapter(file: str) -> Chapter:
    """What its service makes of a JSON document. Raises BenchError, which names the file and what is wrong with it."""
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
    """Whose evaluations the benchmarks repeat, a phrase each."""
    return [one.paper for one in benchmarks().values()]


Kind = TypeVar("Kind", bound=Run)


def bench_chapter(
    kind: type[Kind],
    document: Any,
    file: str,
    sections: Callable[[Kind], Sequence[Section]],
    facts: Callable[[Kind], Mapping[str, object]] = lambda bench: {"cores": cores_text(bench.pinning)},
) -> Chapter:
    """Of a benchmark's document. `facts`: beside those that every one has. Raises BenchError, which names the file."""
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
        command=f"wherry bench {bench.name}",
        make="make bench report",
        bars=_bars(bench),
        met=met_of(bench),
        sections=sections(bench),
    )


def _bars(bench: Run) -> list[BarLine]:
    lines = []
    for name, bar in bench.bars.items():
        basis = basis_of(name, bench)
        lines.append(
            BarLine(
                name=name,
                value=f"{bar.value:.3g}",
                unit=bar.unit,
                spread=f"{bar.min:.3g} to {bar.max:.3g}",
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
    """Who has which core, in one line."""
    return ", ".join(f"{name} is core {core}" for name, core in pinning.items())


def versions_text(wherry: str, versions: Mapping[str, str]) -> str:
    """Versions in one line."""
    return ", ".join([f"wherry {wherry}", *(f"{name} {version}" for name, version in versions.items())])
