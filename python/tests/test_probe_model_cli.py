# SPDX-License-Identifier: Apache-2.0
"""`wherry probe model`, its JSON, and its chapter of the report."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from wherry import cli
from wherry.errors import BenchError
from wherry.probe.model import parameters
from wherry.probe.report import CHAPTERS
from wherry.probe.report.model import model_sections, stored_sections
from wherry.report import build, styled


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capfd.readouterr()
    status = cli.main(["probe", "model", *arguments])
    out, err = capfd.readouterr()
    return status, out, err


def test_tables_say_what_was_fitted_and_what_was_missed(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd)
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    of = {line[0]: line for line in lines if line and line[0].startswith("ma_")}
    assert len(of) == 13
    assert sum("fitted" in line for line in of.values()) == 7
    assert sum("predicted" in line for line in of.values()) == 6
    assert out.count("missed: ") >= 4  # each miss with its reason, and all of them at the bar
    assert "-0.0" not in out


def test_all_rows_are_shown_on_demand(capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capfd, "--all")
    assert "rep_t5_1_out_desc_128" in out
    assert "not yet" in out


def test_the_fit_is_repeated(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "--fit")
    assert status == 0
    assert "several_h2c" in out


def test_other_stored_numbers_are_noticed_and_can_be_replaced(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = parameters.stored()
    file = tmp_path / "fitted.json"
    text = parameters.STORED.read_text()
    file.write_text(text.replace(f'"call_ns": {right.call_ns}', '"call_ns": 40000.0'))
    assert file.read_text() != text
    monkeypatch.setattr(parameters, "STORED", file)
    parameters.stored.cache_clear()
    try:
        status, _, err = run(capfd, "--fit")
        assert status == 1
        assert "not those of the fit" in err
        assert run(capfd, "--fit", "--write")[0] == 0
        assert file.read_text() == text
    finally:
        parameters.stored.cache_clear()


def test_a_link_alone(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "--link", "gen3 x16")
    assert status == 0
    assert "15.754" in out
    row = next(line.split() for line in out.splitlines() if line.startswith("128"))
    assert row[:2] == ["128", "13.23"]


@pytest.mark.parametrize(("words", "message"), [(("--link", "gen9 x1"), "not a link"), (("--write",), "give both")])
def test_wrong_command_lines(capfd: pytest.CaptureFixture[str], words: tuple[str, ...], message: str) -> None:
    status, _, err = run(capfd, *words)
    assert status == 2
    assert message in err


@pytest.fixture
def file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    """What the command writes."""
    path = tmp_path / "deeper" / "model.json"
    assert run(capfd, "--json", str(path))[0] == 0
    return path


def test_the_json_has_each_row_with_its_mark(file: Path) -> None:
    document = json.loads(file.read_text())
    assert (document["schema"], document["name"]) == (1, "probe_model")
    assert len(document["bandwidths"]) == 13
    for row in document["bandwidths"] + document["rows"]:
        assert row["mark"], row["ids"]
        assert (row["model_low"] is None) == (
            row["mark"] in ("used", "not yet", "not here", "background", "reproduced")
        )
    assert {row["mark"] for row in document["heldout"]} == {"predicted", "missed", "bound"}
    assert all(bar["pass"] for bar in document["bars"].values())
    assert [path.name for path in file.parent.iterdir()] == [file.name]  # nothing remains beside it


def test_the_report_draws_it(file: Path) -> None:
    page = build([file])
    assert page.count('<svg class="wide" ') == 5
    for anchor in ("model-bandwidths", "model-sizes", "model-channels", "model-heldout", "model-rows"):
        assert f'id="r0-{anchor}"' in page
    assert "docs/design/probe-model.md" in page
    assert "4 of 4" in page


def test_each_plot_shows_something(file: Path) -> None:
    sections = model_sections(json.loads(file.read_text()))
    assert [section.title for section in stored_sections()] == [section.title for section in sections]
    for section in sections:
        figure = styled(section.draw)
        drawn = sum(len(axes.lines) + len(axes.patches) for axes in figure.axes)
        assert drawn >= len(figure.axes), section.title
        assert section.rows, section.title


def test_another_document_is_refused(file: Path) -> None:
    document = json.loads(file.read_text())
    del document["heldout"]
    with pytest.raises(BenchError, match=r"model\.json: not what"):
        CHAPTERS["probe_model"](document, "model.json")


def test_labels_are_escaped(file: Path) -> None:
    document = json.loads(file.read_text())
    document["heldout"][0]["name"] = "<script>"
    file.write_text(json.dumps(document))
    page = build([file])
    assert "<script>" not in page
    ET.fromstring(page[page.index("<svg ") : page.index("</svg>") + len("</svg>")])
