# SPDX-License-Identifier: Apache-2.0
"""Ranks that two PMIx servers start: Slurm's (libpmix 4 of Debian) and PRRTE's (libpmix 5). The tests do not use
MPI."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import openmpi
import pytest
from apps import Outcome, program
from jobs import built, eventually
from test_apps_histogram import expected
from test_mpi import JOB_SCRIPT
from test_slurm import Slurm

from wherry.system import Advice, write_profile

pytestmark = pytest.mark.agent
Done = subprocess.CompletedProcess[str]
Launch = Callable[..., Done]
RANK = "bootstrap_rank"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with ExitStack() as stack:
        one = Slurm(tmp_path_factory.mktemp("slurm"), stack)
        stack.callback(one.clean_up)
        yield one


def prterun(ranks: int, *words: str, options: tuple[str, ...] = (), **variables: str) -> Done:
    """Runs PRRTE's launcher. libpmix 4 in the ranks works with libpmix 5 in the launcher."""
    return subprocess.run(
        [openmpi.program("prterun"), "--map-by", ":OVERSUBSCRIBE", *options, "-n", str(ranks), *words],
        env=openmpi.environment(**variables),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=600,
    )


@pytest.fixture(params=["srun", "prterun", "prterun, libpmix 5"])
def launch(request: pytest.FixtureRequest) -> Launch:
    """A function that starts ranks. Its arguments: number of ranks, command, variables."""
    if request.param == "srun":
        slurm: Slurm = request.getfixturevalue("cluster")

        def srun(ranks: int, *words: str, **variables: str) -> Done:
            return slurm.tool("srun", "--mpi=pmix", f"--ntasks={ranks}", *words, timeout=600, **variables)

        return srun
    if request.param == "prterun":
        return prterun
    return lambda ranks, *words, **variables: prterun(
        ranks, *words, **{"WHERRY_PMIX_LIBRARY": str(openmpi.LIBPMIX)} | variables
    )


def test_ranks_exchange_again_and_again_and_send(launch: Launch) -> None:
    done = launch(4, built(RANK), "exchange", "leave", "exchange", "leave", "messages")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^rank (\d) of 4 node 0 job (\w+)$", done.stdout, re.MULTILINE)
    assert sorted(rank for rank, _ in found) == sorted("01230123")
    assert len({job for _, job in found}) == 2, "each start is a job of its own"
    assert len(re.findall(r"rank \d of 4 on node 0 of 1, placement inline", done.stdout)) == 4


def test_an_application_counts_as_numpy_does(launch: Launch, tmp_path: Path) -> None:
    words = ["--counters", "1009", "--updates", "200000", "--seed", "5"]
    files = ["--output", str(tmp_path / "out"), "--json", str(tmp_path / "summary.json")]
    done = launch(4, str(program("histogram")), *words, *files)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["ranks"], summary["messages"]) == (4, 200_000)
    np.testing.assert_array_equal(Outcome(summary, tmp_path / "out", 4).cyclic(), expected(1009, 200_000, 5))


def test_one_rank_is_a_job_of_its_own(launch: Launch) -> None:
    done = launch(1, built(RANK), "exchange")
    assert (done.returncode, done.stdout) == (0, "alone\n"), done.stderr


def test_one_machine_may_play_several_nodes(launch: Launch) -> None:
    done = launch(4, built(RANK), "exchange", "messages", WHERRY_RANKS_PER_NODE="2")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^rank (\d+) of 4 node (\d+)", done.stdout, re.MULTILINE)
    assert sorted((int(rank), int(node)) for rank, node in found) == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert len(re.findall(r"rank \d of 4 on node [01] of 2, placement inline", done.stdout)) == 4


def test_ranks_agree_on_the_profile_unless_a_person_says_otherwise(launch: Launch, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    advice = {"route.buffer_bytes": Advice("16384", "hand-over", "a test")}
    write_profile(profile, "2026-11-26", advice, {}, lambda _key, _one: False)
    done = launch(2, built(RANK), "messages", WHERRY_PROFILE=str(profile))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"4 buffers of 16384 bytes (from profile {profile})") == 2, done.stdout
    said = launch(2, built(RANK), "messages", WHERRY_PROFILE=str(profile), WHERRY_ROUTE_BUFFER_BYTES="8192")
    assert said.stdout.count("4 buffers of 8192 bytes to each") == 2, said.stdout
    # Only one rank has the profile, and the other rank uses its advice.
    one = f'[ "$PMIX_RANK" = 1 ] || export WHERRY_PROFILE=off; exec {built(RANK)} messages'
    mixed = launch(2, "sh", "-c", one, WHERRY_PROFILE=str(profile))
    assert mixed.returncode == 0, mixed.stderr
    assert mixed.stdout.count("4 buffers of 16384 bytes") == 2, mixed.stdout


def test_statistics_of_ranks_are_written(launch: Launch, tmp_path: Path) -> None:
    """`wherry advise` reads them."""
    done = launch(2, built(RANK), "messages", WHERRY_STATISTICS=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(one.read_text())["rank"] for one in tmp_path.glob("rank-*.json")) == [0, 1]


def test_a_rank_starts_one_program_after_another(launch: Launch) -> None:
    done = launch(3, "sh", "-c", f"{built(RANK)} exchange && {built(RANK)} exchange")
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = re.findall(r"^rank \d of 3 node 0 job (\w+)$", done.stdout, re.MULTILINE)
    assert (len(jobs), len(set(jobs))) == (6, 2)


def test_a_child_of_fork_says_nothing_to_the_server(launch: Launch) -> None:
    done = launch(2, built(RANK), "messages-beside-a-child", WHERRY_RANKS_PER_NODE="1")
    assert done.returncode == 0, done.stdout + done.stderr
    again = launch(2, built(RANK), "again-in-a-child")
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(re.findall("child: failed precondition: .*fork", again.stdout)) == 2, again.stdout
    assert again.stdout.count(": done") == 2, again.stdout


def test_a_rank_that_does_not_come_expect_start_to_time_out_and_the_job_to_end(launch: Launch) -> None:
    """The PMIx fence itself has no time limit."""
    done = launch(2, built(RANK), "1:sleep=3000000", "join=1500")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "PMIx: not all ranks came to the exchange in time (Options::start_timeout)" in done.stderr


@pytest.mark.parametrize("how", ["exit=5", "exit-beside-a-child=5", "kill"])
def test_a_rank_that_dies_ends_the_others(launch: Launch, how: str) -> None:
    """exit() aborts the job with this status, because by default Slurm would let the others wait."""
    done = launch(3, built(RANK), "exchange", f"1:{how}", "sleep=3000000")
    assert done.returncode == (5 if "5" in how else 128 + signal.SIGKILL), done.stdout + done.stderr


def started(ranks: int, *words: str, options: tuple[str, ...] = (), **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [openmpi.program("prterun"), "--map-by", ":OVERSUBSCRIBE", *options, "-n", str(ranks), *words],
        env=openmpi.environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def test_a_launcher_that_lets_a_job_go_on_expect_ranks_to_learn_of_a_death_themselves(tmp_path: Path) -> None:
    script = f"{built(RANK)} spin > {tmp_path}/$PMIX_RANK 2>&1"
    job = started(3, "sh", "-c", f"exec {script}", options=("--runtime-options", "continuous"))
    try:
        assert eventually(lambda: sum("of 3 on node" in one.read_text() for one in tmp_path.iterdir()) == 3, 300)
        os.kill(pid_of(tmp_path, 1), signal.SIGKILL)
        job.wait(timeout=300)
    finally:
        job.kill()
        job.communicate()
    for rank in (0, 2):
        assert "broken: " in (tmp_path / str(rank)).read_text()


def pid_of(directory: Path, rank: int) -> int:
    """The pid of the process whose standard output is the file of rank `rank`."""
    wanted = (directory / str(rank)).resolve()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "fd" / "1").resolve() == wanted:
                return int(entry.name)
        except OSError:
            continue
    pytest.fail(f"no process of rank {rank}")


def test_a_launcher_that_dies_expect_ranks_to_learn_it(tmp_path: Path) -> None:
    script = f"{built(RANK)} exchange watch > {tmp_path}/$PMIX_RANK 2>&1"
    job = started(2, "sh", "-c", f"exec {script}")
    try:
        assert eventually(lambda: sum("rank" in one.read_text() for one in tmp_path.iterdir()) == 2, 300)
    finally:
        job.kill()
        job.communicate()
    for rank in range(2):
        file = tmp_path / str(rank)
        assert eventually(lambda file=file: "broken: the PMIx server of this rank has gone" in file.read_text())


def alone(*words: str, **variables: str) -> Done:
    return subprocess.run(
        [built(RANK), *words],
        env=openmpi.environment(PMIX_NAMESPACE="nobody", PMIX_RANK="0", **variables),
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_no_libpmix_expect_an_error_that_says_what_to_do() -> None:
    done = alone("exchange", WHERRY_BOOTSTRAP="pmix", WHERRY_PMIX_LIBRARY="/nonexistent/libpmix.so")
    assert done.returncode == 3
    for word in ("not found", "/nonexistent/libpmix.so", "libpmix2", "WHERRY_PMIX_LIBRARY"):
        assert word in done.stderr, done.stderr
    either = alone(
        "exchange", WHERRY_PMIX_LIBRARY="/nonexistent/libpmix.so", WHERRY_MPI_PLUGIN="/nonexistent/libwherry_mpi.so"
    )
    assert either.returncode == 3
    assert "/nonexistent/libpmix.so" in either.stderr
    assert "/nonexistent/libwherry_mpi.so" in either.stderr


def test_another_major_version_expect_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text('const char* PMIx_Get_version(void) { return "OpenPMIx 19.1.0 (and so on)"; }\n')
    library = str(tmp_path / "libpmix.so.2")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(tmp_path / "other.c")], check=True)
    done = alone("exchange", WHERRY_BOOTSTRAP="pmix", WHERRY_PMIX_LIBRARY=library)
    assert done.returncode == 3
    for word in ("version mismatch", library, "OpenPMIx 19.1.0", "PMIx 3 to 6", "WHERRY_PMIX_LIBRARY"):
        assert word in done.stderr, done.stderr
    none = alone("exchange", WHERRY_BOOTSTRAP="pmix", WHERRY_PMIX_LIBRARY="libm.so.6")
    assert "libm.so.6 is not PMIx" in none.stderr


def test_a_server_that_does_not_answer_expect_start_to_time_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"nobody.0;tcp4://127.0.0.1:{server.getsockname()[1]}"
        names = ("PMIX_SERVER_URI2", "PMIX_SERVER_URI21", "PMIX_SERVER_URI3", "PMIX_SERVER_URI4", "PMIX_SERVER_URI41")
        done = alone("join=1500", **dict.fromkeys(names, address), WHERRY_BOOTSTRAP="pmix")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "PMIx: the server did not answer in time (Options::start_timeout)" in done.stderr


def test_pmix_that_is_asked_for_without_a_server_expect_an_error() -> None:
    plain = openmpi.environment(WHERRY_BOOTSTRAP="pmix")
    done = subprocess.run([built(RANK), "exchange"], env=plain, capture_output=True, text=True, timeout=600)
    assert done.returncode == 3
    assert "WHERRY_BOOTSTRAP is 'pmix', but" in done.stderr
    assert "PMIX_NAMESPACE and PMIX_RANK" in done.stderr


def test_mpi_that_is_asked_for_expect_no_pmix(cluster: Slurm) -> None:
    words = ("--mpi=pmix", "--ntasks=2", built(RANK), "exchange")
    done = cluster.tool("srun", *words, WHERRY_BOOTSTRAP="mpi", WHERRY_MPI_PLUGIN="/nonexistent/libwherry_mpi.so")
    assert done.returncode != 0
    assert "/nonexistent/libwherry_mpi.so" in done.stderr
    assert "libpmix" not in done.stderr


def test_wherry_run_inside_a_pmix_job_expect_its_ranks(cluster: Slurm) -> None:
    inner = cluster.command("--nodes", "1", "--ranks-per-node", "2", "--", built(RANK), "exchange")
    done = cluster.tool("srun", "--mpi=pmix", "--ntasks=1", *inner)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"rank \d of 2 node 0", done.stdout)) == 2, done.stdout


def test_a_program_that_dies_in_a_shell_expect_the_shell_to_go_on(cluster: Slurm) -> None:
    """Only the shell is a rank, so the death of a program that it starts does not end the job."""
    shell = f"{built(RANK)} exchange exit=5; {built(RANK)} exchange kill; echo the shell goes on"
    done = cluster.tool("srun", "--mpi=pmix", "--ntasks=1", "sh", "-c", shell)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["alone", "alone", "the shell goes on"], done.stdout + done.stderr


def test_the_job_script_has_agents_and_no_mpi(cluster: Slurm) -> None:
    output = cluster.directory / "pmix.out"
    done = cluster.tool(
        "sbatch", "--wait", "--nodes=1", "--ntasks=3", "--ntasks-per-node=3", f"--output={output}",
        str(JOB_SCRIPT), built(RANK), "exchange", "messages", WHERRY_PLACEMENT="host",
        WHERRY_MPI_PLUGIN="/nonexistent/libwherry_mpi.so",
    )  # fmt: skip
    assert done.returncode == 0, output.read_text()
    assert len(re.findall(r"rank \d of 2 on node 0 of 1, placement host", output.read_text())) == 2, output.read_text()
