# SPDX-License-Identifier: Apache-2.0
"""Ranks under an MPI launcher, mpiexec of the mpich wheel, which is part of the virtual environment."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import abandoned_segments
from jobs import built

from wherry.system import Advice, write_profile

JOB_SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "slurm" / "route_job.sh"
SRUN = """#!/usr/bin/env bash
# A stand-in: a step with --mpi is run by mpiexec, another one as one task on the only node. Options as `srun` has them.
while [[ $1 == --* ]]; do
  case $1 in
    --exact | --overlap | --kill-on-bad-exit=1 | --nodes=1 | --ntasks=[123]) ;;
    --ntasks-per-node=*) tasks=${1#*=} ;;
    --mpi=*) mpi=${1#*=} ;;
    *) echo "srun: unexpected $1" >&2; exit 1 ;;
  esac
  shift
done
[[ -z ${mpi:-} ]] || exec "$MPIEXEC" -outfile-pattern "$OUTPUT/%r" -n "$tasks" "$@"
[[ $tasks == 1 ]] || exit 1
exec "$@"
"""
MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"
# MPICH's launcher kills the other ranks when a rank's connection closes. It ends with the status of the process whose
# end it sees first. A failed rank that is still freeing its memory may be seen after a rank that was killed because of
# it.
KILLED = 9


pytestmark = pytest.mark.usefixtures("mpich_segments")


def mpiexec(
    ranks: int, *actions: str, timeout: float = 120, errors: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs mpiexec. The stdout has the ranks' output, one rank after another (mpiexec itself mixes their lines).

    `errors`: a file for what ranks write to stderr. The launcher loses lines of ranks that abort.
    """
    assert MPIEXEC.exists(), f"no {MPIEXEC}: run tools/setup.sh"
    built("libwherry_mpi.so")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHERRY_")} | variables
    if "WHERRY_PROFILE" not in variables and "XDG_CACHE_HOME" not in variables:
        environment["WHERRY_PROFILE"] = "off"  # a user's profile on this machine must not change the tests
    with tempfile.TemporaryDirectory() as output:
        pattern = ["-outfile-pattern", f"{output}/%r"]
        shell = [] if errors is None else ["sh", "-c", f'exec "$0" "$@" 2>>"{errors}"']
        done = subprocess.run(
            [str(MPIEXEC), *pattern, "-n", str(ranks), *shell, built("bootstrap_rank"), *actions],
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout,
        )
        done.stdout += printed(Path(output))
        done.stderr += "" if errors is None else errors.read_text()
    return done


def printed(output: Path) -> str:
    return "".join(file.read_text() for file in sorted(output.iterdir()))


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_exchange(ranks: int) -> None:
    done = mpiexec(ranks, "exchange", "leave", "exchange")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^rank (\d+) of (\d+) node (\d+) job (\w+)$", done.stdout, re.MULTILINE)
    assert sorted(int(rank) for rank, *_ in found) == sorted([*range(ranks), *range(ranks)])
    assert {int(of) for _, of, *_ in found} == {ranks}
    assert {int(node) for *_, node, _ in found} == {0}, "one machine"
    assert len({job for *_, job in found}) == 2


def test_ranks_take_their_buffers_from_the_profile_unless_a_person_says_otherwise(tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    advice = {"route.buffer_bytes": Advice("16384", "hand-over", "a test")}
    write_profile(profile, "2026-11-26", advice, {}, lambda _key, _one: False)
    done = mpiexec(2, "messages", WHERRY_PROFILE=str(profile))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"4 buffers of 16384 bytes (from profile {profile})") == 2, done.stdout
    said = mpiexec(2, "messages", WHERRY_PROFILE=str(profile), WHERRY_ROUTE_BUFFER_BYTES="8192")
    assert said.stdout.count("4 buffers of 8192 bytes to each") == 2, said.stdout
    profile.chmod(0o666)
    refused = mpiexec(2, "messages", errors=tmp_path / "errors", WHERRY_PROFILE=str(profile))
    assert refused.returncode != 0
    assert "WHERRY_PROFILE: " in refused.stderr
    (tmp_path / "wherry").mkdir()
    profile.rename(tmp_path / "wherry" / "profile.json")
    unusable = mpiexec(2, "messages", XDG_CACHE_HOME=str(tmp_path))
    assert unusable.stdout.count("32768 bytes (no profile is used: ") == 2, unusable.stdout


def test_one_rank_is_a_job_of_its_own() -> None:
    done = mpiexec(1, "exchange")
    assert (done.returncode, done.stdout) == (0, "alone\n"), done.stderr


def test_one_machine_may_play_several_nodes() -> None:
    done = mpiexec(4, "exchange", WHERRY_RANKS_PER_NODE="2")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^rank (\d+) of 4 node (\d+)", done.stdout, re.MULTILINE)
    assert sorted((int(rank), int(node)) for rank, node in found) == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_messages_between_ranks() -> None:
    done = mpiexec(4, "messages", WHERRY_RANKS_PER_NODE="2")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"rank \d of 4 on node [01] of 2, placement inline", done.stdout)) == 4


def test_child_of_fork_neither_sends_nor_finalizes_mpi() -> None:
    done = mpiexec(4, "messages-beside-a-child", WHERRY_RANKS_PER_NODE="2")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"rank \d of 4 on node [01] of 2, placement inline", done.stdout)) == 4


def test_child_that_takes_its_parents_place_is_refused() -> None:
    done = mpiexec(2, "again-in-a-child", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall("child: unavailable: MPI: this process is a fork of process", done.stdout)) == 2, done.stdout
    assert done.stdout.count(": done") == 2, done.stdout


def test_second_runtime_of_a_process_is_refused() -> None:
    done = mpiexec(2, "twice")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("second: failed precondition") == 2, done.stdout
    assert done.stdout.count("then: ok") == 2, done.stdout


def test_without_the_plugin_no_rank_runs_alone() -> None:
    done = mpiexec(2, "exchange", WHERRY_MPI_PLUGIN="/nonexistent/libwherry_mpi.so")
    assert done.returncode != 0
    assert "alone" not in done.stdout
    assert "PMI_SIZE is set" in done.stderr
    assert "docs/guide/route-launch.md" in done.stderr


OTHER_MPI = """
#include <signal.h>
#include <string.h>
int MPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Open MPI v4.1.4, package: Debian");
  *length = (int)strlen(text);
  return 0;
}
int MPI_Initialized(int* flag) { return raise(SIGSEGV); }
int MPI_Init_thread(int* n, char*** v, int required, int* provided) { return raise(SIGSEGV); }
"""


def test_a_program_of_another_mpi_expect_an_error_that_names_both(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text(OTHER_MPI)
    library = str(tmp_path / "libmpi_other.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, str(tmp_path / "other.c")], check=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHERRY_")}
    done = subprocess.run(
        [built("bootstrap_rank"), "exchange"],
        env=environment | {"LD_PRELOAD": library, "PMI_RANK": "0", "PMI_SIZE": "2"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    assert "Open MPI v4.1.4" in done.stderr
    assert "libwherry_mpi.so (MPICH)" in done.stderr


def test_a_rank_that_does_not_come_expect_start_to_time_out() -> None:
    """The other rank never calls start(), and MPI_Init itself would wait for it forever."""
    done = mpiexec(2, "1:sleep=300000", "join=1500", timeout=120)
    assert done.returncode in (3, KILLED), done.stdout + done.stderr
    assert "not all ranks came in time" in done.stdout + done.stderr


@pytest.mark.parametrize("how", ["exit=5", "exit-beside-a-child=5", "kill"])
def test_rank_that_dies_ends_the_others(how: str) -> None:
    """MPICH's launcher does not kill the others if it learns of an exit before it sees the rank's connection close."""
    done = mpiexec(3, "exchange", f"1:{how}", "sleep=300000", timeout=120)
    assert done.returncode in ((5, KILLED) if "5" in how else (KILLED,)), done.stderr


def run_job_script(tmp_path: Path, job: str, placement: str, output: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHERRY_")}
    environment |= {"PATH": f"{tmp_path}:{Path(built('wherryd')).parent}:{os.environ['PATH']}", "MPIEXEC": str(MPIEXEC)}
    environment |= {
        "SLURM_JOB_ID": job,
        "SLURM_NNODES": "1",
        "SLURM_NTASKS_PER_NODE": "3",
        "WHERRY_PLACEMENT": placement,
        "WHERRY_PROFILE": "off",
        "OUTPUT": str(output),
    }
    return subprocess.run(
        ["bash", str(JOB_SCRIPT), built("bootstrap_rank"), "exchange", "environment"],
        env=environment,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
    )


def test_job_script_expect_no_use_of_a_directory_that_is_there(tmp_path: Path) -> None:
    """The script must not remove the directory either. A fake `mktemp` returns its name, as if an attacker had guessed
    it."""
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "precious").touch()
    (tmp_path / "mktemp").write_text(f"#!/bin/sh\necho {taken}\n")
    (tmp_path / "mktemp").chmod(0o755)
    output = tmp_path / "output"
    output.mkdir()
    done = run_job_script(tmp_path, f"test-{os.getpid()}", "host", output)
    assert done.returncode != 0
    assert re.search(rf"cannot create directory .*{re.escape(str(taken))}", done.stderr), done.stderr
    assert list(taken.iterdir()) == [taken / "precious"]
    assert printed(output) == "", "no rank starts"


def test_job_script_without_a_program_says_how(tmp_path: Path) -> None:
    done = subprocess.run(["bash", str(JOB_SCRIPT)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "usage: sbatch" in done.stderr


def test_segments_that_nobody_has_mapped_are_found_before_a_job_waits_at_one() -> None:
    with (
        tempfile.NamedTemporaryFile(prefix="mpich_shm_", dir="/dev/shm") as left,
        tempfile.NamedTemporaryFile(prefix="mpich_shm_", dir="/dev/shm") as used,
    ):
        used.truncate(4096)
        with mmap.mmap(used.fileno(), 4096):
            found = abandoned_segments()
    assert Path(left.name) in found
    assert Path(used.name) not in found
