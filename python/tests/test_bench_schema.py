# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wherry
from wherry.bench import Bar, load, parse
from wherry.bench.schema import keys, meets
from wherry.errors import BenchError
from wherry.kv.bench.schema import KvBench, KvResults
from wherry.move.bench.schema import (
    ApproachRow,
    Bandwidth,
    Buffers,
    Conversion,
    FlightRow,
    Initiate,
    Mapped,
    MoveBench,
    Results,
)
from wherry.route.bench.schema import RouteBench, RouteResults
from wherry.system import paths
from wherry.system.machine import Machine, this_machine
from wherry.version import VERSION

Document = dict[str, Any]


def test_complete_document(move: Document) -> None:
    bench = parse(move)
    assert bench.machine.memory_bytes == 8 << 30
    assert bench.bars["page_aligned_over_host"].passed
    assert not bench.bars["call_us"].passed
    assert bench.bars["call_us"].published is None
    for section in dataclasses.fields(Results):
        rows = getattr(bench.results, section.name)
        assert [dataclasses.asdict(row) for row in rows] == move["results"][section.name]


def test_experiments_that_were_not_run_are_empty(move: Document) -> None:
    move["results"] = {"bandwidth": move["results"]["bandwidth"]}
    move["bars"] = {}
    results = parse(move).results
    assert results.initiate == []
    assert len(results.bandwidth) == 5


def test_whole_numbers_are_numbers(move: Document) -> None:
    move["results"]["flight"][0]["cpu_ratio"] = 250
    row = parse(move).results.flight[0]
    assert row.cpu_ratio == 250.0
    assert isinstance(row.cpu_ratio, float)


def test_unknown_keys_are_ignored(move: Document) -> None:
    move["colour"] = "blue"
    move["results"]["initiate"][0]["mood"] = 3
    parse(move)


def change(path: str, value: Any) -> Callable[[Document], None]:
    """Sets the value at `path`, such as "results.flight.0.size"; the value `...` removes it."""

    def apply(document: Document) -> None:
        *parents, last = path.split(".")
        place: Any = document
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if value is ...:
            del place[last]
        else:
            place[int(last) if isinstance(place, list) else last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schema", 2, "schema is 2; this Wherry reads schema 1"),
        ("schema", ..., "schema is None"),
        ("name", "sonar", r"doc.name: 'sonar'; one of 'move', 'route', 'kv', 'bypass', 'probe' is expected"),
        ("when", "yesterday", "is not an ISO 8601 time"),
        ("repetitions", 0, "doc.repetitions: 0; at least 1"),
        ("repetitions", 5.0, "doc.repetitions: 5.0; a whole number is expected"),
        ("repetitions", True, "doc.repetitions: True; a whole number is expected"),
        ("one_sided", "perhaps", "'one_sided', 'emulated' is expected"),
        ("machine", ..., "doc: machine is missing"),
        ("machine.cores", "two", "doc.machine.cores: 'two'; a whole number is expected"),
        ("machine", [], r"doc.machine: \[\]; an object is expected"),
        ("pinning.agent", "1", "doc.pinning.agent: '1'; a whole number"),
        ("versions.ucx", 1.22, "doc.versions.ucx: 1.22; a string is expected"),
        ("results", [], r"doc.results: \[\]; an object is expected"),
        ("results.initiate", {}, r"doc.results.initiate: \{\}; an array is expected"),
        ("results.initiate.3.p50_us", ..., r"doc.results.initiate\[3\]: p50_us is missing"),
        ("results.initiate.3.p50_us", "1", r"doc.results.initiate\[3\].p50_us: '1'; a number is expected"),
        ("results.initiate.3.p50_us", -1.0, r"results.initiate\[3\].p50_us: -1.0 is negative"),
        ("results.initiate.3.p50_us", float("inf"), "a finite number is expected"),
        ("results.initiate.3.p50_us", float("nan"), "a finite number is expected"),
        ("results.buffers.0.client_alloc", "new", "one of 'malloc', 'memalign' is expected"),
        ("results.buffers.0.cache", 1, "true or false is expected"),
        ("results.conversion.0.api", "rust", "one of 'cpp', 'c_abi' is expected"),
        ("results.approaches.0.approach", "magic", "'idp_c_abi' is expected"),
        ("bars.call_us.pass", ..., "bars.call_us: pass is missing"),
        ("bars.call_us.pass", True, r"pass is True, but 7.5 <= 5 says otherwise"),
        ("bars.call_us.min", 8.0, "value 7.5 is not between min 8 and max 9"),
        ("bars.call_us.target", "about 5", "'about 5' is not a target"),
        ("bars.call_us.published", 5, "a string is expected"),
    ],
)
def test_each_fault_is_named_with_its_place(move: Document, path: str, value: Any, message: str) -> None:
    change(path, value)(move)
    with pytest.raises(BenchError, match=message):
        parse(move, "doc")


def test_complete_document_of_route(route: Document) -> None:
    bench = parse(route)
    assert isinstance(bench, RouteBench)
    assert bench.bars["histogram_vs_limit_20"].passed
    assert bench.bars["histogram_inline_mups_20"].passed is None
    for section in dataclasses.fields(RouteResults):
        rows = getattr(bench.results, section.name)
        assert rows, section.name
        assert [dataclasses.asdict(row) for row in rows] == route["results"][section.name]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("machine", ..., "doc: machine is missing"),
        ("repetitions", 0, "doc.repetitions: 0; at least 1"),
        ("results.latency.0.placement", "dpu", "one of 'inline', 'shared', 'host' is expected"),
        ("results.sweeps.0.parameter", "colour", "'routing_threads' is expected"),
        ("results.sweeps.0.agent_transfer_bytes", "1", r"doc.results.sweeps\[0\].agent_transfer_bytes: '1'; a number"),
        ("results.message_sizes.2.gbps", ..., r"doc.results.message_sizes\[2\]: gbps is missing"),
        ("results.agent_memory.1.rss_bytes", -1, r"agent_memory\[1\].rss_bytes: -1.0 is negative"),
        ("results.peers.0.samples.1", None, r"peers\[0\].samples\[1\]: None; a number is expected"),
        ("results.applications.0.mc_ratio", "many", "a number is expected"),
        ("bars.histogram_inline_mups_20.pass", True, "pass is True, but there is no target"),
        ("bars.histogram_vs_limit_20.pass", ..., "bars.histogram_vs_limit_20: pass is missing"),
        ("bars.histogram_vs_limit_20.pass", False, "pass is False, but 0.8 >= 0.7 says otherwise"),
    ],
)
def test_each_fault_of_route_is_named_with_its_place(route: Document, path: str, value: Any, message: str) -> None:
    change(path, value)(route)
    with pytest.raises(BenchError, match=message):
        parse(route, "doc")


def test_complete_document_of_kv(kv: Document) -> None:
    bench = parse(kv)
    assert isinstance(bench, KvBench)
    assert bench.not_measured == {"line_rate": "no <harness>"}
    for section in dataclasses.fields(KvResults):
        rows = getattr(bench.results, section.name)
        assert rows, section.name
        assert [dataclasses.asdict(row) for row in rows] == kv["results"][section.name]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("results.rtl_latency.0.policy", "maybe", "one of 'store', 'accept', 'none' is expected"),
        ("results.software.0.system", "dynamo", "one of 'wherry', 'redis', 'etcd' is expected"),
        ("results.line_rate.1.lost", ..., r"doc.results.line_rate\[1\]: lost is missing"),
        ("results.resources.0.bram36", -0.5, r"resources\[0\].bram36: -0.5 is negative"),
        ("results.failover.0.kills", 1.5, "a whole number is expected"),
        ("not_measured.line_rate", 3, "doc.not_measured.line_rate: 3; a string is expected"),
    ],
)
def test_each_fault_of_kv_is_named_with_its_place(kv: Document, path: str, value: Any, message: str) -> None:
    change(path, value)(kv)
    with pytest.raises(BenchError, match=message):
        parse(kv, "doc")


@pytest.mark.parametrize("document", [None, [], 3, "move"])
def test_not_an_object(document: Any) -> None:
    with pytest.raises(BenchError):
        parse(document)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (0.95, ">= 0.95", True), (0.9499, ">=0.95", False), (5.0, "<= 5", True), (5.1, "<= 5", False),
        (1.0, "> 1", False),
        (1.1, "> 1.0e0", True), (-1.0, "< -0.5", True), (0.0, "< 0", False),
    ],
)  # fmt: skip
def test_meets(value: float, target: str, expected: bool) -> None:
    assert meets(value, target) is expected


@pytest.mark.parametrize("target", ["", "0.95", "== 1", ">= ", ">= 1 or so", ">= 1.2.3", "≥ 1"])
def test_meets_refuses_other_targets(target: str) -> None:
    with pytest.raises(BenchError, match="is not a target"):
        meets(1.0, target)


def test_load_names_the_file(tmp_path: Path, move: Document) -> None:
    path = tmp_path / "bench.json"
    with pytest.raises(BenchError, match=r"cannot read .*bench.json: No such file"):
        load(path)
    path.write_text("{")
    with pytest.raises(BenchError, match=r"bench.json is not JSON"):
        load(path)
    with pytest.raises(BenchError, match=r"^cannot read /dev/zero: it has more than 16777216 characters"):
        load("/dev/zero")
    path.write_text('{"schema": NaN}')
    with pytest.raises(BenchError, match=r"NaN is not JSON"):
        load(path)
    path.write_text(json.dumps(move))
    assert load(path).repetitions == 5


def row_type(results: type, section: dataclasses.Field[Any]) -> type:
    return typing.get_args(typing.get_type_hints(results)[section.name])[0]  # type: ignore[no-any-return]


def test_documentation_names_every_key() -> None:
    root = paths.repository()
    assert root is not None, "tests run in a checkout"
    named = set(re.findall(r'`"?([a-z0-9_]+)"?`', (root / "docs" / "reference" / "bench-json.md").read_text()))
    kinds = [MoveBench, Machine, Bar, Results]
    kinds += [Initiate, Bandwidth, Mapped, Buffers]
    kinds += [Conversion, ApproachRow, FlightRow]
    for bench, results in ((RouteBench, RouteResults), (KvBench, KvResults)):
        kinds += [bench, results, *(row_type(results, section) for section in dataclasses.fields(results))]
    for kind in kinds:
        missing = set(keys(kind)) - named
        assert not missing, f"docs/reference/bench-json.md does not describe {sorted(missing)} of {kind.__name__}"


def test_this_machine() -> None:
    machine = this_machine()
    assert machine.cores >= 1
    assert machine.memory_bytes > 1 << 28
    assert machine.cpu


def test_version_is_that_of_the_build() -> None:
    root = paths.repository()
    assert root is not None
    assert f"project(wherry VERSION {VERSION} " in (root / "CMakeLists.txt").read_text()
    assert wherry.__version__ == VERSION
