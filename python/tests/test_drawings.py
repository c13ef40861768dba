# SPDX-License-Identifier: Apache-2.0
"""The drawings and photographs in docs/pictures are current and small, and show the times of the code."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import drawings
import pytest
import report_picture
from PIL import Image

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.parametrize("name", ["whole.svg", "placements.svg", "leader-death.svg"])
def test_the_drawing_is_that_of_its_tool(name: str) -> None:
    assert (PICTURES / name).read_text() == drawings.pictures()[name]
    ElementTree.parse(PICTURES / name)


def words() -> list[str]:
    found = re.findall(r">([^<>\n]+)</text>", (PICTURES / "leader-death.svg").read_text())
    return [html.unescape(word) for word in found]


def test_the_leaders_death_has_the_times_of_the_guide() -> None:
    """test_kv_defaults.py checks docs/guide/kv.md against the code."""
    guide = (ROOT / "docs" / "guide" / "kv.md").read_text()
    ping, misses, lease = (
        int(re.findall(rf"^{name} = (\d+)", guide, flags=re.M)[0]) for name in ("ping_ms", "misses", "lease_ms")
    )
    assert f"A's lease as the keeper counts it: {lease} ms" in words()
    assert f"A's lease as A counts it: {lease * 5 // 6} ms, if it still runs" in words()
    dies = guide.partition("## When a node dies\n")[2].partition("\n## ")[0]
    seconds = float(re.findall(r"\b(\d\.\d+) s\b", dies)[0])
    assert seconds * 1000 == (misses + 1) * ping > lease
    axis = [int(word) for word in words() if word.isdecimal()]
    assert axis == sorted({0, lease * 5 // 6, lease, *(n * ping for n in range(misses + 2))})
    assert f"{misses} missed" in words()
    assert f"{misses + 1} missed" not in words()


def test_retries_are_those_of_the_life_of_a_request() -> None:
    """The page names the timeouts of a request: 2 ms, then 4, 8, up to 100."""
    text = (ROOT / "docs" / "design" / "life-of-a-request.md").read_text()
    first, second, third, cap = map(
        int, re.findall(r"arms a timer\D+(\d+) ms, then (\d+), (\d+), up to (\d+)", text)[0]
    )
    times = drawings.times().retries(0, 1000)
    gaps = [b - a for a, b in zip([0, *times], times, strict=False)]
    assert gaps[:3] == [first, second, third]
    assert max(gaps) == gaps[-1] == cap


def test_drawings_have_a_ground_of_their_own() -> None:
    """Without a white background their dark text could not be read on a dark page."""
    for name in drawings.pictures():
        ground = re.findall(
            r'<rect width="(\d+)" height="(\d+)" rx="6" fill="#ffffff"/>', (PICTURES / name).read_text()
        )
        size = re.findall(r'viewBox="0 0 (\d+) (\d+)"', (PICTURES / name).read_text())
        assert ground == size[:1]


@pytest.mark.parametrize("name", report_picture.SIZES)
def test_the_photographs_are_small_and_of_the_right_size(name: str) -> None:
    width, height, scale = report_picture.SIZES[name]
    with Image.open(PICTURES / name) as image:
        assert image.size == (width * scale, height * scale)
    assert (PICTURES / name).stat().st_size < 200_000


@pytest.mark.may_lack
@pytest.mark.skipif(report_picture.chromium() is None, reason="no Chromium here: no browser shows the report")
@pytest.mark.timeout(900)
def test_a_browser_shows_the_report_on_desktop_and_phone(move: dict[str, Any], tmp_path: Path) -> None:
    move["results"] = {"mapped": move["results"]["mapped"]}
    move["quick"] = True
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(move))
    command = [sys.executable, "tools/report_picture.py", str(file), "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=880)
    for name, (width, height, scale) in report_picture.SIZES.items():
        with Image.open(tmp_path / name) as image:
            assert image.size == (width * scale, height * scale)
            colours = image.convert("RGB").getcolors(1 << 20)
            assert colours is not None
            assert len(colours) > 20, "it shows text and colours, not an empty page"


def test_without_a_chromium_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["report_picture.py", "x.json", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="chromium-headless-shell"):
        report_picture.main()
