# SPDX-License-Identifier: Apache-2.0
"""Help texts: the terminal shows the same text as the source."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

import click
import pytest
import typer.main
import typer.testing

from wherry import cli
from wherry.system import paths

SOURCES = [
    path.relative_to(paths.PACKAGE)
    for path in sorted(paths.PACKAGE.rglob("*.py"))
    if "cli" in path.relative_to(paths.PACKAGE).with_suffix("").parts
]


def commands() -> Iterator[list[str]]:
    """Every command and group, as the words that follow `wherry`."""

    def below(command: object, words: list[str]) -> Iterator[list[str]]:
        yield words
        for name, child in getattr(command, "commands", {}).items():
            yield from below(child, [*words, name])

    return below(typer.main.get_command(cli.app), [])


def shown(words: list[str], columns: int) -> str:
    result = typer.testing.CliRunner(env={"COLUMNS": str(columns), "TERMINAL_WIDTH": str(columns)}).invoke(
        cli.app, [*words, "--help"], prog_name="wherry"
    )
    assert result.exit_code == 0, result.output
    return click.unstyle(result.output)


def words_of(text: str) -> str:
    """The words of `text`, without the layout's frames, indentation and line breaks."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def source_texts() -> list[tuple[str, str]]:
    """(where, text) of every command's docstring and of every help=... in the command line's sources."""
    found = []
    for name in SOURCES:
        tree = ast.parse((paths.PACKAGE / name).read_text())
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in functions.values():
            public = not node.name.startswith("_") and "Examples:" in (ast.get_docstring(node) or "")
            if public:
                found += [(f"{name}: {node.name}", part) for part in (ast.get_docstring(node) or "").split("\n\n")]
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                if keyword.arg == "help" and isinstance(keyword.value, ast.Constant):
                    markup = str(keyword.value.value).replace("[bold]", "").replace("[/bold]", "")
                    found += [(f"{name}, line {call.lineno}", part) for part in markup.split("\n\n")]
    return found


def test_help_shows_what_the_source_says() -> None:
    everything = words_of(" ".join(shown(words, 4000) for words in commands()))
    texts = source_texts()
    assert len(texts) > 150
    lost = [f"{where}: {text}" for where, text in texts if words_of(text) not in everything]
    assert lost == []


@pytest.mark.parametrize("words", list(commands()), ids=lambda words: " ".join(words) or "wherry")
def test_paragraphs_fill_the_width(words: list[str]) -> None:
    """A line may end only where the next word does not fit."""
    lines = [line.strip() for line in shown(words, 100).split("╭─")[0].splitlines()]
    for line, following in itertools.pairwise(lines):
        if line and following and not line.startswith("wherry ") and not line.startswith("Usage:"):
            assert len(line) + 1 + len(following.split()[0]) > 96, f"{line!r} was broken before {following!r}"


def test_flags_name_no_value_and_usage_has_arguments_as_they_are_written() -> None:
    everything = {" ".join(words): shown(words, 200) for words in commands()}
    assert [name for name, text in everything.items() if "<bool>" in text] == []
    assert "Usage: wherry run [OPTIONS] -- PROGRAM [ARGS]...\n" in re.sub(" +\n", "\n", everything["run"])
    assert "Usage: wherry kv exec [OPTIONS] COMMAND...\n" in re.sub(" +\n", "\n", everything["kv exec"])
    assert [name for name, text in everything.items() if re.search(r"Usage: [^\n]*[{}]", text)] == []
