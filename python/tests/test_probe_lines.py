# SPDX-License-Identifier: Apache-2.0
"""wherry-probe's allowed and forbidden output: the parser of its lines, the collector, the file of a run."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wherry.errors import AlreadyExists, BenchError
from wherry.probe.lines import End, Figures, Line, PathLine, RowLine, Start, parse
from wherry.probe.measuring import Collector
from wherry.probe.schema import ProbeRun, load, write

Document = dict[str, Any]
SHAPE: Document = {"id": "a.b", "bytes": 4096, "depth": 1, "channels": 1, "pattern": "sequential", "flow": "c2h",
                   "notice": "polled", "cache": "warm", "align": 0, "load": "closed", "series": 0}  # fmt: skip
START: Document = {"kind": "start", "wherry": "0.1.0", "environment": {"cpu": "c", "load": "0.1"}, "machine_key": "m",
                   "clock_ghz": 2.5, "clock_resolution_ns": 10.0, "harness_batched_ns": 8.9,
                   "harness_timed_ns": 20.0, "cells": 1, "rounds": 7, "seed": 1}  # fmt: skip
PATH: Document = {"kind": "path", "id": "a.b", "group": "a", "from": "here", "to": "there", "initiator": "host",
                  "provenance": "measured", "absent": "", "note": ""}  # fmt: skip
END: Document = {"kind": "end", "measured": 1, "wrong": 0, "refused": 0, "failed": 0, "stopped": False, "seconds": 1.5}


def row(**changes: Any) -> Document:
    """A line about a measured cell."""
    figures: Document = {
        "p50_ns": 1500.0, "p90_ns": 1600.0, "p99_ns": 2000.0, "p999_ns": 3000.0, "max_ns": 9000.0, "gbytes_per_s": 2.7,
        "transfers_per_s": 6.6e5, "offered_per_s": 0.0, "cpu_user_ns": 500.0, "cpu_system_ns": 1000.0,
        "other_user_ns": 0.0, "other_system_ns": 0.0, "least": 1400.0, "most": 1700.0,
        "rounds": [1400.0, 1500.0, 1700.0, 1500.0, 1450.0, 1550.0, 1500.0], "disturbed": 0, "warm": 7,
        "p50_undisturbed_ns": 1500.0, "variation": 0.06, "unsettled": False, "samples": 700, "batch": 1,
        "bound_gbytes_per_s": 512.0, "bound_why": "stores", "refused": "",
    }  # fmt: skip
    return {"kind": "row", **SHAPE, **figures, **changes}


def lines(*documents: Document) -> list[Line]:
    return [parse(json.dumps(document)) for document in documents]


def collected(*documents: Document) -> ProbeRun:
    collector = Collector()
    for line in lines(*documents):
        collector.take(line)
    return collector.run(quick=True, twice=False, only=[])


PROGRESS: Document = {"kind": "progress", **SHAPE, "done": 1, "of": 7, "seconds": 0.5}
WRONG: Document = {"kind": "wrong", **SHAPE, "why": "byte 3"}
FAILED: Document = {"kind": "failed", **SHAPE, "why": "no device"}
ALL = (START, PROGRESS, row(), WRONG, FAILED, PATH, END)


def test_lines_of_every_kind_are_read() -> None:
    kinds = [type(line).__name__ for line in lines(*ALL)]
    assert kinds == ["Start", "Progress", "RowLine", "Wrong", "Failed", "PathLine", "End"]
    path = lines(PATH)[0]
    assert isinstance(path, PathLine)
    assert (path.from_, path.to) == ("here", "there")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "wherry-probe wrote ''"),
        ("[1795654213] UCX WARN transports are not available", "wherry-probe wrote '.1795654213"),
        ("{}", "missing required field `kind`"),
        ('{"kind": "joy"}', "Invalid value 'joy'"),
        (json.dumps(START | {"rounds": "seven"}), "Expected `int`, got `str` - at `.\\.rounds`"),
        (json.dumps(row(notice="shouted")), "Invalid enum value 'shouted'"),
        (json.dumps(row(p50_ns=None)), "Expected `float`, got `null`"),
        (json.dumps(row(p50_ns=-1.0)), "p50_ns = -1.0; a number of 0 or more is expected"),
        (json.dumps(row(rounds=[1.0, -2.0])), "rounds = -2.0"),
        (json.dumps(row(rounds=[])), "a row of a.b without rounds"),
        (json.dumps(row()).replace("9000.0", "1e999"), "wherry-probe wrote"),
        (json.dumps(row()).replace("9000.0", "NaN"), "malformed"),
        ("[" * 100_000, "a line of 100000 characters"),
        ("[" * 60_000, "wherry-probe wrote"),
        (json.dumps(row(bound_why="x" * 70_000)), "a line of 7"),
    ],
)
def test_other_lines_are_refused(text: str, message: str) -> None:
    with pytest.raises(BenchError, match=message):
        parse(text)


def test_spoiled_lines_are_read_or_refused_and_never_anything_else() -> None:
    """Lines with bytes changed, cut, doubled or joined give either a Line or a BenchError."""
    draw = random.Random(14)
    whole = [json.dumps(document).encode() for document in ALL]
    read = 0
    for _ in range(20_000):
        text = bytearray(draw.choice(whole))
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(text) + 1)
            match draw.randrange(4):
                case 0:
                    text[at : at + 1] = bytes([draw.randrange(256)])
                case 1:
                    del text[at : at + draw.randrange(1, 40)]
                case 2:
                    text[at:at] = text[draw.randrange(len(text) + 1) :][:20]
                case _:
                    text[at:at] = draw.choice((b"-", b"0", b"null", b"1e400", b'"', b"{", b"\xff", b"]"))
        try:
            line = parse(bytes(text))
        except BenchError:
            continue
        read += 1
        assert isinstance(line, Line)
        if isinstance(line, Figures):
            assert min(line.rounds) >= 0
    assert 0 < read < 15_000


def test_a_run_is_collected() -> None:
    run = collected(*ALL)
    (path,) = run.paths
    assert (path.from_, len(path.rows), [trouble.wrong for trouble in path.troubles]) == ("here", 1, [True, False])
    assert (run.measured, run.wrong, run.settings.rounds) == (1, 1, 7)
    assert run.rows[0][1].words == ""
    other = collected(START, row(depth=8, notice="blocking", cache="flushed", align=3, load="open"), PATH, END)
    assert other.rows[0][1].words == "depth 8, blocking, flushed, +3, open loop"
    assert collected(START, row(refused="too fast"), PATH, END).measured == 0


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ((row(), START), "a line of kind RowLine where none can be"),
        ((START, START), "a line of kind Start"),
        ((START, PATH, END, row()), "a line of kind RowLine"),
        ((START, row(), PATH), "ended before its run did"),
        ((), "ended before its run did"),
        ((START, row(id="c.d"), PATH, END), r"rows of \['c.d'\], which it lists no path for"),
    ],
)
def test_lines_in_the_wrong_place_are_refused(documents: tuple[Document, ...], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        collected(*documents)


def test_the_file_is_read_back_and_never_overwritten(tmp_path: Path) -> None:
    run = collected(*ALL)
    file = tmp_path / "deep" / "run.json"
    write(run, file)
    assert load(file) == run
    document = json.loads(file.read_text())
    assert (document["schema"], document["name"], document["paths"][0]["from"]) == (1, "probe_run", "here")
    before = file.read_bytes()
    with pytest.raises(AlreadyExists, match="overwrites nothing: name another file"):
        write(run, file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["run.json"]
    dangling = tmp_path / "link"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(AlreadyExists):
        write(run, dangling)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    document = msgspec.to_builtins(collected(*ALL))
    for change, message in (
        ({"schema": 2}, "schema is 2; this Wherry reads schema 1"),
        ({"name": "probe"}, "is not what `wherry probe run --json` writes"),
        ({"paths": 3}, "Expected `array`"),
    ):
        file.write_text(json.dumps(document | change))
        with pytest.raises(BenchError, match=message):
            load(file)
    document["paths"][0]["rows"][0]["rounds"] = [1.0, 0.0]
    file.write_text(json.dumps(document))
    with pytest.raises(BenchError, match="positive times are expected"):
        load(file)
    with pytest.raises(BenchError, match="cannot read"):
        load(tmp_path / "missing.json")
    with pytest.raises(BenchError, match="cannot read /dev/zero: it has more than"):
        load("/dev/zero")


def test_documentation_names_every_key() -> None:
    from wherry.probe.schema import MeasuredPath, Row, Settings
    from wherry.system import repository

    root = repository()
    assert root is not None
    page = (root / "docs" / "guide" / "probe.md").read_text()
    for kind in (ProbeRun, Settings, MeasuredPath, Row, Start, End, RowLine):
        for name in kind.__struct_encode_fields__:
            if kind in (Start, End) and name not in ProbeRun.__struct_encode_fields__:
                continue
            missing = f"docs/guide/probe.md does not name {name} of {kind.__name__}"
            assert f"`{name}`" in page or f"`{name}" in page, missing
