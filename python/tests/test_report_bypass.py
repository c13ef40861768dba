# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from test_report import parsed

from wherry import report
from wherry.bench import met_of, parse
from wherry.bypass.bench.bars import EXPERIMENT_OF, TARGETS
from wherry.bypass.bench.schema import BypassBench, BypassResults, basis_of

Document = dict[str, Any]
DRAWN = ("rtl_rates", "rtl_latency", "rtl_overload", "rtl_cycles", "latency_over_time", "rates", "overload_over_time",
         "tcp", "batching", "constants", "resources", "qemu")  # fmt: skip


def write(path: Path, document: Document) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_every_experiment_is_drawn_and_the_page_stands_alone(tmp_path: Path, bypass: Document) -> None:
    text = report.build([write(tmp_path / "bypass.json", bypass)])
    page = parsed(text)
    for reference in page.references:
        assert reference.startswith("#"), f"the page needs {reference}"
        assert reference[1:] in page.ids
    assert text.count('<svg class="wide" ') == len(DRAWN)
    assert report.INK not in text
    words = " ".join(page.text)
    for part in (
        "Bars of bypass", "2 of 3 bars met", "our core is simulated RTL, the paper's and all NICs are models",
        "bars not run", "kv_behind_bypass: needs --kv FILE", "qemu igb: no QEMU with <igb>", "figure 7 of the paper",
        "figure 9 of the paper", "table I of the paper", "table II of the paper", "average latency at batch factor 16",
        "1 queue pair, 256 slots",
        "both 7.91 us (7.91 us published, predicted)", "15.87 % lost (15.79 % published, predicted)",
    ):  # fmt: skip
        assert part in words, part


@pytest.mark.parametrize("section", DRAWN)
def test_each_experiment_alone_and_with_one_row(tmp_path: Path, bypass: Document, section: str) -> None:
    bypass["results"] = {section: bypass["results"][section][:1]}
    bypass["bars"], bypass["not_measured"], bypass["not_run"] = {}, {}, {}
    text = report.build([write(tmp_path / "bypass.json", bypass)])
    assert text.count('<svg class="wide" ') == 1
    assert "This run has no bars" in text


def test_complete_document(bypass: Document) -> None:
    bench = parse(bypass)
    assert isinstance(bench, BypassBench)
    assert met_of(bench) == "2 of 3"
    for section in dataclasses.fields(BypassResults):
        rows = getattr(bench.results, section.name)
        assert rows, section.name
        assert [dataclasses.asdict(row) for row in rows] == bypass["results"][section.name]


def test_bars_say_what_they_use_and_where_they_come_from(bypass: Document) -> None:
    results = parse(bypass).results
    for bar in TARGETS:
        assert basis_of(bar, results).uses, bar
    assert sorted(name for names in EXPERIMENT_OF.values() for name in names) == sorted(TARGETS)
    assert basis_of("model_error_batch16_latency", results).beside == "any_fetches: 8.00 us, 19.4 %"
    assert basis_of("model_error_switch_latency", results).beside == "any_fetches: 7.91 us, 1.0 %"
    assert basis_of("qemu_frames_wrong_e1000e", results).beside == "of 10000 frames, QEMU emulator version 7.2"
    assert basis_of("kv_behind_bypass", results).beside == "read 9 us; kv's own 0.5 us"
