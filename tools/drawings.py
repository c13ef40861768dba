#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/design/overview.md: the whole system, the placements of route, and a leader's death.

The times of the leader's death come from the code: the defaults of a cluster file, the margin of the lease, and the
retries of a client.

tools/drawings.py [--out docs/pictures]
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

INK, SOFT, LINE = "#1c2733", "#51606e", "#9aa7b3"
HOST, AGENT, WARN, GOOD = "#dbe9f6", "#fbe6cf", "#b3261e", "#1f7a3d"


class Drawing:
    """An SVG with its own light background, so that it looks the same on light and dark pages."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" font-family="Helvetica, Arial, sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        ]
        for name, colour in (("ink", INK), ("good", GOOD)):
            size = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            head = f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/>'
            self.parts.append(f'<marker id="{name}" {size} orient="auto">{head}</marker>')

    def text(self, x: float, y: float, words: str, **how: str | float) -> None:
        """Adds a line of text with its baseline at y."""
        colour = how.pop("fill", INK)
        self.parts.append(f'<text x="{x:g}" y="{y:g}" fill="{colour}"{_attributes(how)}>{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, height: float, fill: str, **how: str | float) -> None:
        """A rectangle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}"'
            f' stroke="{how.pop("stroke", LINE)}"{_attributes(how)}/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, **how: str | float) -> None:
        """A straight line."""
        colour = how.pop("stroke", LINE)
        self.parts.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{colour}"{_attributes(how)}/>'
        )

    def arrow(self, x: float, y: float, to_x: float, to_y: float, kind: str = "ink", **how: str | float) -> None:
        """Adds an arrow with the colour "ink" or "good"."""
        colour = {"ink": INK, "good": GOOD}[kind]
        self.line(x, y, to_x, to_y, stroke=colour, stroke_width=1.4, marker_end=f"url(#{kind})", **how)

    def svg(self) -> str:
        """All of it."""
        return "\n".join([*self.parts, "</svg>", ""])


def _attributes(how: dict[str, str | float]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in how.items())


# ---- the whole


def whole() -> str:
    """Draws the parts of Wherry and where they run."""
    d = Drawing(940, 392, "Wherry: an application on the host, an agent beside it, and the five parts")
    d.box(16, 44, 400, 210, HOST)
    d.box(536, 44, 388, 210, AGENT)
    d.text(30, 32, "Host", font_weight="bold")
    d.text(550, 32, "DPU, card, or a spare core of the host", font_weight="bold")
    d.text(30, 66, "application (C++, C, Python)", fill=SOFT)
    d.text(550, 66, "agent: wherryd", fill=SOFT)
    rows = (
        (
            "move",
            "stream.offload(columns)",
            "addresses",
            "reads the memory, lays out Arrow",
            "Flight, shared memory, files",
        ),
        ("route", "runtime.send(rank, message)", "messages", "gathers and routes messages", "ranks of other nodes"),
        ("kv", "client.put(key, value)", "UDP", "a kv node: stores, replicates", "other kv nodes"),
    )
    for number, (name, call, what, does, further) in enumerate(rows):
        y = 84 + 56 * number
        d.box(30, y, 372, 44, "#ffffff")
        d.text(42, y + 27, name, font_weight="bold")
        d.text(92, y + 27, call, font_family="monospace")
        d.box(550, y, 360, 44, "#ffffff")
        d.text(562, y + 19, does)
        d.text(562, y + 36, f"→ {further}", fill=SOFT)
        d.arrow(402, y + 22, 548, y + 22)
        d.text(475, y + 15, what, fill=SOFT, text_anchor="middle", font_size=12)
    d.box(16, 280, 400, 92, HOST)
    d.text(30, 302, "probe", font_weight="bold")
    d.text(30, 324, "measures the paths between memories of host, card")
    d.text(30, 342, "and GPU, and writes a profile")
    d.arrow(416, 326, 534, 326)
    d.text(475, 319, "settings", fill=SOFT, text_anchor="middle", font_size=12)
    d.text(475, 344, "of move, route", fill=SOFT, text_anchor="middle", font_size=12)
    d.box(536, 280, 388, 92, AGENT)
    d.text(550, 302, "bypass", font_weight="bold")
    d.text(550, 324, "an FPGA drives an ordinary NIC over PCIe, and answers")
    d.text(550, 342, "frames while the host is stopped")
    return d.svg()


# ---- placements


def placements() -> str:
    """Draws which processor routes messages in each placement."""
    d = Drawing(940, 236, "The four placements of route: inline, shared, host, dpu")
    d.text(20, 28, "Which processor routes the messages of a rank", font_weight="bold")
    columns = (
        ("inline", (("core 0", HOST, "rank, which routes"),), "no agent; no core more"),
        ("shared", (("core 0", HOST, "rank and agent take turns"),), "one core for both"),
        ("host", (("core 0", HOST, "rank"), ("core 1", AGENT, "agent")), "a second core of the host"),
        ("dpu", (("core 0", HOST, "rank"), ("NIC core", AGENT, "agent")), "not tried: no such hardware"),
    )
    for number, (name, cores, cost) in enumerate(columns):
        x = 20 + 230 * number
        d.text(x, 62, name, font_weight="bold", font_size=15)
        width = 210 if len(cores) == 1 else 96
        for place, (core, fill, who) in enumerate(cores):
            left = x + place * 114
            d.box(left, 76, width, 90, fill)
            d.text(left + 10, 98, core, fill=SOFT, font_size=12)
            d.text(left + 10, 130, who)
        if len(cores) == 2:
            d.arrow(x + 80, 126, x + 112, 126)
        d.text(x, 190, cost, fill=SOFT)
    d.text(20, 222, "wherry advise measures a program and says which placement pays.", fill=SOFT)
    return d.svg()


# ---- a leader's death


@dataclass(frozen=True)
class Times:
    """Times in milliseconds, read from the code."""

    ping: float
    misses: int
    lease: float
    margin: int
    """The node ends its own lease earlier, by lease / margin."""
    first_timeout: float
    timeout_factor: int
    timeout_cap: float

    @property
    def own_lease(self) -> float:
        """How long the leader treats its own lease as valid."""
        return self.lease - self.lease / self.margin

    @property
    def removal(self) -> float:
        """Time from the leader's last answer to its removal. The first missed ping follows one interval after that
        answer."""
        return max((self.misses + 1) * self.ping, self.lease)

    def retries(self, start: float, until: float) -> list[float]:
        """When a client repeats a request that it sent at `start`, without the random part of up to a quarter."""
        found, step, at = [], self.first_timeout, start
        while at < until:
            at += step
            step = min(step * self.timeout_factor, self.timeout_cap)
            found.append(at)
        return found


def times() -> Times:
    """Read from the sources."""
    cluster = (ROOT / "src/kv/control/cluster_file.hpp").read_text()
    client = (ROOT / "include/wherry/kv.hpp").read_text()
    margins = [_numbers(file.read_text(), r"kLeaseMargin = (\d+)") for file in (ROOT / "src/kv").rglob("*.hpp")]
    (margin,) = [found[0] for found in margins if found]
    return Times(
        ping=_numbers(cluster, r"ping_ms = (\d+);")[0],
        misses=_numbers(cluster, r"misses = (\d+);")[0],
        lease=_numbers(cluster, r"lease_ms = (\d+);")[0],
        margin=margin,
        first_timeout=_numbers(client, r"first_timeout = std::chrono::milliseconds\((\d+)\)")[0],
        timeout_factor=_numbers(client, r"timeout_factor = (\d+);")[0],
        timeout_cap=_numbers(client, r"timeout_cap = std::chrono::milliseconds\((\d+)\)")[0],
    )


def _numbers(text: str, pattern: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, text)]


def death(t: Times) -> str:
    """Draws the time from left to right; it begins at the leader's last answer to the keeper."""
    d = Drawing(980, 466, "The death of a kv leader, with the default times")
    left, last = 110.0, t.removal + 190

    def x(at: float) -> float:
        return left + (at + 70) * (960 - left) / (last + 70)

    keeper, leader, follower, client, axis = 106, 196, 296, 380, 438
    d.text(20, 28, "A leader dies: what happens when", font_weight="bold", font_size=15)
    d.text(
        20,
        46,
        "Milliseconds from the leader's last word to the keeper; default times. Messages take no time.",
        fill=SOFT,
    )
    for name, y in (("keeper", keeper), ("leader A", leader), ("follower B", follower), ("client", client)):
        d.text(20, y + 5, name, font_weight="bold")
        end = x(33) if y == leader else 960
        d.line(left, y, end, y, stroke_width=1.5)

    # keeper: its pings, and its view of the lease
    d.box(x(0), keeper - 31, x(t.lease) - x(0), 16, AGENT)
    d.text(x(0) + 8, keeper - 19, f"A's lease as the keeper counts it: {t.lease:g} ms", font_size=12)
    for number in range(t.misses + 2):
        at = number * t.ping
        d.line(x(at), keeper - 5, x(at), keeper + 5, stroke=INK, stroke_width=2)
        words = ("ping: answered", "ping", *(f"{n} missed" for n in range(1, t.misses + 1)))[number]
        colour, anchor = (SOFT, "middle") if number < 2 else (WARN, "end" if at == t.removal else "middle")
        d.text(x(at) - (6 if anchor == "end" else 0), keeper + 21, words, fill=colour, font_size=12, text_anchor=anchor)

    # leader: its lease, its last writes, its end
    d.box(x(0), leader - 31, x(t.own_lease) - x(0), 16, HOST)
    d.text(x(0) + 8, leader - 19, f"A's lease as A counts it: {t.own_lease:g} ms, if it still runs", font_size=12)
    d.text(x(33), leader + 7, "✕", fill=WARN, font_size=20, text_anchor="middle")
    d.text(x(33) + 14, leader + 5, "A dies; no other process knows yet", fill=WARN)

    # client: an acknowledged write, and one without an acknowledgement
    d.arrow(x(-55), client, x(-52), leader + 2)
    d.arrow(x(-48), leader, x(-45), follower - 2)
    d.arrow(x(-38), follower, x(-35), leader + 2)
    d.arrow(x(-28), leader, x(-25), client - 2, "good")
    d.text(x(-64), client + 20, "write 40: ok", fill=GOOD, font_size=12)
    d.arrow(x(18), client, x(21), leader + 2)
    d.arrow(x(27), leader, x(30), follower - 2)
    d.text(x(30) + 6, follower + 19, "write 41 arrives here; its answer finds no leader", fill=SOFT, font_size=12)
    retries = t.retries(18, t.removal)
    for at in retries[:-1]:
        d.line(x(at), client - 6, x(at), client + 6, stroke=WARN, stroke_width=1.5)
    d.text(x(18), client + 20, "write 41, sent again and again: A does not answer", fill=WARN, font_size=12)

    # the new epoch
    d.line(x(t.removal), 58, x(t.removal), axis - 8, stroke=GOOD, stroke_width=1.2, stroke_dasharray="4 3")
    d.text(x(t.removal) + 8, keeper - 19, "A is removed: epoch + 1", fill=GOOD)
    d.arrow(x(t.removal), keeper, x(t.removal) + 3, follower - 2, "good")
    d.text(x(t.removal) + 12, follower - 30, "B leads. With the other followers", fill=GOOD)
    d.text(x(t.removal) + 12, follower - 12, "it completes write 41", fill=GOOD)
    again = retries[-1]
    d.arrow(x(again), client, x(again) + 4, follower + 2)
    d.arrow(x(again) + 16, follower, x(again) + 20, client - 2, "good")
    d.text(x(t.removal) + 8, client + 20, "again: ok, from B's record of it", fill=GOOD, font_size=12)

    d.line(left, axis, 960, axis)
    marks = sorted({0, t.own_lease, t.lease, t.removal, *(n * t.ping for n in range(t.misses + 2))})
    for at in marks:
        d.line(x(at), axis - 4, x(at), axis + 4)
        d.text(x(at), axis + 19, f"{at:g}", font_size=12, text_anchor="middle")
    d.text(20, axis + 5, "time (ms)", fill=SOFT)
    return d.svg()


def pictures() -> dict[str, str]:
    """All pictures, by file name."""
    return {"whole.svg": whole(), "placements.svg": placements(), "leader-death.svg": death(times())}


def main() -> None:
    """Writes them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures", help="default: docs/pictures")
    options = parser.parse_args()
    for name, svg in pictures().items():
        (options.out / name).write_text(svg)


if __name__ == "__main__":
    main()
