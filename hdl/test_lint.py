# SPDX-License-Identifier: Apache-2.0
"""Tests the findings of tools/lint_hdl.py about the text of modules."""

from __future__ import annotations

import re

import hdl_tools
import lint_hdl
import pytest

MARK = '(* ASYNC_REG = "TRUE" *)\n'
TWO_CLOCKS = """
  {mark}logic [1:0] there_q = '0;
  always_ff @(posedge a_clk_i) here_q <= !here_q;
  always_ff @(posedge b_clk_i) there_q <= {{there_q[0], here_q}};
"""


def test_every_synchroniser_is_marked_and_none_may_lose_its_mark() -> None:
    crossing = set()
    for path in hdl_tools.modules():
        text = (hdl_tools.ROOT / path).read_text()
        assert lint_hdl.unmarked_synchronisers(text) == [], path
        parts = text.split(MARK)
        for i in range(1, len(parts)):
            assert len(lint_hdl.unmarked_synchronisers(MARK.join(parts[:i]) + MARK.join(parts[i:]))) == 1, path
            crossing.add(path.stem)
    assert crossing == lint_hdl.SYNCHRONISERS


def test_what_meets_another_clock_goes_through_a_synchroniser_cell() -> None:
    """Covers every module with two clocks, and the HBM's module, which has level signals from the IP."""
    using = {}
    for path in hdl_tools.modules():
        text = (hdl_tools.ROOT / path).read_text()
        using[path.stem] = len(re.findall(r"^\s*(?:sync|reset_sync|cdc_\w+) (?:#\(|i_)", text, re.MULTILINE))
        if len(set(re.findall(r"@\(posedge (\w+)\)", text))) > 1:
            assert using[path.stem] >= 2, path  # one for each direction
    assert using["kv_box_hbm"] == using["kv_box_reset"] == using["kv_box_registers"] == 2


def test_a_shift_between_clocks_is_a_synchroniser_whatever_its_name() -> None:
    assert lint_hdl.unmarked_synchronisers(TWO_CLOCKS.format(mark="")) == ["there_q"]
    assert lint_hdl.unmarked_synchronisers(TWO_CLOCKS.format(mark=MARK)) == []
    one_clock = TWO_CLOCKS.format(mark="").replace("b_clk_i", "a_clk_i")
    assert lint_hdl.unmarked_synchronisers(one_clock) == []


def test_ports_are_connected_by_name() -> None:
    by_name = "  cell #(\n      .Width(8)\n  ) i_one (\n      // first\n      .clk_i,\n      .value_i({a, b})\n  );\n"
    by_macro = "  cell i_one (\n      `STREAM_PORTS(s, a, b, c),\n      .clk_i\n  );\n"
    by_place = "  cell i_one (\n      clk_i,\n      {a, b}\n  );\n"
    assert lint_hdl.connected_by_place(by_name) == lint_hdl.connected_by_place(by_macro) == []
    assert lint_hdl.connected_by_place(by_place) == ["i_one"]
    assert lint_hdl.connected_by_place(by_name.replace(".clk_i", "clk_i")) == ["i_one"]


def test_all_state_has_a_reset_but_what_is_begun_before_its_use() -> None:
    for path in hdl_tools.modules():
        missing = lint_hdl.state_without_reset((hdl_tools.ROOT / path).read_text())
        assert missing == lint_hdl.BEGUN_BEFORE_USE.get(path.stem, set()), path


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("kv_recovery_fetch", "tag_q"),
        ("kv_recovery_retry", "note_q"),
        ("kv_recovery_entered", "again_q"),
        ("kv_recovery_leftover_settle", "ask_q"),
    ],
)
def test_state_without_a_reset_is_found(module: str, name: str) -> None:
    text = next(hdl_tools.ROOT.glob(f"hdl/kv/**/{module}.sv")).read_text()
    # The last assignment is the one in the reset: alone after its `if`, or a line of its block.
    without, count = re.subn(
        rf"(.*\n)(?:\s*if \(rst_i\))?\s+{name}\s+<= [^;]*;(.*)", r"\1\2", text, count=1, flags=re.S
    )
    assert count == 1
    assert lint_hdl.state_without_reset(without) == lint_hdl.BEGUN_BEFORE_USE.get(module, set()) | {name}
