# SPDX-License-Identifier: Apache-2.0
"""The page of `wherry report`: the JSON of benchmarks and jobs as one HTML file that needs no other one.

Every figure and table of the papers that Wherry reproduces gets a plot, with the published values beside ours, and its
data as a table. Absolute figures belong to the machine that the page names; the claims are the bars, which are ratios
within one run.
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
from wherry.units import size_text

_HERE = Path(__file__).resolve().parent


def build(files: Sequence[str | os.PathLike[str]]) -> str:
    """The page for these files, each of a benchmark (`"name"`: `"move"`, `"route"`, `"kv"`) or of the main job.

    Raises BenchError, which names the file and what is wrong with it.
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
    )


def write(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Path:
    """Writes the page of build() to `out`, complete or not at all. Raises BenchError, OSError."""
    page = build(files)
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        partial.write_text(page, encoding="utf-8")
    return target


def _chapter(path: str | os.PathLike[str], prefix: str) -> Mapping[str, Any]:
    """What the template knows of a chapter. `prefix`: of its anchors, which no other chapter has."""
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
    svg = to_svg(styled(section.draw), anchor)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(section.title)}" ', 1)
    return {
        "section": section,
        "anchor": anchor,
        "svg": Markup(svg),
        "paper": section.paper,
        "table": _table(section.rows),
    }


def _table(rows: Sequence[Any]) -> Mapping[str, Any]:
    """The numbers behind a plot."""
    records = [dict(row) if isinstance(row, Mapping) else dataclasses.asdict(row) for row in rows]
    names = list(records[0])
    return {"names": names, "lines": [[_cell(name, record[name]) for name in names] for record in records]}


def _cell(name: str, value: object) -> tuple[bool, str]:
    """Whether it is a number, and its text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False, " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    if name == "size":
        return True, size_text(value)
    return True, f"{value:.4g}" if isinstance(value, float) else str(value)
