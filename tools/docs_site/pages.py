# SPDX-License-Identifier: Apache-2.0
"""The site's sources: the unchanged pages of docs/, the reference pages, and the navigation from docs/README.md."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from docs_site import cpp, pydocs

FOLDERS = ("start", "guide", "reference", "design", "project")
REPOSITORY = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^()\s]+)\)")
ROW = re.compile(r"^\| \[[^\]]+\]\(([^)]+)\) \| .+ \|$", re.MULTILINE)


def listed(index: str) -> dict[str, list[str]]:
    """The pages that docs/README.md lists, by heading."""
    parts = re.split(r"^## (\w+)$", index, flags=re.MULTILINE)
    return {name: ROW.findall(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def write(root: Path, source: Path, xml: Path) -> list[str]:
    """Writes the sources into the folder `source`. Returns the faults of comments and docstrings."""
    shutil.rmtree(source, ignore_errors=True)
    (source / "api").mkdir(parents=True)
    shutil.copytree(root / "docs", source / "docs")
    for file in REPOSITORY[1:]:
        shutil.copy(root / file, source / file)
    for page in [*source.glob("docs/**/*.md"), *(source / name for name in REPOSITORY[1:])]:
        page.write_text(_links(page.read_text(), page.relative_to(source), root))

    headers = cpp.Headers(root, xml)
    for group in cpp.HEADERS.values():
        for header in group:
            (source / "api" / f"{cpp.page_name(header)}.rst").write_text(headers.page(header))
    python = pydocs.read(root)
    for name, text in python.pages.items():
        (source / "api" / f"{name}.rst").write_text(text)

    first = _links((root / "README.md").read_text(), Path("README.md"), root)
    (source / "index.md").write_text(first + _navigation((root / "docs" / "README.md").read_text()))
    undocumented = [f"{one} is not documented" for one in headers.undocumented]
    return [*undocumented, *headers.unknown, *python.faults]


def _navigation(index: str) -> str:
    groups = [("", ["docs/README.md"])]
    for name, pages in listed(index).items():
        groups.append((name, [f"docs/{page}" for page in pages]))
        if name == "reference":
            for language, headers in cpp.HEADERS.items():
                groups.append((f"reference: {language}", [f"api/{cpp.page_name(header)}" for header in headers]))
            groups.append(("reference: Python", [f"api/{page}" for page in pydocs.PAGES]))
    groups[-1][1].extend(REPOSITORY[1:])
    text = ""
    for name, pages in groups:
        caption = f":caption: {name}\n" if name else ""
        text += f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "".join(f"{page}\n" for page in pages) + "```\n"
    return text


def _links(text: str, page: Path, root: Path) -> str:
    """Replaces links to README, headers and files that are not pages by links to the site's pages, or by plain
    words."""
    up = "../" * (len(page.parts) - 1)

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        path = target.partition("#")[0]
        file = (root / page.parent / path).resolve()
        if "://" in target or target.startswith("#") or not file.exists():  # Sphinx reports missing files
            return match[0]
        if file == root / "README.md":
            return f"[{words}]({up}index.md)"
        if file.parent == root / "include" / "wherry" and any(file.name in group for group in cpp.HEADERS.values()):
            return f"[{words}]({up}api/{cpp.page_name(file.name)}.rst)"
        known = file.is_relative_to(root / "docs") or file.name in REPOSITORY
        return match[0] if known else f"{words} (`{file.relative_to(root)}`)"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)
