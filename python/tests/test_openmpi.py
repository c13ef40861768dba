# SPDX-License-Identifier: Apache-2.0
"""Ranks under Open MPI's launcher: through its PMIx server, and through the plugin, which the test builds for Open
MPI."""

from __future__ import annotations

import re
import subprocess
from importlib import util
from pathlib import Path

import openmpi
import pytest
from jobs import built

ROOT = Path(__file__).resolve().parents[2]
RANK = "bootstrap_rank"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the plugin as docs/guide/route-launch.md describes."""
    library = tmp_path_factory.mktemp("plugin") / "libwherry_mpi.so"
    source = ROOT / "src" / "route" / "mpi_plugin" / "plugin.cpp"
    line = [openmpi.program("mpicxx"), "-std=c++20", "-O2", "-fPIC", "-shared", "-o", str(library), str(source)]
    subprocess.run(line, check=True, env=openmpi.environment())
    return library


@pytest.fixture(scope="module")
def mpi_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = str(tmp_path_factory.mktemp("program") / "mpi_program")
    libraries = Path(built("libwherry.so")).parent
    line = [openmpi.program("mpicc"), "-std=c99", "-Wall", "-Werror", f"-I{ROOT}/include", "-o", program]
    line += [str(ROOT / "python" / "tests" / "mpi_program.c"), f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lwherry"]
    # Wherry and Open MPI each bring a UCX with the same soname. The program loads Wherry's complete UCX before Open
    # MPI's parts (docs/design/fabric.md). An option below keeps MPI from using UCX.
    package = util.find_spec("libucx")
    assert package is not None
    assert package.origin is not None
    ucx = Path(package.origin).parent / "lib"
    line += [
        "-Wl,--no-as-needed",
        *(f"{ucx}/lib{name}.so.0" for name in ("ucp", "uct", "ucs", "ucm")),
        f"-Wl,-rpath,{ucx}",
    ]
    subprocess.run([*line, "-Wl,--allow-shlib-undefined"], check=True, env=openmpi.environment())
    return program


def mpirun(ranks: int, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    options = ("--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,sm", "-n", str(ranks))
    return subprocess.run(
        [openmpi.program("mpirun"), *options, *words],
        env=openmpi.environment(**variables),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=600,
    )


def through(plugin: Path) -> dict[str, str]:
    return {"WHERRY_MPI_PLUGIN": str(plugin), "WHERRY_BOOTSTRAP": "mpi"}


@pytest.mark.parametrize("way", ["mpi", "pmix"])
def test_ranks_exchange_and_send(plugin: Path, way: str) -> None:
    variables = through(plugin) if way == "mpi" else {}
    done = mpirun(4, built(RANK), "exchange", "leave", "messages", **variables)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"rank (\d) of 4 node 0 job (\w+)", done.stdout)
    assert sorted(rank for rank, _ in found) == ["0", "1", "2", "3"]
    assert len({job for _, job in found}) == 1
    assert len(re.findall(r"rank \d of 4 on node 0 of 1, placement inline", done.stdout)) == 4


@pytest.mark.parametrize("way", ["mpi", "pmix"])
@pytest.mark.parametrize("how", ["exit=5", "kill"])
def test_a_rank_that_dies_ends_the_others(plugin: Path, how: str, way: str) -> None:
    variables = through(plugin) if way == "mpi" else {}
    done = mpirun(3, built(RANK), "exchange", f"1:{how}", "sleep=3000000", **variables)
    assert done.returncode == (5 if "5" in how else 137), done.stdout + done.stderr


@pytest.mark.parametrize("way", ["mpi", "pmix"])
def test_a_rank_that_does_not_come_expect_start_to_time_out(plugin: Path, way: str) -> None:
    variables = through(plugin) if way == "mpi" else {}
    done = mpirun(2, built(RANK), "1:sleep=3000000", "join=1500", **variables)
    assert done.returncode != 0
    assert "not all ranks came " in done.stderr, done.stderr


def test_the_plugin_of_another_mpi_is_refused() -> None:
    """The plugin of the build is for MPICH."""
    done = mpirun(2, built(RANK), "exchange", **through(Path(built("libwherry_mpi.so"))))
    assert done.returncode != 0
    assert "alone" not in done.stdout


@pytest.mark.parametrize("way", ["mpi", "pmix"])
def test_a_program_that_uses_mpi_itself(plugin: Path, mpi_program: str, way: str) -> None:
    """With PMIx, MPI and route share one libpmix, and no plugin is needed."""
    variables = through(plugin) if way == "mpi" else {"WHERRY_MPI_PLUGIN": "/nonexistent/libwherry_mpi.so"}
    done = mpirun(4, mpi_program, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the sums are equal") == 4, done.stdout


@pytest.mark.parametrize("way", ["mpi", "pmix"])
def test_a_rank_of_such_a_program_that_exits_ends_the_others(plugin: Path, mpi_program: str, way: str) -> None:
    variables = through(plugin) if way == "mpi" else {}
    done = mpirun(3, mpi_program, "7", **variables)
    assert done.returncode == 7, done.stdout + done.stderr
