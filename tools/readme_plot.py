#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws README's plot from a benchmark of move: throughput and host time of move and Arrow Flight.

wherry bench move --json build/bench-move.json
tools/readme_plot.py build/bench-move.json docs/pictures/move-vs-flight.svg
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

MOVE, FLIGHT = "#2f7fc1", "#e0812f"


def draw(rows: list[dict[str, Any]], machine: str, to: Path) -> None:
    """Draws two panels of bars, by the size of a batch. `rows` is `results.flight` in docs/reference/bench-json.md."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from wherry.units import size_text

    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "readme", "font.family": "sans-serif", "font.size": 9.5}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(7.4, 2.7), layout="constrained", facecolor="white")
        panels = figure.subplots(1, 2)
        kinds = (
            ("throughput [Gbit/s], more is better", "gbps"),
            ("host time per batch [µs], less is better", "cpu_us"),
        )
        for axes, (title, what) in zip(panels, kinds, strict=True):
            for shift, name, colour in ((-0.2, "move", MOVE), (0.2, "flight", FLIGHT)):
                values = [row[f"{name}_{what}"] for row in rows]
                label = {"move": "Wherry move", "flight": "Arrow Flight DoPut"}[name]
                bars = axes.bar([i + shift for i in range(len(rows))], values, 0.38, color=colour, label=label)
                texts = [f"{value:.2g}" if value < 10 else f"{value:,.0f}" for value in values]
                axes.bar_label(bars, texts, fontsize=7.5, padding=1)
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * 2.5)
            axes.set_title(title, fontsize=9.5)
            axes.set_xticks(range(len(rows)), [size_text(row["size"]) for row in rows])
            axes.spines[["top", "right"]].set_visible(False)
        panels[1].legend(frameon=False, fontsize=8.5, loc="upper left")
        figure.supxlabel(f"bytes of a batch of one column; {machine}, shared memory against loopback", fontsize=8.5)
        to.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(to, format="svg", metadata={"Date": None})


def main(arguments: list[str]) -> int:
    """Draws one plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path, help="what `wherry bench move` wrote")
    parser.add_argument("svg", type=Path, help="the picture")
    options = parser.parse_args(arguments)
    bench = json.loads(options.json.read_text())
    draw(bench["results"]["flight"], f"{bench['machine']['cores']} cores of {bench['machine']['cpu']}", options.svg)
    print(f"wrote {options.svg}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
