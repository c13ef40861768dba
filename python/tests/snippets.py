# SPDX-License-Identifier: Apache-2.0
"""Fenced blocks of the documentation, and the notes above them that tell the test how to run each block.

A note directly above a block gives what the block lacks:

    <!-- snippet: not run: REASON -->       the test prints the reason
    <!-- snippet: in NAME -->               its surroundings: python/tests/surroundings/NAME.LANGUAGE.in
    <!-- snippet: replace `A` by `B` -->    what is run is smaller, or local; otherwise as it stands

Also finds the examples in the head comments of the public headers. The code around the example of NAME.hpp or NAME.h is
in python/tests/surroundings/header_NAME.cpp.in or header_NAME.c.in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

RUN = ("python", "cpp", "c", "sh", "json", "toml")
SHOWN = ("text",)
"""Blocks that only show text: drawings, and output of programs."""

HOW = (
    "Every block of README.md and docs/ is run. A line above the fence says what it needs; python/tests/snippets.py "
    "has the forms of such lines"
)


@dataclass
class Snippet:
    """One block."""

    file: Path
    line: int
    language: str
    text: str
    around: str = ""
    not_run: str = ""
    replacements: list[tuple[str, str]] = field(default_factory=list)

    @property
    def to_run(self) -> str:
        """The text with its replacements. Raises ValueError if a replacement does not occur in the text."""
        text = self.text
        for old, new in self.replacements:
            if old not in text:
                raise ValueError(f"{self}: there is no `{old}` to replace; mend the line above the block")
            text = text.replace(old, new)
        return text

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}"


_NOTE = re.compile(
    r"<!-- snippet: (?:not run: (?P<why>.+)|in (?P<around>\w+)|replace `(?P<old>.+)` by `(?P<new>.*)`) -->"
)


def _annotate(snippet: Snippet, notes: list[str]) -> None:
    for note in notes:
        match = _NOTE.fullmatch(note)
        if match is None:
            raise ValueError(f"{snippet}: {note!r} is not a note that the test knows. {HOW}")
        if match["why"]:
            snippet.not_run = match["why"]
        elif match["around"]:
            snippet.around = match["around"]
        else:
            snippet.replacements.append((match["old"], match["new"]))


def snippets(file: Path) -> list[Snippet]:
    """All blocks of a Markdown file. Raises ValueError if the note above a block is not valid."""
    found: list[Snippet] = []
    notes: list[str] = []
    inside: Snippet | None = None
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if inside is not None:
            if line.startswith("```"):
                found.append(inside)
                inside = None
            else:
                inside.text += line + "\n"
        elif line.startswith("```"):
            inside = Snippet(file, number, line[3:].strip(), "")
            _annotate(inside, notes)
            notes = []
        elif line.startswith("<!-- snippet:"):
            notes.append(line)
        else:
            notes = []
    return found


_EXAMPLE = re.compile(r"//   (.*)")
_OMITTED = re.compile(r"^( *)\.\.\.( *//.*)?$|(?<=; )\.\.\.(?= })")
"""Marks of omitted code in an example: a line `...`, or the rest of a branch, `{ puts(why.message); ... }`."""


def header_examples(file: Path) -> list[Snippet]:
    """The example in the head comment of a public header, if there is one: the first indented lines."""
    found: Snippet | None = None
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        example = _EXAMPLE.fullmatch(line)
        if example is None and (found is not None or not line.startswith("//")):
            break
        if example is None:
            continue
        if found is None:
            language = "cpp" if file.suffix == ".hpp" else "c"
            found = Snippet(file, number, language, "", around=f"header_{file.stem}")
        found.text += _OMITTED.sub("", example[1]) + "\n"
    return [found] if found else []
