# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_report import parsed

from wherry import report
from wherry.bench import Basis, met_of, parse
from wherry.route.bench.schema import basis_of

Document = dict[str, Any]


def write(path: Path, document: Document) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_every_experiment_is_drawn_and_the_page_stands_alone(tmp_path: Path, route: Document) -> None:
    text = report.build([write(tmp_path / "route.json", route)])
    page = parsed(text)
    for reference in page.references:
        assert reference.startswith("#"), f"the page needs {reference}"
        assert reference[1:] in page.ids
    assert text.count('<svg class="wide" ') == 10  # the experiment `link` has no figure
    assert report.INK not in text
    words = " ".join(page.text)
    assert "1 of 2 bars met" in words, "a bar without a target counts neither way"
    for part in ("a <peer>", "figure 7 of the paper", "only estimated from above: no counter", "a is core 0",
                 "costs 1.50 times what it does at 2", "1 threads: 1.00 times the default (1)"):  # fmt: skip
        assert part in words


def test_one_page_with_both(tmp_path: Path, move: Document, route: Document) -> None:
    move["results"] = {"mapped": move["results"]["mapped"]}
    route["results"] = {"latency": route["results"]["latency"]}
    text = report.build([write(tmp_path / "m.json", move), write(tmp_path / "r.json", route)])
    page = parsed(text)
    assert "Bars of move" in " ".join(page.text)
    assert "Bars of route" in " ".join(page.text)
    assert len(re.findall('<svg class="wide" ', text)) == 2
    anchors = [name for name in page.ids if re.match(r"r\d-", name)]
    assert len(anchors) == len(set(anchors)) == 6


@pytest.mark.parametrize("section", ["histogram", "peers", "sweeps", "weak_scaling", "applications", "agent_memory"])
def test_each_experiment_alone_and_with_one_row(tmp_path: Path, route: Document, section: str) -> None:
    route["results"] = {section: route["results"][section][:1]}
    route["bars"] = {}
    text = report.build([write(tmp_path / "r.json", route)])
    assert text.count('<svg class="wide" ') == 1
    assert "This run has no bars" in text


def test_bars_say_what_they_use(route: Document) -> None:
    results = parse(route).results
    for bar in (
        "histogram_inline_mups_24", "histogram_vs_limit_24", "histogram_inline_vs_conveyors-shipped_20",
        "random_size_gbps_ratio", "agent_mmps_per_core", "idle_latency_us", "weak_scaling_8",
    ):  # fmt: skip
        assert basis_of(bar, results).uses, bar
    assert basis_of("offload_speedup_sssp", results).beside == "inline over shared: 4"
    assert basis_of("something_else", results) == Basis("")
    assert met_of(parse(route)) == "1 of 2"
