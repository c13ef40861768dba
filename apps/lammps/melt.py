# SPDX-License-Identifier: Apache-2.0
"""The application of the main job: a Lennard-Jones melt in LAMMPS, in this process, and its arrays without a copy."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wherry.errors import Error


class JobFailed(Error):
    """The job failed; the message has the cause."""


MELT = """
units           lj
atom_style      atomic
lattice         fcc 0.8442
region          box block 0 {cells} 0 {cells} 0 {cells}
create_box      1 box
create_atoms    1 box
mass            1 1.0
velocity        all create 1.44 87287 loop geom
pair_style      lj/cut 2.5
pair_coeff      1 1 1.0 1.0 2.5
neighbor        0.3 bin
neigh_modify    delay 0 every 20 check no
{first}
fix             nve all nve
timestep        0.005
thermo          1000000
run             0 post no
"""
"""LAMMPS's own benchmark in.lj, whose 32,000 atoms are 20 cells. Source: bench/in.lj of the LAMMPS distribution.
`first`: the commands before the time integration."""

Columns = dict[str, np.ndarray[Any, np.dtype[Any]]]
"""Arrays by name, of shape (atoms,) or (atoms, k)."""


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM that arrive during the block take effect after it. On the main thread."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda which, _: came.append(which)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for which in came:
            signal.raise_signal(which)


def start_mpi() -> None:
    """Starts MPI in this process, which is the only one of its job, and removes the name of its segment from /dev/shm.

    MPICH makes a segment of shared memory there, and removes its name in MPI_Finalize. A process that ends in another
    way, such as by Ctrl-C, would leave the name behind. No other process will look for it, so its name goes at once.
    """
    with _signals_held():
        mpi = load_mpi()
        started = ctypes.c_int()
        mpi.MPI_Initialized(ctypes.byref(started))
        if not started.value:
            mpi.MPI_Init(None, None)
        mapped = {line.split(maxsplit=5)[-1].strip() for line in Path("/proc/self/maps").read_text().splitlines()}
        for name in mapped:
            if name.startswith("/dev/shm/mpich_shm_"):
                Path(name).unlink(missing_ok=True)


def load_mpi() -> ctypes.CDLL:
    """Loads the libmpi.so.12 of the mpich wheel, which LAMMPS's library needs but does not find by itself.

    Call it after `import wherry`: the wheel brings an older UCX under the same library names, and the whole process
    uses the UCX that it loads first. MPICH runs with Wherry's UCX. Wherry does not run with MPICH's UCX.
    """
    library = Path(sys.prefix) / "lib" / "libmpi.so.12"
    try:
        return ctypes.CDLL(str(library if library.exists() else "libmpi.so.12"), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise JobFailed(
            f"LAMMPS needs MPI, and it does not load ({error}): run tools/setup.sh, or install mpich"
        ) from None


class Melt:
    """A Lennard-Jones melt of `cells`^3 fcc unit cells of 4 atoms, in this process, on one rank."""

    def __init__(self, cells: int, first: Sequence[str] = ()) -> None:
        """`first`: commands before the time integration is defined, so that their fixes come first in each step."""
        start_mpi()
        from lammps import lammps

        self._lammps = lammps(cmdargs=["-log", "none", "-screen", "none", "-nocite"])
        self._lammps.commands_string(MELT.format(cells=cells, first="\n".join(first)))
        self.step = 0
        self.version = str(self._lammps.version())

    def advance(self, steps: int, *, prepare: bool = False) -> None:
        """Runs `steps` time steps. Every array that columns() returned before is overwritten, or freed.

        `prepare`: set LAMMPS up again first, as a new fix or dump requires.
        """
        self._lammps.command(f"run {steps} pre {'yes' if prepare else 'no'} post no")
        self.step += steps

    def command(self, text: str) -> None:
        """Runs a command of LAMMPS's input scripts."""
        self._lammps.command(text)

    def fix_vector(self, name: str, length: int) -> tuple[float, ...]:
        """Returns the vector of the fix `name`: f_name[1], f_name[2], ..."""
        style, kind = 0, 1  # LMP_STYLE_GLOBAL, LMP_TYPE_VECTOR
        return tuple(float(self._lammps.extract_fix(name, style, kind, i)) for i in range(length))

    def columns(self) -> Columns:
        """LAMMPS's own arrays, without a copy: id, type (atoms,) int32; x, v (atoms, 3) float64. Valid until advance().

        Ghost atoms follow the own atoms in the arrays. Only own atoms are returned. LAMMPS moves them when they
        grow. So they are requested again for each frame, and not registered for longer than one offload.
        """
        atoms = self._lammps.extract_setting("nlocal")
        arrays = self._lammps.numpy
        return {name: arrays.extract_atom(name)[:atoms] for name in ("id", "type", "x", "v")}

    def temperature(self) -> float:
        """LAMMPS's thermo keyword `temp`, in full: reduced units, 3 (N - 1) degrees of freedom."""
        return float(self._lammps.get_thermo("temp"))

    def kinetic_energy(self) -> float:
        """LAMMPS's thermo keyword `ke`, per atom as `units lj` normalises it."""
        return float(self._lammps.get_thermo("ke"))

    def close(self) -> None:
        """Ends LAMMPS and frees its arrays."""
        self._lammps.close()
