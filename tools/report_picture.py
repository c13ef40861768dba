#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes pictures of the page of `wherry report` for the documentation, as a desktop and a phone show it.

Only this program needs Chromium (Debian's chromium or chromium-headless-shell). Its pictures are in docs/pictures. If
Chromium is installed, a test makes other pictures from invented figures. The JSON may come from a quick run, which the
page then states.

wherry bench move --quick --json build/bench-move.json
tools/report_picture.py build/bench-move.json --out docs/pictures
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

CHROMIUM = ("chromium", "chromium-headless-shell")
SIZES = {"report-desktop.png": (1280, 1400, 1), "report-phone.png": (390, 844, 2)}
"""For each file: width and height of the window in CSS pixels, and device pixels per CSS pixel."""
COLOURS = 128
LARGEST = 200_000
"""Bytes of a picture."""


def chromium() -> str | None:
    """The path of Chromium, or None."""
    return next((found for name in CHROMIUM if (found := shutil.which(name))), None)


def photographed(program: str, page: Path, width: int, height: int, scale: int) -> Image.Image:
    """A picture of the top of the page. Chromium's windows have at least 500 pixels, so a frame shows a narrower
    page."""
    with tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as directory:
        shown = page
        if width < 500:
            shown = Path(directory, "frame.html")
            style = f"border:0;width:{width}px;height:{height}px"
            shown.write_text(
                "<!doctype html><meta charset=utf-8><body style='margin:0'>"
                f'<iframe src="{page.as_uri()}" style="{style}"></iframe>'
            )
        picture = Path(directory, "picture.png")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        flags += [f"--user-data-dir={directory}/profile", f"--force-device-scale-factor={scale}"]
        flags += [f"--window-size={max(width, 500)},{height}", f"--screenshot={picture}", "--virtual-time-budget=4000"]
        subprocess.run([program, *flags, shown.as_uri()], check=True, capture_output=True, timeout=400)
        with Image.open(picture) as image:
            return image.convert("RGB").crop((0, 0, width * scale, height * scale))


def small(image: Image.Image) -> bytes:
    """The picture as PNG with a palette, which is enough for text and plots."""
    out = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(out, format="PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    """Writes the page and takes both pictures of it."""
    from wherry.report import write

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path, nargs="+", help="what `wherry bench` wrote")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the pictures")
    options = parser.parse_args()
    program = chromium()
    if program is None:
        sys.exit(f"report_picture: none of {', '.join(CHROMIUM)} is on the PATH: install one of these Debian packages")
    with tempfile.TemporaryDirectory(prefix="lab-") as directory:
        page = Path(directory, "report.html")
        write(options.json, page)
        for name, (width, height, scale) in SIZES.items():
            png = small(photographed(program, page, width, height, scale))
            if len(png) > LARGEST:
                sys.exit(f"report_picture: {name} would have {len(png)} bytes, more than {LARGEST}")
            (options.out / name).write_bytes(png)


if __name__ == "__main__":
    main()
