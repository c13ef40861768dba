# SPDX-License-Identifier: Apache-2.0
"""The page of `wherry report`: one self-contained HTML file, made from the JSON of benchmarks and jobs.

For every figure and table of the papers that Wherry reproduces, the page has a plot of the published values and ours,
and the data as a table. Absolute figures are valid only for the machine that the page names. The targets apply to the
bars, which are ratios within one run.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from wherry.errors import BenchError
from wherry.report.chapter import Section, papers, read_chapter
from wherry.report.plots import styled, to_svg
from wherry.system import replacing
from wherry.units import number_text, size_text

_HERE = Path(__file__).resolve().parent


def build(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str] = "build/report.html") -> str:
    """Returns the page for these files. Each file is from a benchmark (`"name"`: `"move"`, `"route"`, `"kv"`) or from
    the main job.

    `out`: the path that the page will have; the page shows it in the commands that reproduce the page. Raises
    BenchError, which names the file and the error.
    """
    if not files:
        raise BenchError("no file to report on")
    chapters = [_chapter(path, f"r{index}-") for index, path in enumerate(files)]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    *first, last = papers()
    return environment.get_template("page.html.jinja").render(
        style=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        papers=f"{', '.join(first)} and {last}" if first else last,
        chapters=chapters,
        out=os.fspath(out),
    )


def write(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Path:
    """Writes the page of build() to `out` atomically. Raises BenchError, OSError."""
    page = build(files, out)
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        partial.write_text(page, encoding="utf-8")
    return target


def _chapter(path: str | os.PathLike[str], prefix: str) -> Mapping[str, Any]:
    """A chapter in the form for the template. `prefix`: a unique beginning of the chapter's anchors."""
    file = os.fspath(path)
    chapter = read_chapter(file)
    return {
        "chapter": chapter,
        "anchor": prefix + chapter.anchor,
        "sections": [_section(section, prefix + section.anchor) for section in chapter.sections],
        "machine": f"{prefix}machine",
        "file": file,
    }


def _section(section: Section, anchor: str) -> Mapping[str, Any]:
    return {
        "section": section,
        "anchor": anchor,
        "svg": _drawn(section, anchor, "wide", narrow=False)
        + _drawn(section, f"{anchor}-narrow", "narrow", narrow=True),
        "paper": section.paper,
        "table": _table(section.rows),
    }


def _drawn(section: Section, salt: str, kind: str, *, narrow: bool) -> Markup:
    """The plot for one kind of screen. The page contains both kinds, and the style sheet shows one of them."""
    svg = to_svg(styled(section.draw, narrow=narrow), salt)
    return Markup(svg.replace("<svg ", f'<svg class="{kind}" role="img" aria-label="{escape(section.title)}" ', 1))


def _table(rows: Sequence[Any]) -> Mapping[str, Any]:
    """The data of a plot as a table."""
    records = [dict(row) if isinstance(row, Mapping) else dataclasses.asdict(row) for row in rows]
    names = list(records[0])
    return {"names": names, "lines": [[_cell(name, record[name]) for name in names] for record in records]}


def _cell(name: str, value: object) -> tuple[bool, str]:
    """Whether the value is a number, and the value's text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False, " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    if name == "size":
        return True, size_text(value)
    return True, number_text(value) if isinstance(value, int) or abs(value) >= 1000 else f"{value:.4g}"
