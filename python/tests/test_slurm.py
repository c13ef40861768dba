# SPDX-License-Identifier: Apache-2.0
"""Ranks under Slurm itself (Debian's slurmctld and slurmd, started by this user for this test), and the job script."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jobs import Jobs, built, eventually
from test_mpi import JOB_SCRIPT, MPIEXEC

from wherry.system import peer_program

pytestmark = [pytest.mark.agent, pytest.mark.usefixtures("mpich_segments")]
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
TmpFS={directory}/temporary
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
ReturnToService=2
MessageTimeout=100
SlurmdTimeout=3600
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""
"""A configuration with one node, which Slurm assumes to have 16 cores. Its timeouts are long enough for a busy
machine."""


class Slurm(Jobs):
    """A cluster of one node."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        super().__init__()
        self.directory = directory
        for name in ("state", "spool", "temporary"):
            (directory / name).mkdir()
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            ports = [server.getsockname()[1] for server in (one, other)]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        host = socket.gethostname().partition(".")[0]
        file = directory / "slurm.conf"
        file.write_text(CONFIGURATION.format(host=host, ports=ports, user=user, directory=directory))
        programs = Path(built("wherryd")).parent
        self.environment |= {
            "SLURM_CONF": str(file),
            "PATH": f"{programs}:{Path(peer_program('srun')).parent}:{os.environ['PATH']}",
        }
        step = str(peer_program("slurmstepd-wlm"))
        for line in (["slurmctld-wlm", "-D"], ["slurmd-wlm", "-D", "-d", step]):
            with (directory / f"{line[0]}.out").open("wb") as output:
                process = subprocess.Popen(
                    [peer_program(line[0]), *line[1:]], env=self.environment, stdout=output, stderr=output
                )
            stack.callback(self._end, process)
        assert eventually(lambda: self.tool("sinfo", "--noheader", "--format=%T").stdout.strip() == "idle", 300)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(timeout=100)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def tool(self, name: str, *words: str, timeout: float = 600, **more: str) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands."""
        return subprocess.run(
            [peer_program(name), *words],
            env=self.environment | more,
            cwd=self.directory,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout,
        )

    def job(self, *words: str, tasks: int, **more: str) -> tuple[int, str]:
        """Submits the job script and waits. Returns the exit status, and the job's output."""
        output = self.directory / "job.out"
        done = self.tool(
            "sbatch", "--wait", "--nodes=1", f"--ntasks={tasks}", f"--ntasks-per-node={tasks}", f"--output={output}",
            str(JOB_SCRIPT), *words, timeout=600, SLURM_MPI_TYPE="pmi2", **more,
        )  # fmt: skip
        return done.returncode, output.read_text() if output.exists() else done.stdout + done.stderr


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with ExitStack() as stack:
        cluster = Slurm(tmp_path_factory.mktemp("slurm"), stack)
        stack.callback(cluster.clean_up)
        yield cluster


def test_ranks_find_each_other_through_pmi2(slurm: Slurm) -> None:
    done = slurm.tool("srun", "--mpi=pmi2", "--ntasks=4", built("bootstrap_rank"), "exchange", "leave", "messages")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^rank (\d) of 4 node 0 job (\w+)$", done.stdout, re.MULTILINE)
    assert sorted(rank for rank, _ in found) == ["0", "1", "2", "3"]
    assert len({job for _, job in found}) == 1


def test_a_rank_that_is_killed_ends_the_others(slurm: Slurm) -> None:
    words = ("--mpi=pmi2", "--ntasks=3", "--kill-on-bad-exit=1")
    done = slurm.tool("srun", *words, built("bootstrap_rank"), "exchange", "1:kill", "sleep=300000")
    assert done.returncode != 0
    assert len(re.findall(r"^rank \d of 3", done.stdout, re.MULTILINE)) == 3


def test_mpiexec_inside_a_pmix_job_of_one_rank_expect_mpis_ranks(slurm: Slurm) -> None:
    """mpiexec must start one job of three ranks, not three jobs of one rank."""
    mpiexec = (str(MPIEXEC), "-launcher", "fork", "-n", "3")  # not another step of Slurm
    # MPICH also finds the variables of both launchers, so a variable must choose one.
    words = ("--mpi=pmix", "--ntasks=1", *mpiexec, built("bootstrap_rank"), "exchange")
    done = slurm.tool("srun", *words, MPIR_CVAR_PMI_VERSION="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank (\d) of 3 node 0", done.stdout)) == ["0", "1", "2"], done.stdout
    refused = slurm.tool("srun", "--mpi=pmix", "--ntasks=2", *mpiexec, built("bootstrap_rank"), "exchange")
    assert refused.returncode != 0
    assert "WHERRY_BOOTSTRAP=pmix or WHERRY_BOOTSTRAP=mpi" in refused.stdout + refused.stderr


def test_a_launcher_passes_on_its_ranks_words_late_expect_them_before_the_job_ends(slurm: Slurm) -> None:
    """A refused rank must not abort the job: Slurm then kills the launcher that still holds the rank's words."""
    launcher = f"PMI_RANK=0 PMI_SIZE=3 {built('bootstrap_rank')} exchange 2>&1 | (sleep 3; cat)"
    refused = slurm.tool("srun", "--mpi=pmix", "--ntasks=2", "sh", "-c", launcher)
    assert refused.stdout.count("WHERRY_BOOTSTRAP=pmix or WHERRY_BOOTSTRAP=mpi") == 2, refused.stdout + refused.stderr


@pytest.mark.parametrize("placement", ["host", "shared", "inline"])
def test_the_job_script(slurm: Slurm, placement: str) -> None:
    status, lines = slurm.job(built("bootstrap_rank"), "exchange", "environment", tasks=3, WHERRY_PLACEMENT=placement)
    assert status == 0, lines
    ranks = 2 if placement == "host" else 3
    assert len(re.findall(rf"^rank \d of {ranks} node 0", lines, re.MULTILINE)) == ranks, lines
    assert lines.count(f"WHERRY_PLACEMENT={placement}") == ranks
    assert "Warning" not in lines, "srun understands what is asked"
    agents = set(re.findall(r"^WHERRY_AGENT=(.*)/agent.json$", lines, re.MULTILINE))
    assert len(agents) == (0 if placement == "inline" else 1)
    assert eventually(lambda: not any(Path(one).exists() for one in agents)), "the job removes what it made"


def test_an_application_has_the_result_that_it_has_without_slurm(slurm: Slurm) -> None:
    program = [built("../apps/histogram"), "--counters", "4096", "--updates", "2e4", "--seed", "5"]
    sums = set()
    alone = subprocess.run(program, env=slurm.environment, capture_output=True, text=True, timeout=300, check=True)
    sums |= set(re.findall(r'"checksum": ?"(\w+)"', alone.stdout))
    status, lines = slurm.job(*program, tasks=3)
    assert status == 0, lines
    sums |= set(re.findall(r'"checksum": ?"(\w+)"', lines))
    assert '"ranks":2' in lines.replace(" ", "")
    assert len(sums) == 1, sums


def test_a_job_that_is_cancelled_leaves_nothing(slurm: Slurm) -> None:
    output = slurm.directory / "cancelled.out"
    placed = slurm.tool(
        "sbatch", "--parsable", "--nodes=1", "--ntasks=3", "--ntasks-per-node=3", f"--output={output}",
        str(JOB_SCRIPT), built("bootstrap_rank"), "exchange", "environment", "sleep=3000000", SLURM_MPI_TYPE="pmi2",
    )  # fmt: skip
    job = placed.stdout.strip()
    assert eventually(lambda: output.exists() and output.read_text().count("WHERRY_AGENT=") == 2, 300)
    (directory,) = set(re.findall(r"^WHERRY_AGENT=(.*)/agent.json$", output.read_text(), re.MULTILINE))
    assert slurm.tool("scancel", job).returncode == 0
    assert eventually(lambda: not slurm.tool("squeue", "--noheader").stdout.strip(), 300)
    eventually(lambda: not slurm.processes("bootstrap_rank") and not slurm.processes("wherryd"))
    assert slurm.processes("bootstrap_rank") == {}
    assert slurm.processes("wherryd") == {}
    assert eventually(lambda: not Path(directory).exists())
