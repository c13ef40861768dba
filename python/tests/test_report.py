# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import csv
import html.parser
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wherry import report
from wherry.bench import Basis, parse, published_text, published_values
from wherry.errors import BenchError
from wherry.move.bench.schema import basis_of
from wherry.move.report import buffer_gains, chapter, pearson
from wherry.system import paths
from wherry.units import size_text

Document = dict[str, Any]
VOID = {"meta", "br", "path", "use", "rect", "line", "image"}


class Page(html.parser.HTMLParser):
    """Checks nesting; collects ids, links, and the text outside of <style>."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "src", "xlink:href") and value:
                self.references.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open, f"</{tag}> closes nothing"
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


@pytest.fixture
def file(tmp_path: Path, move: Document) -> Path:
    path = tmp_path / "bench-move.json"
    path.write_text(json.dumps(move))
    return path


@pytest.fixture
def small_file(tmp_path: Path, move: Document) -> Path:
    """A benchmark document with one experiment, because drawing a figure takes 0.25 s."""
    move["results"] = {"mapped": move["results"]["mapped"]}
    path = tmp_path / "small.json"
    path.write_text(json.dumps(move))
    return path


def lammps_document(passed: bool = True) -> Document:
    one = {"median": 2.0, "min": 1.0, "max": 3.0}
    names = ["call_us", "hold_ms", "stall_ms", "agent_ms", "agent_gb_s", "host_convert_write_ms", "host_wrap_write_ms"]
    frame = dict.fromkeys(names, 2.0) | {"rows": 4000, "bytes": 224000, "covered": False, "simulate_s": 0.1}
    return {
        "schema": 1,
        "name": "lammps_lj",
        "when": "2026-11-20T20:00:00+00:00",
        "wherry": "0.1.0",
        "machine": {"cpu": "A CPU", "cores": 2, "kernel": "6.1", "memory_bytes": 8 << 30},
        "versions": {"lammps": "20250722"},
        "pinning": {"application": 0, "agent": 1},
        "transports": "cma",
        "one_sided": "one_sided",
        "parameters": {"atoms": 4000, "steps": 30, "every": 10},
        "verdict": {
            "pass": passed, "problems": [], "frames_offloaded": 3, "frames_read": 3, "tolerance": 1e-9,
            "largest_relative_difference": 2e-16 if passed else None,
        },
        "seconds": 1.0,
        "totals": dict.fromkeys([*names, "simulate_s"], one),
        "frames": [{"step": step, **frame} for step in (10, 20, 30)],
    }  # fmt: skip


def test_page_stands_alone_and_is_well_formed(file: Path) -> None:
    page = parsed(report.build([file]))
    for reference in page.references:
        assert reference.startswith("#"), f"the page needs {reference}"
        assert reference[1:] in page.ids
    anchors = [name for name in page.ids if name.startswith("r0-")]
    assert len(anchors) == len(set(anchors)) == 12  # bars, ten figures, machine


def test_no_ink_is_left_and_no_plot_is_empty(file: Path) -> None:
    text = report.build([file])
    assert report.INK not in text
    assert text.count('<svg class="wide" ') == 10
    assert "currentColor" in text
    assert report.PUBLISHED in text


def test_svg_ids_do_not_clash_between_figures(file: Path) -> None:
    clips = re.findall(r'<clipPath id="([^"]+)"', report.build([file, file]))
    assert len(clips) > 16
    assert len(clips) == len(set(clips))


def test_bars_show_value_target_verdict_and_publication(small_file: Path) -> None:
    text = " ".join(parsed(report.build([small_file])).text)
    assert "1 of 2 bars met" in text
    for part in (
        "page_aligned_over_host",
        "0.97",
        "0.93 to 1.02",
        ">= 0.95",
        "met",
        "more than 95 % from 1 MiB",
        "missed",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("bar", "uses", "beside"),
    [
        ("host_us_p50_16col", "initiate p50_us, largest of all sizes: warm caches", "(cold caches): 2.5 us"),
        ("host_us_size_spread", "initiate p50_us, 1 column: warm caches", "(cold caches): 1"),
        ("get_vs_raw_min", "bandwidth ratio", ""),
        ("get_vs_memcpy_min", "mapped ratio", ""),
        ("idp_paged_vs_host_1col_128k", "approaches gbps", "fresh_gbps (source just written): 0.75"),
        ("idp_paged_vs_host_16col_16m", "approaches gbps", "fresh_gbps (source just written): 0.75"),
        ("host_time_saved_1m", "approaches host_us", ""),
        ("flight_throughput_ratio_1m", "flight throughput_ratio, 1 column", "16 columns: 2"),
        ("flight_host_cpu_ratio_1m", "flight cpu_ratio, 1 column", "16 columns: 120"),
    ],
)
def test_bars_say_what_they_use_and_what_they_leave_out(move: Document, bar: str, uses: str, beside: str) -> None:
    for row in move["results"]["approaches"]:
        if row["approach"] == "idp_page_aligned_ipc":
            row["fresh_gbps"] = 15.0
    move["bars"] = {bar: move["bars"]["page_aligned_over_host"]}
    basis = basis_of(bar, parse(move).results)
    assert basis.uses.startswith(uses)
    assert basis.beside.endswith(beside)
    assert bool(basis.beside) == bool(beside)
    (line,) = chapter(move, "x.json").bars or ()
    assert (line.uses, line.beside) == (basis.uses, basis.beside)


def test_what_stands_beside_a_bar_is_written_as_the_bar_is(move: Document) -> None:
    for row in move["results"]["flight_16_columns"]:
        row["cpu_ratio"] = 2020.4
    assert basis_of("flight_host_cpu_ratio_1m", parse(move).results).beside == "16 columns: 2,020"


def test_page_shows_what_a_bar_uses_and_what_stands_beside_it(tmp_path: Path, move: Document) -> None:
    move["bars"] = {"flight_host_cpu_ratio_1m": move["bars"]["page_aligned_over_host"]}
    move["results"] = {name: move["results"][name] for name in ("flight", "flight_16_columns")}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(move))
    text = " ".join(parsed(report.build([path])).text)
    assert "uses flight cpu_ratio, 1 column; beside it, 16 columns: 120" in text


def test_bars_of_a_run_without_their_experiment_say_nothing_beside(move: Document) -> None:
    results = parse({**move, "results": {}}).results
    for bar in ("host_us_p50_1col", "host_us_size_spread", "idp_paged_vs_host_1col_1m", "flight_throughput_ratio_1m"):
        basis = basis_of(bar, results)
        assert basis.uses
        assert basis.beside == ""
    assert basis_of("something_else", results) == Basis("")


def test_text_of_the_file_is_escaped(tmp_path: Path, move: Document) -> None:
    move["transports"] = "<script>alert(1)</script>"
    move["bars"]["call_us"]["published"] = "<b>bold</b> & more"
    move["results"] = {}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(move))
    text = report.build([path])
    assert "<script" not in text
    assert "<b>bold" not in text
    assert "A &lt;CPU&gt; &amp; more" in text


def test_part_of_a_benchmark(tmp_path: Path, move: Document) -> None:
    move["results"] = {"mapped": move["results"]["mapped"][:1]}
    move["bars"] = {}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(move))
    text = report.build([path])
    parsed(text)
    assert text.count('<svg class="wide" ') == 1
    assert "This run has no bars" in text


def test_single_size_everywhere_still_draws(tmp_path: Path, move: Document) -> None:
    for name, rows in move["results"].items():
        move["results"][name] = [row for row in rows if row["size"] == 1 << 20]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(move))
    assert report.build([path]).count('<svg class="wide" ') == 10


@pytest.mark.parametrize("passed", [True, False])
def test_lammps_job(tmp_path: Path, passed: bool) -> None:
    path = tmp_path / "lammps.json"
    path.write_text(json.dumps(lammps_document(passed)))
    text = " ".join(parsed(report.build([path])).text)
    assert "3 of 3 frames read and checked" in text
    assert ("met" if passed else "missed") in text


def test_broken_lammps_summary_is_refused(tmp_path: Path) -> None:
    document = lammps_document()
    del document["totals"]["hold_ms"]
    path = tmp_path / "lammps.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BenchError, match=r"lammps.json is not a summary of the job lammps_lj: .*hold_ms"):
        report.build([path])


def test_other_documents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"name": "sonar"}')
    with pytest.raises(
        BenchError, match=r"name is 'sonar'; 'move', 'lammps_lj', 'lammps_fix', 'route', 'kv', 'bypass'.* is expected"
    ):
        report.build([path])
    path.write_text("[]")
    with pytest.raises(BenchError, match="name is None"):
        report.build([path])
    with pytest.raises(BenchError, match="no file to report on"):
        report.build([])


def test_write_leaves_the_old_page_when_it_fails(tmp_path: Path, small_file: Path) -> None:
    out = tmp_path / "deep" / "report.html"
    assert report.write([small_file], out) == out
    before = out.read_text()
    small_file.write_text("{}")
    with pytest.raises(BenchError):
        report.write([small_file], out)
    assert out.read_text() == before
    assert list(out.parent.iterdir()) == [out]


def test_buffer_gains_against_numbers_done_by_hand(move: Document) -> None:
    gains = buffer_gains(parse(move).results.buffers)
    assert gains == pytest.approx({"alignment": 25.0, "cache_aligned": 25.0, "cache_unaligned": 100.0})
    assert buffer_gains([]) == {}


def test_pearson_is_numpys() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=50), rng.normal(size=50)
    assert pearson(list(x), list(y)) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert pearson([1.0], [1.0]) is None
    assert pearson([1.0, 2.0], [3.0, 3.0]) is None


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 B"), (1023, "1023 B"), (1024, "1 KiB"), (131072, "128 KiB"), (1 << 20, "1 MiB"), (1 << 30, "1 GiB")],
)
def test_size_text(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        ("sdms_idp_vs_host_128k", "at least 87 %"),
        ("sdms_init_host_avg", "250 to 350 us"),
        ("sdms_c_struct_share", "at most 2 %"),
        ("sdms_c_import_share_small", "about 30 %"),
        ("sdms_idp_size_threshold_87", "128 KiB"),
    ],
)
def test_published_values_in_words(identifier: str, text: str) -> None:
    assert published_text(published_values("move")[identifier]) == text


@pytest.mark.may_lack  # the tables may be absent: they are not part of the project
@pytest.mark.parametrize(
    ("of", "table"),
    [
        ("move", "sdms.csv"),
        ("route", "buddy.csv"),
        ("kv", "replication.csv"),
        ("bypass", "host_bypassing.csv"),
        ("probe", "memory_access.csv"),
    ],
)
def test_published_values_are_those_of_the_table(of: str, table: str) -> None:
    root = paths.repository()
    tables = [path / "shared" / "published" / table for path in ([root, root.parent] if root else [])]
    found = next((path for path in tables if path.is_file()), None)
    if found is None:
        pytest.skip(f"shared/published/{table} is not beside this checkout")
    rows: dict[str, dict[str, str]] = {}
    for name in (table, "buddy.csv"):  # probe also has values of paper 001
        with found.with_name(name).open(newline="") as source:
            rows |= {row["id"]: row for row in csv.DictReader(source)}
    for identifier, entry in published_values(of).items():
        row = rows[identifier]
        for key in ("value", "low", "high"):
            assert (float(row[key]) if row[key] else None) == entry.get(key), identifier
        for key in ("quantity", "unit", "source", "kind"):
            assert row[key] == entry[key], identifier
        assert row["conditions"] == entry.get("conditions", "")


def drawings(text: str, kind: str) -> list[str]:
    return re.findall(rf'<svg class="{kind}" .*?</svg>', text, re.DOTALL)


def test_a_phone_gets_every_plot_with_its_panels_one_below_the_other(file: Path) -> None:
    text = report.build([file])
    wide, narrow = drawings(text, "wide"), drawings(text, "narrow")
    assert len(wide) == len(narrow) == 10
    stacked = 0
    for one, other in zip(wide, narrow, strict=True):
        assert one.count('id="axes_') == other.count('id="axes_'), "a panel is lost"
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', other)
        assert size is not None
        width, height = float(size[1]), float(size[2])
        assert width <= 4.3 * 72 + 1, "360 pixels wide, its letters would be too small"
        stacked += height > 1.5 * width
    assert stacked > 0
    # The style sheet shows only one of both figures.
    assert "figure svg.narrow { display: none; }" in text
    phone = text[text.index("@media (max-width: 600px)") :].partition("</style>")[0]
    assert "figure svg.wide { display: none; }" in phone
    assert "figure svg.narrow { display: block; }" in phone


def test_a_phone_gets_the_name_of_each_figure_of_a_bar_beside_it(small_file: Path) -> None:
    text = report.build([small_file])
    body = text[text.index('<table class="bars">') :].partition("</table>")[0]
    for row in body.split("<tr>")[2:]:
        assert re.findall(r'data-label="([^"]+)"', row) == ["median", "min to max", "target", "verdict", "published"]


def test_numbers_are_as_people_write_them(tmp_path: Path, move: Document) -> None:
    move["bars"] = {"luts_total": {"value": 10485.0, "min": 7168.4, "max": 1.5e6, "unit": "LUTs"}}
    path = tmp_path / "b.json"
    path.write_text(json.dumps(move))
    text = " ".join(parsed(report.build([path])).text)
    assert "10,485" in text
    assert "7,168 to 1,500,000" in text
    assert not re.search(r"\d\.\d+e\+\d", text)


@pytest.mark.parametrize(
    ("said", "marked", "command"),
    [
        ({}, "", "wherry bench move --json"),
        ({"quick": True}, "A quick run: a look, not a measurement.", "wherry bench move --quick --json"),
        ({"only": ["mapped", "flight"]}, "A part of the benchmark: only mapped, flight.",
         "wherry bench move --only mapped --only flight --json"),
        ({"quick": True, "only": ["mapped"]}, "A quick run, only mapped: a look, not a measurement.",
         "wherry bench move --quick --only mapped --json"),
    ],
)  # fmt: skip
def test_a_run_that_is_no_whole_one_is_marked(
    tmp_path: Path, move: Document, said: dict[str, Any], marked: str, command: str
) -> None:
    path, out = tmp_path / "b.json", tmp_path / "page.html"
    path.write_text(json.dumps(move | said))
    text = report.write([path], out).read_text()
    assert f"{command} {path}" in text
    assert f"wherry report {path} --out {out}" in text
    assert ('<div class="card part">' in text) == bool(marked)
    assert marked in text
