#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a page of `wherry top` for the documentation, with an agent whose stream grows and a kv cluster in use.

tools/top_picture.py docs/pictures/top.svg
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

import wherry
from wherry.cli.top import Page, Pages
from wherry.kv import Client

COLUMNS = 118
ROWS = 200_000
INTERVAL_S = 2.0


def command(*arguments: str) -> None:
    """Runs a command of Wherry, which must succeed."""
    subprocess.run([sys.executable, "-m", "wherry", *arguments], check=True, stdout=subprocess.DEVNULL)


def keep_on(work: Callable[[], None]) -> threading.Event:
    """Repeats `work` in a thread until the returned event is set."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            work()

    threading.Thread(target=run, daemon=True).start()
    return ended


def measured(session_file: Path, cluster: Path) -> Page:
    """The second page, whose rates are measured over INTERVAL_S."""
    x, v = np.random.default_rng(1).random((2, ROWS))
    with wherry.Session(agent=session_file, name="melt") as session, Client.of(cluster) as client:
        stream = session.stream("particles", pa.schema({"x": pa.float64(), "v": pa.float64()}), keep_frames=8)
        step = [0]

        def post() -> None:
            stream.offload({"x": x, "v": v}, tag=step[0]).wait()
            step[0] += 1
            time.sleep(0.01)

        def put() -> None:
            client.put(step[0] % 1000, b"value")

        ends = [keep_on(post), keep_on(put)]
        pages = Pages(session_file, cluster)
        pages.next()
        time.sleep(INTERVAL_S)
        page = pages.next()
        for end in ends:
            end.set()
        time.sleep(0.2)
    return page


def picture(page: Page) -> str:
    """The page as an SVG without references to other files."""
    with open(os.devnull, "w") as nowhere:
        console = Console(file=nowhere, record=True, width=COLUMNS, force_terminal=True)
        for one in page.shown:
            if not isinstance(one, str):
                console.print()
            console.print(Text(one) if isinstance(one, str) else one)
        svg = console.export_svg(title="wherry top", theme=MONOKAI)
    # Removes two fonts of a server, so that readers' own fonts are used.
    svg = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def main() -> None:
    """Starts an agent and a cluster in a temporary directory, draws the page, and ends them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("svg", type=Path, help="where the picture goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lab-") as directory:
        session_file, cluster = Path(directory, "agent.json"), Path(directory, "cluster.toml")
        command("agent", "start", "--session-file", str(session_file))
        try:
            command("kv", "up", "--detach", "--dir", directory)
            try:
                options.svg.write_text(picture(measured(session_file, cluster)))
            finally:
                command("kv", "down", "--dir", directory)
        finally:
            command("agent", "stop", "--agent", str(session_file))


if __name__ == "__main__":
    main()
