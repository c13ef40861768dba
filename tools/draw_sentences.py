#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws random sentences from README, docs and comments. A reader judges which of them must be read twice.

  tools/draw_sentences.py --seed 1             60 sentences, each with its file and line
  tools/draw_sentences.py --seed 1 --only docs
  tools/draw_sentences.py --count-all          how many sentences there are, by folder

The same seed and the same files give the same sentences. Code blocks, tables, headings, generated files, and sentences
with fewer than five words are not drawn. The last sentence of a comment need not end with a full stop.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import subprocess
import sys
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
GENERATED = re.compile(
    r"/generated/|docs/reference/(kv-frame|kv-registers|bypass-registers|bypass-functions-registers|dma-registers|"
    r"nic-personalities|resources|fidelity|commands)\.md$"
)
SLASHES = {".c", ".cpp", ".h", ".hpp", ".sv", ".svh", ".go"}
NOT_WORDS = re.compile(
    r"SPDX-License|clang-format (on|off)|^NOLINT|^noqa|^type: |^fmt: |^ruff:|^verilog_|^verilator|^shellcheck|^!"
)
BOUNDARY = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!\be\.)[\"')*`]*\s+(?=[\"'(*`\[]*[A-Z0-9`])")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
FEWEST_WORDS = 5


class Text(NamedTuple):
    """Running text, its file, and the line on which it begins."""

    file: str
    line: int
    text: str


def paragraphs_of_markdown(file: str, text: str) -> Iterator[Text]:
    """The paragraphs and list items of a Markdown file."""
    fenced = False
    begin, lines = 0, list[str]()
    for number, line in enumerate([*text.split("\n"), ""], 1):
        fence = line.lstrip().startswith("```")
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        apart = fenced or fence or not line.strip() or line.startswith(("#", "|", "<!--", "    "))
        if (apart or item) and lines:
            yield Text(file, begin, " ".join(lines))
            lines = []
        if not apart:
            begin = begin if lines else number
            lines.append(re.sub(r"^\s*([-*]|\d+\.) ", "", line).strip())
        fenced ^= fence


def comments_with_slashes(file: str, text: str) -> Iterator[Text]:
    """Texts of adjacent lines of // and ///, and of blocks of /* */ that begin a line."""
    begin, lines = 0, list[str]()
    block = False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        found = re.match(r"\s*///?<?(?: (.*)|)$", line)
        words: str | None = found[1] or "" if found else None
        if block or re.match(r"\s*/\*", line):
            block = "*/" not in line
            words = re.sub(r"^\s*(/\*+|\*/?)|\*/.*$", "", line).strip()
        if words is not None and words.strip() and not NOT_WORDS.search(words) and not re.match(r"  +|- ", words):
            begin = begin if lines else number
            lines.append(words.strip())
            continue
        if lines:
            yield Text(file, begin, " ".join(lines))
            lines = []
        if words is not None and re.match(r"- ", words):
            begin, lines = number, [words[2:]]


def comments_with_hashes(file: str, text: str) -> Iterator[Text]:
    """Texts of adjacent comment lines in Python, found by Python's tokenizer."""
    begin, last, lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or NOT_WORDS.search(token.string.lstrip("# ")):
            continue
        alone = not token.line[: token.start[1]].strip()
        if lines and not (alone and token.start[0] == last + 1):
            yield Text(file, begin, " ".join(lines))
            lines = []
        begin = begin if lines else token.start[0]
        lines.append(token.string.lstrip("#").strip())
        last = token.start[0]
    if lines:
        yield Text(file, begin, " ".join(lines))


def docstrings(file: str, text: str) -> Iterator[Text]:
    """The paragraphs of every string that is a statement: docstrings, and descriptions below attributes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            line = node.lineno
            for paragraph in node.value.value.split("\n\n"):
                kept = [one for one in paragraph.split("\n") if not re.match(r"  .*\S  +\S", one)]
                yield Text(file, line, " ".join(" ".join(kept).split()))
                line += paragraph.count("\n") + 2


def texts(only: str | None) -> Iterator[Text]:
    """All running text in files that git tracks."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for file in listed.stdout.split("\n"):
        path = ROOT / file
        if not file or GENERATED.search(file) or not path.is_file():
            continue
        if path.suffix == ".md" and only != "comments":
            yield from paragraphs_of_markdown(file, path.read_text())
        elif path.suffix in SLASHES and only != "docs":
            yield from comments_with_slashes(file, path.read_text())
        elif path.suffix == ".py" and only != "docs":
            yield from comments_with_hashes(file, path.read_text())
            yield from docstrings(file, path.read_text())


def sentences(only: str | None = None) -> list[Text]:
    """Every sentence, in a fixed order."""
    found = []
    for one in texts(only):
        for sentence in BOUNDARY.split(one.text):
            if len(WORD.findall(sentence)) >= FEWEST_WORDS:
                found.append(one._replace(text=sentence.strip()))
    return sorted(found)


def main(arguments: list[str]) -> int:
    """Prints the sentences that were drawn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="which sentences; the same seed draws the same ones")
    parser.add_argument("--sentences", type=int, default=60, help="how many (default: 60)")
    parser.add_argument("--only", choices=("docs", "comments"), help="draw from one of the two")
    parser.add_argument("--below", default="", help="draw from files below this folder only")
    parser.add_argument("--count-all", action="store_true", help="print the number of sentences by folder, and end")
    options = parser.parse_args(arguments)
    found = [one for one in sentences(options.only) if one.file.startswith(options.below)]
    if options.count_all:
        counts = Counter("/".join(Path(one.file).parts[:2]) for one in found)
        for folder, count in counts.most_common():
            print(f"{count:6} {folder}")
        print(f"{len(found):6} in all")
        return 0
    drawn = random.Random(options.seed).sample(found, min(options.sentences, len(found)))
    for number, one in enumerate(drawn, 1):
        print(f"{number:3}. {one.file}:{one.line}")
        print(textwrap.indent(textwrap.fill(one.text, 110), "     "))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
