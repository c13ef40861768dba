# SPDX-License-Identifier: Apache-2.0
"""Runs shell_bench."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from wherry.errors import BenchError
from wherry.system import built


def simulate(values: Mapping[str, int] | None = None) -> dict[str, Any]:
    """What it writes, with other values of some parameters. Raises BenchError; NotFound when it was not built."""
    program = built("sim/shell", "shell_bench")
    words = [word for name, value in (values or {}).items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run([str(program), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"shell_bench failed ({done.returncode}): {done.stderr.strip() or 'it said nothing'}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
