# SPDX-License-Identifier: Apache-2.0
"""The site that `make docs` builds is complete and without dead links. Also tests its checkers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs_site import cpp, links, pages, pydocs

import wherry

ROOT = Path(__file__).parents[2]
INDEX = (ROOT / "docs" / "README.md").read_text()
pytestmark = pytest.mark.timeout(1800)  # the site takes 30 s of CPU time, and far longer on a busy machine


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "tools/docs_site/build.py", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1700, check=False)
    assert done.returncode == 0, done.stderr
    return out / "html"


def anchors(site: Path, page: str) -> set[str]:
    return links.Page((site / page).read_text()).anchors


def test_every_page_of_docs_and_every_public_name_is_there(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / "docs" / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file(), page
    assert "wherry kv up" in (site / "docs" / "reference" / "commands.html").read_text()
    for header in ("wherry.h", "route.h", "kv.h", "convey.h"):
        text = re.sub(r"//.*", "", (ROOT / "include" / "wherry" / header).read_text())
        names = set(re.findall(r"\b((?:wherry|convey)_\w+)\(", text))
        there = anchors(site, f"api/{cpp.page_name(header)}.html")
        assert len(names) > 10
        assert {f"c.{name}" for name in names} <= there, header
    python = set[str]().union(*(anchors(site, f"api/{page}.html") for page in pydocs.PAGES))
    for name in wherry.__all__:
        assert {f"wherry.{name}", f"wherry.errors.{name}"} & python or name == "errors", name


def test_the_navigation_has_every_folder_and_the_search_every_page(site: Path) -> None:
    first = (site / "index.html").read_text()
    for caption in ("start", "guide", "reference", "reference: C++", "reference: C", "reference: Python", "design"):
        assert f'<span class="caption-text">{caption}</span>' in first
    assert 'action="search.html"' in first
    found = (site / "searchindex.js").read_text()
    for page in ("docs/start/glossary", "docs/reference/commands", "api/api-move-hpp", "api/api-python-kv"):
        assert f'"{page}"' in found


def test_the_headers_list_is_that_of_the_folder() -> None:
    there = {file.name for file in (ROOT / "include" / "wherry").glob("*.h*")}
    assert {name for group in cpp.HEADERS.values() for name in group} | cpp.INSTALLED_ONLY == there


def test_the_navigation_is_that_of_the_index() -> None:
    assert set(pages.listed(INDEX)) == set(pages.FOLDERS)
    assert "design/overview.md" in pages.listed(INDEX)["design"]


def test_dead_links_and_lonely_pages_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="a.html#there">1</a><a href="a.html#gone">2</a><a href="gone.html">3</a><img src="gone.png">'
        '<a href="https://example.org/x">4</a><a href="http://localhost:80/">5</a><a href="https://nowhere">6</a>'
        '<a href="ftp://example.org">7</a><a href="../secret.html">8</a><a href="#here">9</a><p id="here">'
    )
    (tmp_path / "a.html").write_text('<h1 id="there"><a name="old"></a></h1><a href="index.html#here">back</a>')
    (tmp_path / "lonely.html").write_text('<a href="index.html">out</a>')
    assert {line.split(": ", 1)[1] for line in links.check(tmp_path)} == {
        "a.html#gone: no such anchor",
        "gone.html: no such file",
        "gone.png: no such file",
        "https://nowhere: not an address",
        "ftp://example.org: not an address",
        "../secret.html: outside of the site",
    }
    assert links.reachable(tmp_path) == {"index.html", "a.html"}


def headers_of(root: Path, change: dict[str, tuple[str, str]]) -> cpp.Headers:
    """A copy of the public headers, with the text replacements of `change`."""
    shutil.copytree(ROOT / "include", root / "include")
    (root / "tools" / "docs_site").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "docs_site" / "Doxyfile", root / "tools" / "docs_site")
    for name, (old, new) in change.items():
        file = root / "include" / "wherry" / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new, 1))
    cpp.read_headers(root, root / "out")
    headers = cpp.Headers(root, root / "out" / "xml")
    for group in cpp.HEADERS.values():
        for header in group:
            headers.page(header)
    return headers


def test_undescribed_names_and_functions_that_are_not_there_are_noticed(tmp_path: Path) -> None:
    found = headers_of(
        tmp_path,
        {
            "status.hpp": ("  /// As ok().\n", ""),
            "kv.hpp": ("  /// Reads the key.\n", ""),
            "move.hpp": ("Errors as post(), and", "Errors as posted(), and"),
            "wherry.h": ("/// The WHERRY_ABI_VERSION of the loaded library.\n", ""),
        },
    )
    assert [line.split(": ")[1] for line in found.undocumented] == [
        "wherry::Status::operator bool",
        "wherry_abi_version",
    ], "get() has the comment above its group"
    assert ["posted()" in line and "wherry::Stream::bind" in line for line in found.unknown] == [True]


def test_words_that_doxygen_cannot_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(cpp.Broken, match="directory"):
        headers_of(tmp_path, {"move.hpp": ("/// The options of one post", "/// <directory> The options of one post")})


def test_docstrings_become_fields_code_and_links() -> None:
    text = """Opens `Stream.offload`, or `x`.

    name: what it is called,
        in two lines.
    a, b: numbers with a *star and an end_

        code = [1]

    Raises: nothing; see docs/guide/move.md.""".splitlines()
    lines = pydocs.rst([line.removeprefix("    ") for line in text], ("name", "a", "b"))
    assert "\n".join(lines).strip().splitlines() == [
        "Opens :py:obj:`Stream.offload <wherry.Stream.offload>`, or ``x``.",
        "",
        "- ``name``: what it is called,",
        "  in two lines.",
        "- ``a``, ``b``: numbers with a \\*star and an end\\_",
        "",
        "::",
        "",
        "    code = [1]",
        "",
        "Raises: nothing; see :doc:`/docs/guide/move`.",
    ]
