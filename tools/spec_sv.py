# SPDX-License-Identifier: Apache-2.0
"""SystemVerilog packages of spec/*.toml: packed structs, enums, localparams."""

from collections.abc import Callable
from pathlib import Path

from spec_cpp import NOTICE
from spec_model import HEADERS, Enum, Frame, Register, RegisterMap, Struct, camel, crc_masks

LINT_OFF = """  // A package is for many modules, none of which uses all of it.
  /* verilator lint_off UNUSEDPARAM */
"""
LINT_ON = "  /* verilator lint_on UNUSEDPARAM */\n"


def _struct(s: Struct) -> str:
    width = max(len(f"logic [{f.bits - 1}:0]") for f in s.fields)
    rows = []
    for f in s.fields:
        kind = f"logic [{f.bits - 1}:0]" if f.bits > 1 else "logic"
        rows.append(f"    {kind.ljust(width)} {f.name};{'  // ' + f.doc if f.doc else ''}")
    return f"  /// {s.doc}\n  typedef struct packed {{\n" + "\n".join(rows) + f"\n  }} {s.name}_t;\n"


def _enum(e: Enum) -> str:
    rows = []
    for i, (name, value, doc) in enumerate(e.values):
        comma = "," if i + 1 < len(e.values) else ""
        rows.append(f"    {camel(e.name)}{camel(name)} = {e.bits}'d{value}{comma}{'  // ' + doc if doc else ''}")
    return f"  /// {e.doc}\n  typedef enum logic [{e.bits - 1}:0] {{\n" + "\n".join(rows) + f"\n  }} {e.name}_e;\n"


def frame_package(frame: Frame, source: str) -> str:
    """hdl/kv/generated/kv_frame_pkg.sv."""
    constants = "\n".join(
        f"  localparam int unsigned {camel(n)} = {v};{'  // ' + doc if doc else ''}"
        for n, (v, doc) in frame.constants.items()
    )
    enums = "\n".join(_enum(e) for e in frame.enums)
    structs = "\n".join(_struct(s) for s in frame.structs.values())
    members = "\n".join(f"    {n}_t {n};" for n in HEADERS)
    masks, flip = crc_masks(frame.polynomial)
    rows = ",\n".join(f"    64'h{mask:016x}" for mask in reversed(masks))
    return f"""{NOTICE.format(source=source)}//
// {frame.doc}
package kv_frame_pkg;

{LINT_OFF}
{constants}

{enums}
{structs}
  /// All headers of a frame. The first byte on the wire is the most significant one here, and tdata[7:0] of the beat:
  /// to_headers and to_beat turn the bytes round.
  typedef struct packed {{
{members}
  }} headers_t;

  function automatic logic [511:0] reversed_bytes(logic [511:0] beat);
    for (int unsigned i = 0; i < 64; i++) reversed_bytes[8*i+:8] = beat[8*(63-i)+:8];
  endfunction
  function automatic headers_t to_headers(logic [511:0] beat);
    return headers_t'(reversed_bytes(beat));
  endfunction
  function automatic logic [511:0] to_beat(headers_t headers);
    return reversed_bytes(headers);
  endfunction

  /// Bit i of the hash is the parity of key & HashMask[i], inverted where HashFlip has bit i.
  localparam logic [31:0][63:0] HashMask = {{
{rows}
  }};
  localparam logic [31:0] HashFlip = 32'h{flip:08x};

  /// {frame.hash_doc}.
  function automatic logic [31:0] hash_of(logic [63:0] key);
    for (int unsigned i = 0; i < 32; i++) hash_of[i] = ^(key & HashMask[i]) ^ HashFlip[i];
  endfunction
  /* verilator lint_off UNUSEDSIGNAL */  // these take some bits of the hash
  function automatic logic [7:0] slot_of(logic [31:0] hash);
    return hash[7:0];
  endfunction
  /// Where a new key goes if that way is free, and where a read looks first.
  function automatic logic [1:0] first_way_of(logic [31:0] hash);
    return hash[31:30];
  endfunction

  /// The first bucket, in a table of 2^bits buckets, 8 <= bits <= 32.
  function automatic logic [31:0] bucket_of(logic [31:0] hash, logic [5:0] bits);
    return hash & ((32'd1 << bits) - 32'd1);
  endfunction
  /// How many buckets a key has: 1, 2, 4 or 8.
  function automatic logic [3:0] candidates(logic [5:0] bits);
    return bits > 6'd10 ? 4'd8 : bits == 6'd10 ? 4'd4 : bits == 6'd9 ? 4'd2 : 4'd1;
  endfunction
  /// What the buckets of the second group differ by, from bit 10 on, from those of the first; 0: no second group.
  function automatic logic [9:0] second_group_of(logic [31:0] hash, logic [5:0] bits);
    logic [9:0] cut;
    cut = hash[31:22] & (bits >= 6'd20 ? 10'h3ff : (10'd1 << (bits - 6'd10)) - 10'd1);
    return bits <= 6'd10 ? 10'd0 : cut == 10'd0 ? 10'd1 : cut;
  endfunction
  /// A key's bucket, by its place in the order of looking: 0 is the first bucket.
  function automatic logic [31:0] bucket_at_index(logic [31:0] hash, logic [2:0] index, logic [5:0] bits);
    return bucket_of(hash ^ {{12'd0, index[2] ? second_group_of(hash, bits) : 10'd0, index[1:0], 8'd0}}, bits);
  endfunction
  /// The number that frames have for one of a key's buckets.
  function automatic logic [2:0] candidate_of(logic [31:0] hash, logic [31:0] bucket, logic [5:0] bits);
    logic [31:0] differ;
    differ = bucket_of(hash, bits) ^ bucket;
    return {{differ[31:10] != 22'd0, bucket[9:8]}};
  endfunction
  /// And back. Bits of the number that a small table has no room for are ignored.
  function automatic logic [31:0] bucket_of_candidate(logic [31:0] hash, logic [2:0] candidate, logic [5:0] bits);
    logic [31:0] group;
    group = hash ^ {{12'd0, candidate[2] ? second_group_of(hash, bits) : 10'd0, 10'd0}};
    return bucket_of({{group[31:10], candidate[1:0], group[7:0]}}, bits);
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

{LINT_ON}
endpackage
"""


def _register_struct(r: Register) -> str:
    """A register's fields, with the reserved bits between them."""
    rows, top = [], 32
    for f in [*sorted(r.fields, key=lambda f: -f.low), None]:
        end = f.low + f.bits if f else 0
        if end < top:
            rows.append(f"    logic [{top - end - 1}:0] reserved_{end};")
        if f:
            rows.append(f"    logic [{f.bits - 1}:0] {f.name};" if f.bits > 1 else f"    logic {f.name};")
            top = f.low
    return f"  /// The register `{r.name}`.\n  typedef struct packed {{\n" + "\n".join(rows) + f"\n  }} {r.name}_t;\n"


def _decode(registers: RegisterMap) -> str:
    """Functions for the words of the register file: which are written, staged and kept, and their initial values."""
    words = max(at for r in registers.registers if r.access == "rw" for at in r.offsets) // 4 + 1
    bits = (words - 1).bit_length()
    within = [r for r in registers.registers if r.offset // 4 < 1 << bits]

    def of(what: Callable[[Register], str], default: str) -> str:
        """A case item for each value except the default, with its single words and ranges."""
        found = {at // 4: what(r) for r in within for at in r.offsets}
        rows = []
        for value in sorted(set(found.values()) - {default}):
            runs: list[list[int]] = []
            for word in sorted(word for word, own in found.items() if own == value):
                if runs and runs[-1][1] == word - 1:
                    runs[-1][1] = word
                else:
                    runs.append([word, word])
            said = (f"{bits}'h{a:02x}" if a == b else f"[{bits}'h{a:02x} : {bits}'h{b:02x}]" for a, b in runs)
            rows.append(f"      {', '.join(said)}: return {value};")
        return "    case (word) inside\n" + "\n".join(rows) + f"\n      default: return {default};\n    endcase"

    names = "\n".join(f"  localparam word_t {camel(r.name)}Word = {bits}'h{r.offset // 4:02x};" for r in within)
    written = of(lambda r: "1'b1" if r.access == "rw" else "1'b0", "1'b0")
    staged = ""
    if registers.staged:
        staged = "  /// It takes effect when `epoch` is written.\n  function automatic logic is_staged(word_t word);\n"
        staged += of(lambda r: "1'b1" if r.staged else "1'b0", "1'b0") + "\n  endfunction\n"
    kept = of(lambda r: "'1" if r.access != "rw" or r.mask == 0xFFFFFFFF else f"32'h{r.mask:08x}", "'1")
    reset = of(lambda r: f"32'h{r.reset:08x}" if r.reset else "'0", "'0")
    structs = "\n".join(_register_struct(r) for r in within if r.fields)
    return f"""  /// A word of the file of registers, which reaches as far as what can be written: offset / 4.
  typedef logic [{bits - 1}:0] word_t;
{names}

{structs}
  /// It can be written.
  function automatic logic is_written(word_t word);
{written}
  endfunction
{staged}  /// Bits that are kept of what is written.
  function automatic logic [31:0] bits_of(word_t word);
{kept}
  endfunction
  /// What it is after a reset.
  function automatic logic [31:0] reset_of(word_t word);
{reset}
  endfunction
"""


def registers_package(registers: RegisterMap, source: str) -> str:
    """hdl/SERVICE/generated/SERVICE_registers_pkg.sv, where source is spec/SERVICE_registers.toml."""
    lines = []
    bits, digits = registers.address_bits, (registers.address_bits + 3) // 4
    for r in registers.registers:
        name = camel(r.name)
        lines.append(f"  /// {r.access}{', staged' if r.staged else ''}{': ' + r.doc if r.doc else ''}")
        lines.append(f"  localparam logic [{bits - 1}:0] {name}Offset = {bits}'h{r.offset:0{digits}x};")
        if r.count > 1:
            lines.append(f"  localparam int unsigned {name}Count = {r.count};")
            lines.append(f"  localparam int unsigned {name}Stride = {r.stride};")
        lines.append(f"  localparam logic [31:0] {name}Reset = 32'h{r.reset:08x};")
        for f in r.fields:
            note = f"  // {f.doc}" if f.doc else ""
            lines.append(f"  localparam int unsigned {name}{camel(f.name)}Low = {f.low};{note}")
            lines.append(f"  localparam int unsigned {name}{camel(f.name)}Bits = {f.bits};")
    body = "\n".join(lines)
    return f"""{NOTICE.format(source=source)}//
// {registers.doc}
package {Path(source).stem}_pkg;

{LINT_OFF}
  localparam int unsigned Bytes = {registers.bytes};

{body}

{_decode(registers)}
{LINT_ON}
endpackage
"""
