# SPDX-License-Identifier: Apache-2.0
"""The recording of Linux that the designs replay, counted by code other than the C++ that wrote it (`make
linux-trace`)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import bus_trace  # noqa: E402
import linux_trace  # noqa: E402

SLICE = ROOT / "sim" / "designs" / "linux_boot.wbt"
BY_HAND = bytes([*b"WBT2", 0x00, 0xE1, 0xF5, 0x05, 5, 0x83, 0x01, 0x82, 0x01, 5, 0, 16, 1, 58])
"""A trace in the format of docs/design/card-memory.md: 100 MHz, a fetch, a write, a read of a word and of a line."""


def said() -> dict[str, Any]:
    """The figures that designs_linux recorded for the boot."""
    document: dict[str, Any] = json.loads(SLICE.with_suffix(".json").read_text())
    return document


def test_bytes_by_hand() -> None:
    assert bus_trace.clock_hz(BY_HAND) == 100_000_000
    assert list(bus_trace.accesses(BY_HAND)) == [(5, 0x40, 3), (135, 0x3C, 1), (135, 0x44, 0), (136, 0x60, 2)]
    assert bus_trace.count(BY_HAND) == {
        "accesses": 4, "read_words": 1, "written_words": 1, "read_lines": 1, "fetched_lines": 1,
        "bytes": 4 + 4 + 32 + 32, "pages": 1, "cycles": 136,
    }  # fmt: skip


@pytest.mark.parametrize("broken", [b"", b"WBT1\0\0\0\1", BY_HAND[:-1], BY_HAND + b"\x80"])
def test_broken_bytes_are_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"no bus trace|cut short|without an address"):
        bus_trace.count(broken)


def test_the_slice_has_the_counts_of_its_recording() -> None:
    document = said()
    assert document["slice"] == bus_trace.count(SLICE.read_bytes())
    assert document["clock_hz"] == bus_trace.clock_hz(SLICE.read_bytes())
    assert {name: document["boot"][name] for name in bus_trace.KINDS} == document["counted_by_the_core"]
    assert SLICE.stat().st_size <= 2 << 20


def test_each_window_has_what_was_recorded_of_it() -> None:
    """Each window has 1.2 million cycles at 100 MHz, and the windows follow in the order of the boot. Their access
    kinds and pages are the recorded ones."""
    document = said()
    kinds: dict[int, Counter[str]] = {}
    pages: dict[int, set[int]] = {}
    before = 0
    for cycle, address, kind in bus_trace.accesses(SLICE.read_bytes()):
        assert cycle >= before
        assert 0 <= address < 32 << 20
        assert kind not in (2, 3) or address % 32 == 0
        before = cycle
        window = cycle // document["window_cycles"]
        kinds.setdefault(window, Counter())[bus_trace.KINDS[kind]] += 1
        pages.setdefault(window, set()).add(address // bus_trace.PAGE_BYTES)
    assert list(kinds) == list(range(len(document["windows"]))) == list(range(8))
    starts = [window["boot_cycle"] for window in document["windows"]]
    assert starts == sorted(starts)
    assert starts[-1] + document["window_cycles"] <= document["core_cycles"]
    for number, window in enumerate(document["windows"]):
        assert {name: kinds[number][name] for name in bus_trace.KINDS} == {
            name: window[name] for name in bus_trace.KINDS
        }
        assert len(pages[number]) == window["pages"]


def test_linux_reached_user_space_and_its_init_found_nothing_wrong() -> None:
    console = said()["console"]
    lines = [line for line in console.splitlines() if line.startswith(("init:", "reboot:"))]
    assert lines == ["init: user space", "init: file ok", "init: child ok", "reboot: Power down"]
    assert "Linux version 6.1" in console


def test_a_wrong_count_is_told(tmp_path: Path) -> None:
    for name in ("boot.wbt", "slice.wbt"):
        (tmp_path / name).write_bytes(BY_HAND)
    counts = bus_trace.count(BY_HAND)
    core = {name: counts[name] for name in bus_trace.KINDS}
    assert linux_trace.differences({"boot": counts, "slice": counts, "counted_by_the_core": core}, tmp_path) == []
    wrong = linux_trace.differences(
        {"boot": counts, "slice": counts | {"pages": 2}, "counted_by_the_core": core | {"read_lines": 0}}, tmp_path
    )
    assert wrong == ["slice: pages is 2 by designs_linux, and 1 by tools/bus_trace.py",
                     "boot: the core counted 0 read_lines"]  # fmt: skip
