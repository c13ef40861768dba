# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_report import parsed

from wherry import report
from wherry.bench import met_of, parse
from wherry.kv.bench.schema import basis_of

Document = dict[str, Any]
SECTIONS = ("rtl_latency", "line_rate", "resources", "software", "throughput", "failover", "gateway")


def write(path: Path, document: Document) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_every_experiment_is_drawn_and_the_page_stands_alone(tmp_path: Path, kv: Document) -> None:
    text = report.build([write(tmp_path / "kv.json", kv)])
    page = parsed(text)
    for reference in page.references:
        assert reference.startswith("#"), f"the page needs {reference}"
        assert reference[1:] in page.ids
    assert text.count('<svg class="wide" ') == len(SECTIONS)
    assert report.INK not in text
    words = " ".join(page.text)
    for part in ("Bars of kv", "1 of 2 bars met", "table 5.7, table 5.9 of the paper", "node is core 0",
                 "line_rate: no <harness>", "median 8 ms asking each millisecond, 10 ms as clients are by default",
                 "software replication latency: Write to Leader: 164 us"):  # fmt: skip
        assert part in words, part


@pytest.mark.parametrize("section", SECTIONS)
def test_each_experiment_alone_and_with_one_row(tmp_path: Path, kv: Document, section: str) -> None:
    kv["results"] = {section: kv["results"][section][:1]}
    kv["bars"], kv["not_measured"] = {}, {}
    text = report.build([write(tmp_path / "kv.json", kv)])
    assert text.count('<svg class="wide" ') == 1
    assert "This run has no bars" in text


def test_bars_say_what_they_use(kv: Document) -> None:
    results = parse(kv).results
    for bar in (
        "rtl_read_repl_ns", "rtl_write_repl_ns", "rtl_leader_repl_ns", "rtl_read_ns", "rtl_write_store_ns",
        "rtl_write_accept_ns", "rtl_leader_write_accept_ns", "line_rate_read", "line_rate_replica_write",
        "line_rate_small_read", "rate_replica_write_64", "lut_levels_max", "sw_throughput_vs_redis",
    ):  # fmt: skip
        assert basis_of(bar, results).uses, bar
    assert basis_of("luts_total", results).uses == "resources of the parts: kv_parser, kv_engine, LUT + LUTRAM"
    xdp = basis_of("sw_leader_write_xdp_vs_redis_wait", results)
    assert "all on veth" in xdp.uses
    assert xdp.beside == "ours at 64 B: 8 us, ours at 1024 B: 8 us"
    assert basis_of("sw_read_vs_redis", results).beside == "ours at 64 B: 10 us, ours at 1024 B: 10 us"
    assert "lease 6 ms; 50 kills; the default client: p50 10 ms" in basis_of("failover_ms_p50", results).beside
    assert "lease 300 ms" in basis_of("failover_default_ms_p99", results).beside
    assert met_of(parse(kv)) == "1 of 2"
