# SPDX-License-Identifier: Apache-2.0
"""Sizes and numbers in the form in which users write them."""

from __future__ import annotations

import pytest
import typer

from wherry.cli import whole_number
from wherry.cli.agent import metric_text
from wherry.units import bytes_text, counted, number_text, span_text, time_text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (4771, "4.7 KiB"), (1 << 30, "1.0 GiB"), (60 << 40, "60.0 TiB")],
)
def test_bytes(number: int, text: str) -> None:
    assert bytes_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 frames"), (1, "1 frame"), (2, "2 frames"), (12000, "12,000 frames")]
)
def test_one_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "frame") == text
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(1, "entry", "entries") == "1 entry"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (10485, "10,485"), (7168.4, "7,168"), (0.123456, "0.123"), (12.34, "12.3"), (1e9, "1,000,000,000"),
     (999.94, "1,000"), (float("nan"), "nan")],
)  # fmt: skip
def test_numbers(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (3.2e-7, "320 ns"), (1.23e-5, "12.3 us"), (0.0045, "4.5 ms"), (1, "1 s"), (90.5, "90.5 s"),
     (0.0009999, "1,000 us")],
)  # fmt: skip
def test_times(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (86400, "1 day 0 h"), (277200, "3 days 5 h"),
     (-1, "0 s")],
)  # fmt: skip
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("wherry_agent_budget_bytes", 1073741824.0, "1.0 GiB"),
     ("wherry_move_bytes_total", 2048.0, "2.0 KiB"),
     ("wherry_move_transfer_nanoseconds_total", 2.5e6, "2.5 ms"),
     ("wherry_move_transfer_seconds", 1.25e-5, "12.5 us"),
     ("wherry_move_offloads_total", 1234567.0, "1,234,567"),
     ('wherry_stream_frames_total{stream="a_bytes"}', 3.0, "3")],
)  # fmt: skip
def test_metrics_have_the_unit_of_their_name(name: str, value: float, text: str) -> None:
    assert metric_text(name, value) == text


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("10000", 10000), ("1e4", 10000), ("2.5e3", 2500), ("-3", -3)])
def test_whole_numbers(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e400", "nan", "inf", "1e17", "0x10"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a whole number, as 10000 or 1e4"):
        whole_number(text)
