# SPDX-License-Identifier: Apache-2.0
"""The proofs go through, and with a bug in the cell they do not."""

from __future__ import annotations

import formal
import hdl_tools
import pytest

# (proof, and the cell if it is within; the cell's text, and a plausible wrong text)
BUGS = [
    ("cdc_bus_resets0", "asked_q == taken && !s_rst", "!s_rst"),
    ("cdc_bus_resets1", "asked != taken_q && !m_rst", "asked != taken_q"),
    ("cdc_fifo_depth2_resets0", "return pointer ^ (pointer >> 1)", "return pointer"),
    (
        "cdc_fifo_depth2_resets0",
        "write_gray_q != (read_seen ^ (pointer_t'(2'b11) << (AddressWidth - 1))) && !s_rst",
        "!s_rst",
    ),
    ("byte_shift_multipliers1", "product_q[i+3]", "product_q[i+2]"),
    ("byte_shift_multipliers1", "4'b1000 >> down_i", "4'b0001 << down_i"),
    ("stream_register_width8", "if (move) valid_q <= s_valid && s_ready", "valid_q <= s_valid && s_ready"),
    ("stream_register_width8", "!valid_q || m_ready", "!valid_q"),
    ("stream_register_width8_half1", "Half ? !valid_q", "Half ? 1'b1"),
    ("stream_register_width8_cutready1", "assign s_ready = !aside_valid_q", "assign s_ready = 1'b1"),
    ("stream_register_width8_cutready1", "aside_valid_q ? aside_q : s_payload", "s_payload"),
    ("tag_table_tags4_inorder0", "complete_flies = in_flight_q[complete_tag_i]", "complete_flies = 1'b1"),
    ("tag_table_tags4_inorder0", "allocate && allocated_q[TagWidth-1:0] == '1", "allocate && retire"),
    ("tag_table_tags4_inorder1", "count_o != '0 && retire_turn == retire_done", "retire_turn == retire_done"),
    ("stream_fifo_level_depth4", "s_ready       = !count_q[AddressWidth]", "s_ready       = 1'b1"),
    ("stream_fifo_level_depth4", "if (put != take) begin", "if (put) begin"),
    ("stream_fifo_level_depth4", "put || count_q[CountWidth-1:1] != '0", "put || count_q != '0"),
    ("stream_fifo_level_depth4_block1", "count_q != CountWidth'(held)", "count_q != '0"),
    ("packet_fifo_depth4_block0", "(s_last && (s_bad || lost)) write_q", "(s_last && s_bad) write_q"),
    ("packet_fifo_depth4_block1", "lost_q <= lost && !s_last", "lost_q <= full && !s_last"),
    ("stream_arbiter_inputs3_fixed0_packets0", "hold_q   <= !m_ready ||", "hold_q   <="),
    ("stream_arbiter_inputs3_fixed0_packets1", "hold_q   <= !m_ready || (Packets && !m_last)", "hold_q   <= !m_ready"),
    (
        "stream_arbiter_inputs3_fixed1_packets0",
        "i = int'(Inputs) - 1; i >= 0; i--) if",
        "i = 0; i < int'(Inputs); i++) if",
    ),
    ("stream_arbiter_inputs3_fair1", "i > int'(m_index)", "i >= int'(m_index)"),
    ("kv_queue", "rewind_i ? done_q : onward", "rewind_i ? take_q : onward"),
    ("kv_queue", "write_q != take_q", "write_q != done_q"),
    ("kv_pool_freers2", "if (move && pick[i]) take_q", "if (take_i && pick[i]) take_q"),
    ("kv_line_cache_way0", "worthless_q | write_match | ", "worthless_q | "),
    ("kv_line_cache_way0", "&& !line_write_i.write && !fill_wait_i", "&& !line_write_i.write"),
    ("bypass_pair_timer0", "m_valid == '0 && !run_q", "!run_q"),
    ("bypass_pair_timer0/bypass_rx_ring", "given_q > index_t'(i)", "given_q >= index_t'(i)"),
    (
        "bypass_pair_timer0/bypass_rx_ring",
        "want: (released_q + limit_i) & Mask",
        "want: (released_q + limit_i + 1'b1) & Mask",
    ),
    ("bypass_pair_timer0/bypass_tx_ring", ": given_q < limit", ": given_q <= limit"),
    (
        "bypass_pair_timer0/bypass_doorbell",
        "ring_q <= (m_valid || rings) && !gave_o.valid",
        "ring_q <= m_valid && !gave_o.valid || rings",
    ),
    ("bypass_pair_timer0/bypass_doorbell", "unanswered_q < credits", "unanswered_q <= credits"),
    ("bypass_doorbell_timer0", "reaches ? '0 : unanswered_q - 1'b1", "'0"),
    ("bypass_doorbell_timer1", "!waits) wait_q <= settings_i.timer", "!waits) wait_q <= settings_i.timer + 16'd5"),
    ("dma_requester", "= free && offered_one", "= offered_one"),
    ("dma_requester", "begins && of_this_life && flies", "begins && flies"),
    ("dma_requester", "(expire && about.overdue)", "expire"),
    ("dma_requester", "in_flight && !about.overdue &&", "in_flight &&"),
    ("bypass_post", "post.pair == queue_t'(q)) tail = tail_i[q]", "post.pair != queue_t'(q)) tail = tail_i[q]"),
    ("bypass_verdicts", "here && good && taken", "here && taken"),
    ("bypass_echo", "(place2_q || answered2_q)", "answered2_q"),
    ("bypass_echo", "kind2_q == Reflected && to_one2_q ?", "kind2_q == Reflected ?"),
    ("bypass_echo", "if (s_valid) next_first_q <= s_payload.last", "next_first_q <= s_payload.last"),
    ("dma_turns_fair0", "offset_next  = life_i.clear || ends ?", "offset_next  = life_i.clear ?"),
    ("dma_turns_fair0", "free       = !m_turn_valid[side_q] || m_turn_ready[side_q]", "free       = 1'b1"),
    ("dma_turns_fair0", "&& !flying_q[FlightBits]", ""),
    ("dma_turns_fair0", "begun_next   = !life_i.clear && !ends", "begun_next   = !life_i.clear"),
]


@pytest.mark.parametrize("proof", formal.PROOFS, ids=lambda proof: proof.name)
def test_proof(proof: formal.Proof) -> None:
    outcome = formal.prove(proof)
    assert outcome.proved, "\n".join(outcome.lines)


@pytest.mark.parametrize(("name", "before", "after"), BUGS)
def test_a_bug_is_found(name: str, before: str, after: str) -> None:
    name, _, cell = name.partition("/")
    proof = next(proof for proof in formal.PROOFS if proof.name == name)
    path = next(path for path in hdl_tools.modules() if path.stem == (cell or proof.cell))
    text = (hdl_tools.ROOT / path).read_text()
    assert text.count(before) == 1
    directory = formal.BUILD / "changed"
    directory.mkdir(parents=True, exist_ok=True)
    changed = directory / path.name
    changed.write_text(text.replace(before, after))
    outcome = formal.prove(proof, (changed,))
    assert not outcome.proved
    assert any(line.startswith("FAILED") and "cover" not in line for line in outcome.lines), outcome.lines
