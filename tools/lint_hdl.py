# SPDX-License-Identifier: Apache-2.0
"""Lints all SystemVerilog with Verible (format, style), Verilator -Wall (each module as its own top) and Yosys' reader.
Also checks that synchroniser flip-flops are marked and that state has a reset.

`--fix` formats the files first.
"""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hdl_tools as hdl

# State without a reset. It is written when its walk, frame or epoch begins, and not used before.
BEGUN_BEFORE_USE = {
    "axi_to_lite": {"data_q", "left_q", "word_q"},
    "bypass_expand": {"odd_base_q", "word_q"},  # data of the requested beat
    "kv_box_250mhz": {"host_out_middle_q", "net_out_middle_q"},  # cleared while the box is closed, as at its start
    # Used only within a burst or word that has begun.
    "kv_host_path": {"aw_sent_q", "ended_q", "high_sent_q", "low_sent_q", "to_give_q", "write_error_q", "write_word_q"},
    "kv_recovery_epoch": {"step_q"},
    "kv_recovery_fetch": {"again_q", "at_q", "lane_q", "missing_q", "silent_q", "walk_q"},
    "kv_recovery_request": {"found_q"},
    "kv_recovery_leftover_list": {"next_q", "there_q"},
    "kv_parser": {"filled_q", "has_place3_q"},
    "kv_records": {"filter_write_q", "lane_write_q", "note_write_q"},  # data; the writes themselves are reset
    "kv_recovery_leftover_settle": {"step_q"},
    "kv_tx_pool_reader": {"beat_q"},
    "kv_walk": {"adds_q", "few_q", "free_q", "keys_q"},
    "range_split": {"first_q"},
}

# The cells in which a value crosses to another clock. All others instantiate them.
SYNCHRONISERS = {"sync", "reset_sync"}


def run(command: list[str]) -> str:
    """Runs a command; returns its output if it failed, otherwise an empty text."""
    result = subprocess.run(command, capture_output=True, text=True, cwd=hdl.ROOT, check=False)
    return "" if result.returncode == 0 else f"$ {' '.join(command)}\n{result.stdout}{result.stderr}"


def verible(fix: bool) -> list[str]:
    """Checks format and style of every file."""
    files = [str(path) for path in hdl.files("*.sv", "*.svh")]
    files += sorted(str(path.relative_to(hdl.ROOT)) for path in hdl.ROOT.glob("hdl/**/formal/*.sv"))
    formatter = [str(hdl.BIN / "verible-verilog-format"), "--column_limit=120", "--inplace"]
    linter = [str(hdl.BIN / "verible-verilog-lint"), "--rules_config=hdl/verible.rules"]
    linter += ["--waiver_files=hdl/verible.waivers", "--ruleset=default"]
    return [run(formatter + ([] if fix else ["--verify"]) + files), run(linter + files)]


def verilator(path: Path) -> str:
    """Checks one module as the top, with the packages and the folders of its cells, or one package."""
    packages = [str(p) for p in hdl.files("*_pkg.sv")]
    command = [str(hdl.VERILATOR), "--lint-only", "--quiet", "-Wall", "--assert"]
    command += [f"-I{folder}" for folder in hdl.folders()]
    if str(path) in packages:  # with the packages before it, which it may need
        return run([*command, *packages[: packages.index(str(path)) + 1]])
    return run([*command, "--top-module", path.stem, *packages, str(path)])


def yosys() -> str:
    """Elaborates every module, and checks it for loops, latches, undriven nets and doubly driven nets."""
    script = ""
    for path in hdl.modules():
        script += f"{hdl.read(path.stem)}; proc; select -assert-none t:$dlatch; check -assert; design -reset; "
    result = hdl.yosys(script)
    return "" if result.returncode == 0 else result.stdout[-4000:] + result.stderr[-4000:]


def unmarked_synchronisers(text: str) -> list[str]:
    """Flip-flops without ASYNC_REG that shift in a signal of another clock.

    These are registers named *_sync_q. In a module with several clocks, also all registers that only shift a value on:
    q <= {q[0], d}.
    """
    names = set(re.findall(r"\b\w+_sync_q\b", text))
    if len(set(re.findall(r"@\(posedge (\w+)\)", text))) > 1:
        names |= set(re.findall(r"\b(\w+) <= \{\1\[[^\]]*\], [^}]*\};", text))
    marked = set(re.findall(r'\(\* ASYNC_REG = "TRUE" \*\)\s*logic (?:\[[^;=]*\] ?)?(\w+)', text))
    return sorted(names - marked)


def connected_by_place(text: str) -> list[str]:
    """Instances whose ports are connected by position. Mixing is not allowed, so the first port suffices. Macros of
    ports use names."""
    text = re.sub(r"//.*", "", text)
    return [match[1] for match in re.finditer(r"\b(i_\w+)\s*(?:\[[^\]]*\]\s*)?\(\s*[^\s.`)]", text)]


def blocks(text: str, head: str) -> list[str]:
    """The statement after each match of `head`: up to the semicolon, or from begin to end."""
    found = []
    for match in re.finditer(head, text):
        rest = text[match.end() :]
        depth, end = 0, rest.find(";") + 1
        for word in re.finditer(r"\b(?:begin|end)\b", rest) if rest.startswith("begin") else ():
            depth += 1 if word[0] == "begin" else -1
            if depth == 0:
                end = word.end()
                break
        found.append(rest[:end])
    return found


def state_without_reset(text: str) -> set[str]:
    """Names of flip-flops that are set to constants or count, but have no reset and no initial value.

    In Verilator flip-flops begin with 0, so a simulation does not show a missing reset.
    """
    text = re.sub(r"//.*", "", text)
    constant = r"(?:'[01]|\d*'[bdh]\w+|[A-Z]\w*)"
    state, reset = set(), set(re.findall(r"\b(\w+_q) = ", text))
    for body in blocks(text, r"always_ff @\(posedge \w+\)\s*"):
        state |= set(re.findall(rf"\b(\w+_q) <= {constant};", re.sub(" +", " ", body)))
        state |= set(re.findall(r"\b(\w+_q)\s*<= \1 [-+] 1'b1;", body))
        for block in blocks(body, r"\bif \((?:[^;()]* )?rst_i\b[^;()]*\)\s*"):
            reset |= set(re.findall(r"\b(\w+_q)(?:\[[^\]]*\])?\s*<=", block))
    return state - reset


def main(arguments: list[str]) -> int:
    """0, or 1 with all complaints."""
    complaints = verible("--fix" in arguments)
    with ThreadPoolExecutor(2) as pool:
        complaints += pool.map(verilator, hdl.files("*.sv"))
    for path in hdl.files("*.sv"):
        if not path.stem.endswith("_pkg") and not re.search(
            rf"^module {path.stem}\b", (hdl.ROOT / path).read_text(), re.MULTILINE
        ):
            complaints.append(f"{path}: holds no module of its name\n")
        for name in unmarked_synchronisers((hdl.ROOT / path).read_text()):
            complaints.append(f'{path}: {name} crosses clocks and needs (* ASYNC_REG = "TRUE" *)\n')
        if "ASYNC_REG" in (hdl.ROOT / path).read_text() and path.stem not in SYNCHRONISERS:
            complaints.append(f"{path}: has a synchroniser of its own in place of sync or reset_sync\n")
        complaints += [
            f"{path}: {name} is connected by place\n" for name in connected_by_place((hdl.ROOT / path).read_text())
        ]
        missing = state_without_reset((hdl.ROOT / path).read_text())
        for name in sorted(missing ^ BEGUN_BEFORE_USE.get(path.stem, set())):
            said = "has no reset" if name in missing else "needs no entry in BEGUN_BEFORE_USE"
            complaints.append(f"{path}: {name} {said}\n")
    complaints.append(yosys())
    complaints = [text for text in complaints if text]
    print("".join(complaints), end="", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
