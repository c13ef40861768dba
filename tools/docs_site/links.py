# SPDX-License-Identifier: Apache-2.0
"""Finds dead links in a folder of HTML pages: missing files and anchors, and invalid addresses."""

from __future__ import annotations

import html.parser
import re
import urllib.parse
from pathlib import Path

HOST = re.compile(r"^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?$")
LOCAL = re.compile(r"^(localhost|127\.0\.0\.1)(:\d+)?$")


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects them."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.add(value)


def check(site: Path) -> list[str]:
    """All dead links, each with its page."""
    site = site.resolve()
    pages = {file: Page(file.read_text()) for file in sorted(site.rglob("*.html"))}
    dead = []
    for file, page in pages.items():
        for link in sorted(page.links):
            why = _dead(link, file, site, pages)
            if why:
                dead.append(f"{file.relative_to(site)}: {link}: {why}")
    return dead


def reachable(site: Path, first: str = "index.html") -> set[str]:
    """The pages that can be reached from page `first` by links."""
    site = site.resolve()
    seen: set[Path] = set()
    todo = [site / first]
    while todo:
        file = todo.pop()
        if file in seen or not file.is_file() or file.suffix != ".html":
            continue
        seen.add(file)
        for link in Page(file.read_text()).links:
            parts = urllib.parse.urlsplit(link)
            if not parts.scheme and parts.path:
                todo.append((file.parent / urllib.parse.unquote(parts.path)).resolve())
    return {str(file.relative_to(site)) for file in seen}


def _dead(link: str, file: Path, site: Path, pages: dict[Path, Page]) -> str:
    """Why a link is dead; empty if its target exists, or may exist."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme in ("data", "mailto"):
        return ""
    if parts.scheme or parts.netloc:
        good = parts.scheme in ("http", "https") and (HOST.match(parts.netloc.lower()) or LOCAL.match(parts.netloc))
        return "" if good else "not an address"
    target = (file.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else file
    if not target.is_relative_to(site):
        return "outside of the site"
    if not target.is_file():
        return "no such file"
    anchor = urllib.parse.unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "no such anchor"
    return ""
