# SPDX-License-Identifier: Apache-2.0
"""docs/guide/security.md names tests for each of its lines. Each test exists in the file that the page names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from wherry.system import paths

TEST_FOLDERS = ("src", "sim", "bench", "apps", "python/tests")


def root() -> Path:
    found = paths.repository()
    assert found is not None
    return found


@cache
def files() -> dict[str, list[Path]]:
    """All test files by file name. Several folders may have files of the same name."""
    found: dict[str, list[Path]] = {}
    for folder in TEST_FOLDERS:
        for path in (root() / folder).rglob("*"):
            if path.name.endswith("_test.cpp") or re.fullmatch(r"test_.*\.py", path.name):
                found.setdefault(path.name, []).append(path)
    return found


@cache
def fuzz_targets() -> set[str]:
    lists = [*(root() / "src").rglob("CMakeLists.txt"), *(root() / "src").rglob("*.cmake")]
    return {name for path in lists for name in re.findall(r"wherry_fuzz\((\w+)", path.read_text())}


@cache
def names_in(name: str) -> set[str]:
    """The names of the tests in files called `name`."""
    found = set()
    for path in files()[name]:
        text = path.read_text()
        if name.endswith(".py"):
            found |= {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        else:
            found |= set(re.findall(r"^TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)", text, re.MULTILINE))
    return found


def rows(page: str) -> list[tuple[str, str]]:
    """(forbidden action, its tests) for each line of the page's tables."""
    found = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.startswith("|") and len(cells) == 3 and cells[0] != "cannot" and not set(cells[0]) <= set("-"):
            found.append((cells[0], cells[2]))
    return found


def missing(cell: str) -> list[str]:
    """Tests named in a cell that do not exist, and files in the cell without a named test."""
    wrong = []
    file = ""
    words = re.findall(r"`([^`]+)`", cell)
    for word, after in zip(words, [*words, ""][1:], strict=True):
        if re.search(r"\.(cpp|py)$", word) and (not after or re.search(r"\.(cpp|py)$|_fuzz$", after)):
            wrong.append(f"{word}: no test of it")
        if re.search(r"\.(cpp|py)$", word):
            file = word
            if word not in files():
                wrong.append(word)
        elif word.endswith("_fuzz"):
            if word not in fuzz_targets():
                wrong.append(word)
        elif file not in files() or word not in names_in(file):
            wrong.append(f"{file}: {word}")
    return wrong if words else ["no test at all"]


def test_every_line_names_tests_that_exist() -> None:
    lines = rows((root() / "docs" / "guide" / "security.md").read_text())
    assert len(lines) > 50
    wrong = {what: names for what, cell in lines if (names := missing(cell))}
    assert wrong == {}


def test_all_tables_are_read() -> None:
    page = (root() / "docs" / "guide" / "security.md").read_text()
    tables = page.count("| cannot | because | test |")
    assert tables == 5
    assert len(rows(page)) == sum(line.startswith("| ") for line in page.splitlines()) - tables


@pytest.mark.parametrize(
    "cell",
    [
        "nothing yet",
        "`no_such_test.cpp`: `Anything`",
        "`others_test.cpp`",
        "`others_test.cpp`; `test_sockets.py`: `test_an_application_over_tcp_listens_on_nothing`",
        "`others_test.cpp`: `NoSuchTest`",
        "`test_sockets.py`: `test_that_is_not_there`",
        "`no_such_fuzz`",
        "`ATestWithoutAFile`",
        "`others_test.cpp`: `AskedWithoutTheToken_ExpectRefusal`, `NoSuchTest`",
    ],
)
def test_what_is_not_there_is_found(cell: str) -> None:
    assert missing(cell) != []
