# SPDX-License-Identifier: Apache-2.0
"""Lints all SystemVerilog: Verible (format, style), Verilator -Wall with each module as its own top, Yosys' reader;
flip-flops between clocks are marked as such.

`--fix` puts the files into the house format first.
"""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hdl_tools as hdl


def run(command: list[str]) -> str:
    """What a failing command said; empty when it was content."""
    result = subprocess.run(command, capture_output=True, text=True, cwd=hdl.ROOT, check=False)
    return "" if result.returncode == 0 else f"$ {' '.join(command)}\n{result.stdout}{result.stderr}"


def verible(fix: bool) -> list[str]:
    """Format and style of every file."""
    files = [str(path) for path in hdl.files("*.sv", "*.svh")]
    files += sorted(str(path.relative_to(hdl.ROOT)) for path in hdl.ROOT.glob("hdl/**/formal/*.sv"))
    formatter = [str(hdl.BIN / "verible-verilog-format"), "--column_limit=120", "--inplace"]
    linter = [str(hdl.BIN / "verible-verilog-lint"), "--rules_config=hdl/verible.rules"]
    linter += ["--waiver_files=hdl/verible.waivers", "--ruleset=default"]
    return [run(formatter + ([] if fix else ["--verify"]) + files), run(linter + files)]


def verilator(path: Path) -> str:
    """One module as the top, with the packages and the folders where its cells are; or one package."""
    packages = [str(p) for p in hdl.files("*_pkg.sv")]
    command = [str(hdl.VERILATOR), "--lint-only", "--quiet", "-Wall", "--assert"]
    command += [f"-I{folder}" for folder in hdl.folders()]
    if str(path) in packages:  # with those before it, which it may need
        return run([*command, *packages[: packages.index(str(path)) + 1]])
    return run([*command, "--top-module", path.stem, *packages, str(path)])


def yosys() -> str:
    """Every module elaborated, and checked for loops, latches, undriven and doubly driven nets."""
    script = ""
    for path in hdl.modules():
        script += f"{hdl.read(path.stem)}; proc; select -assert-none t:$dlatch; check -assert; design -reset; "
    result = hdl.yosys(script)
    return "" if result.returncode == 0 else result.stdout[-4000:] + result.stderr[-4000:]


def unmarked_synchronisers(text: str) -> list[str]:
    """Names of flip-flops that shift in what another clock may change, declared without ASYNC_REG.

    They are those that are named so, and in a module with several clocks all that a value goes through: q <= {q[0], d}.
    """
    names = set(re.findall(r"\b\w+_sync_q\b", text))
    if len(set(re.findall(r"@\(posedge (\w+)\)", text))) > 1:
        names |= set(re.findall(r"\b(\w+) <= \{\1\[[^\]]*\], [^}]*\};", text))
    marked = set(re.findall(r'\(\* ASYNC_REG = "TRUE" \*\)\s*logic (?:\[[^;=]*\] ?)?(\w+)', text))
    return sorted(names - marked)


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
    complaints.append(yosys())
    complaints = [text for text in complaints if text]
    print("".join(complaints), end="", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
