# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/: all links work, the code mentions only existing pages, the index is complete, and generated pages
are current. README is short, and its plot can be reproduced."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *PAGES]
LINK = re.compile(r"\]\(([^()\s]+)\)")
FOLDERS = {"start", "guide", "reference", "design", "project"}
LONGEST_README = 70
"""Lines: about a screen and a half."""


def prose(page: Path) -> str:
    """The page without code blocks, whose brackets and parentheses are not links."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as GitHub creates them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for target in LINK.findall(prose(page)):
        if "://" in target or not re.search(r"[./#]", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title, two words\n\n[there](page.md#a-title-two-words) [gone](gone.md) [gone](page.md#gone)\n")
    with pytest.raises(AssertionError, match=r"gone\.md"):
        test_links_lead_somewhere(page)
    assert anchors(page) == {"a-title-two-words"}


def test_pages_that_the_code_names_exist() -> None:
    found = subprocess.run(
        ["git", "grep", "-noIE", r"docs/[a-z/-]+\.md", "--", ".", ":!docs"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    names = [line.rsplit(":", 1) for line in found if line]
    assert len(names) > 100
    assert [line for line in names if not (ROOT / line[1]).is_file()] == []


def test_the_index_has_a_line_for_each_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = re.findall(r"^\| \[[^\]]+\]\(([^)]+)\) \| .+ \|$", index, flags=re.M)
    there = [str(page.relative_to(ROOT / "docs")) for page in PAGES if page.name != "README.md"]
    assert sorted(listed) == sorted(there)
    assert {name.partition("/")[0] for name in there} - {"status.md"} == FOLDERS


def test_every_page_links_to_another_or_is_generated() -> None:
    lonely = [page.name for page in PAGES if not LINK.search(prose(page)) and "enerated" not in page.read_text()]
    assert lonely == []


def test_the_command_reference_is_current() -> None:
    command = [sys.executable, "tools/commands_page.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_readme_fits_a_screen_and_a_half() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README


def test_the_plot_of_readme_shows_what_the_json_says(tmp_path: Path) -> None:
    rows = [
        {"size": 65536, "move_gbps": 61.0, "flight_gbps": 3.0, "move_cpu_us": 0.25, "flight_cpu_us": 97.0},
        {"size": 1 << 20, "move_gbps": 89.0, "flight_gbps": 11.0, "move_cpu_us": 0.5, "flight_cpu_us": 731.0},
    ]
    bench = tmp_path / "bench.json"
    bench.write_text(json.dumps({"machine": {"cpu": "Some CPU", "cores": 2}, "results": {"flight": rows}}))
    picture = tmp_path / "plot.svg"
    subprocess.run([sys.executable, "tools/readme_plot.py", bench, picture], cwd=ROOT, timeout=300, check=True)
    shown = set(re.findall(r">([^<>\n]+)</text>", picture.read_text()))
    assert {"61", "3", "0.25", "97", "89", "11", "0.5", "731", "64 KiB", "1 MiB"} <= shown
    assert any("Some CPU" in text for text in shown)


def test_sentences_are_drawn_by_the_seed() -> None:
    def drawn(seed: int) -> str:
        command = [sys.executable, "tools/draw_sentences.py", "--only", "docs", "--seed", str(seed)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout

    first = drawn(1)
    assert len(re.findall(r"^ *\d+\. \S+\.md:\d+$", first, flags=re.M)) == 60
    assert first == drawn(1)
    assert first != drawn(2)


@pytest.mark.agent
@pytest.mark.timeout(300)
def test_the_picture_of_top_is_drawn_by_its_tool(tmp_path: Path) -> None:
    picture = tmp_path / "top.svg"
    subprocess.run([sys.executable, "tools/top_picture.py", picture], cwd=ROOT, timeout=280, check=True)
    drawn = picture.read_text()
    for words in ("particles", "melt", "serving"):
        assert words in drawn
    # The plot does not load fonts or anything else from a server.
    assert set(re.findall(r"https?://[^\s\"\')]+", drawn)) == {"http://www.w3.org/2000/svg"}
