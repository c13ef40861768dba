# SPDX-License-Identifier: Apache-2.0
"""`wherry run` with ranks that a test controls (src/route/client/bootstrap_testing_main.cpp)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from jobs import Jobs, built, eventually

from wherry.errors import InvalidArgument
from wherry.route.pinning import parse_cores, plan_cores


@pytest.fixture
def rank() -> str:
    return built("bootstrap_rank")


def shape(nodes: int, ranks_per_node: int) -> list[str]:
    return ["--nodes", str(nodes), "--ranks-per-node", str(ranks_per_node)]


@pytest.mark.parametrize(("nodes", "per_node"), [(1, 1), (1, 2), (3, 1), (2, 2), (1, 5), (3, 2)])
def test_ranks_exchange(jobs: Jobs, rank: str, nodes: int, per_node: int) -> None:
    done = jobs.run(*shape(nodes, per_node), "--", rank, "exchange")
    assert (done.returncode, done.stderr) == (0, "")
    ranks = nodes * per_node
    found = re.findall(r"^(?:\[(\d+)\] )?rank (\d+) of (\d+) node (\d+) job (\w+)$", done.stdout, re.MULTILINE)
    assert len(found) == ranks == len(done.stdout.splitlines())
    assert len({job for *_, job in found}) == 1
    for prefix, number, of, node, _ in found:
        assert int(of) == ranks
        assert int(node) == int(number) // per_node
        assert prefix == (number if ranks > 1 else "")


def test_rank_may_leave_and_join_again(jobs: Jobs, rank: str) -> None:
    done = jobs.run(*shape(1, 3), "--", rank, "exchange", "leave", "exchange")
    assert (done.returncode, done.stderr) == (0, "")
    named = Counter(re.findall(r"job (\w+)", done.stdout))
    assert sorted(named.values()) == [3, 3], "another job, as an agent sees it"


def test_second_process_of_a_rank_is_refused(jobs: Jobs, rank: str) -> None:
    done = jobs.run("--", "sh", "-c", f"{rank} exchange sleep=3000 & {rank} sleep=500 exchange")
    assert done.returncode == 3
    assert "rank 0 has joined already" in done.stderr


def test_second_runtime_of_a_process_is_refused(jobs: Jobs, rank: str) -> None:
    done = jobs.run(*shape(1, 2), "--", rank, "twice")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("second: failed precondition") == 2, done.stdout
    assert done.stdout.count("then: ok") == 2, done.stdout


def test_output_is_whole_lines_with_prefix(jobs: Jobs, rank: str) -> None:
    done = jobs.run(*shape(1, 4), "--", rank, "lines=5000", "long", "lines=10")
    assert (done.returncode, done.stderr) == (0, "")
    lines = Counter(done.stdout.splitlines())
    for number in range(4):
        assert lines.pop(f"[{number}] " + "x" * 300_000) == 1
        for i in range(5000):
            count = lines.pop(f"[{number}] line {i} of some length, so that many fill a pipe")
            assert count == (2 if i < 10 else 1)
    assert not lines


def test_last_line_need_not_end(jobs: Jobs) -> None:
    done = jobs.run(*shape(1, 2), "--", "sh", "-c", "printf out; printf error >&2")
    assert sorted(done.stdout.splitlines()) == ["[0] out", "[1] out"]
    assert sorted(done.stderr.splitlines()) == ["[0] error", "[1] error"]


def test_standard_input_is_rank_0s(jobs: Jobs, rank: str) -> None:
    done = subprocess.run(
        jobs.command(*shape(1, 2), "--", rank, "echo"),
        input="some words\n",
        env=jobs.environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "[0] some words\n")


def test_reader_of_the_output_that_goes_ends_the_job(jobs: Jobs, rank: str) -> None:
    line = f"{' '.join(jobs.command(*shape(1, 2)))} -- {rank} lines=1000000 die-slowly | head -n 1"
    done = subprocess.run(["sh", "-c", line], env=jobs.environment, capture_output=True, text=True, timeout=300)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.mark.parametrize("placement", ["inline", "shared", "host"])
def test_messages_between_ranks(jobs: Jobs, rank: str, placement: str) -> None:
    done = jobs.run(*shape(2, 2), "--placement", placement, "--", rank, "messages")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(rf"rank \d of 4 on node [01] of 2, placement {placement}", done.stdout)) == 4


@pytest.mark.parametrize("placement", ["inline", "shared", "host"])
def test_child_of_fork_neither_sends_nor_disturbs_its_parent(jobs: Jobs, rank: str, placement: str) -> None:
    done = jobs.run(*shape(2, 2), "--placement", placement, "--", rank, "messages-beside-a-child")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(rf"rank \d of 4 on node [01] of 2, placement {placement}", done.stdout)) == 4


@pytest.mark.parametrize("placement", ["inline", "shared", "host"])
def test_child_that_returns_from_a_handler_does_not_disturb_its_parent(jobs: Jobs, rank: str, placement: str) -> None:
    done = jobs.run(*shape(2, 2), "--placement", placement, "--", rank, "children-of-handlers")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(rf"rank \d of 4 on node [01] of 2, placement {placement}", done.stdout)) == 4


# ---- failures


@pytest.fixture
def told(jobs: Jobs) -> None:
    """Gives ranks enough time to report the end of their job, also on a busy machine."""
    jobs.waits["TOLD_S"] = 100.0


def expect_told_in_time(began: float) -> None:
    assert time.monotonic() - began < 120, "start of Python and the exchange included"


def test_status_of_the_only_rank_is_the_jobs(jobs: Jobs, rank: str) -> None:
    done = jobs.run("--", rank, "exit=3")
    assert (done.returncode, done.stderr) == (3, "wherry run: rank 0 exited with status 3\n")


@pytest.mark.usefixtures("told")
def test_rank_that_is_killed_ends_the_job(jobs: Jobs, rank: str) -> None:
    done = jobs.run(*shape(2, 2), "--", rank, "exchange", "3:sleep=300", "3:kill", "watch")
    assert done.returncode == 137
    assert done.stderr == "wherry run: rank 3 was killed by signal 9 (SIGKILL)\n"
    told = [line for line in done.stdout.splitlines() if "broken" in line]
    assert sorted(told) == [f"[{n}] broken: rank 3 was killed by signal 9 (SIGKILL)" for n in range(3)]


@pytest.mark.usefixtures("told")
def test_rank_that_fails_ends_the_job_while_others_wait(jobs: Jobs, rank: str) -> None:
    done = jobs.run(*shape(1, 3), "--", rank, "1:sleep=100", "1:exit=7", "exchange")
    assert done.returncode == 7
    assert "wherry run: rank 1 exited with status 7\n" in done.stderr
    assert "[0] bootstrap_rank: unavailable: rank 1 exited with status 7" in done.stderr


@pytest.mark.parametrize(
    ("actions", "how"),
    [
        (["1:exit=0", "exchange"], "ended"),  # it never joins
        (["exchange", "leave", "1:exit=0", "exchange"], "ended"),  # nor a second time
        (["1:gather", "1:leave", "1:sleep=20000", "exchange"], "left the job"),  # after one of three ranks exchanged
    ],
)
def test_rank_that_leaves_while_others_wait_ends_the_job(jobs: Jobs, rank: str, actions: list[str], how: str) -> None:
    done = jobs.run(*shape(1, 3), "--", rank, *actions)
    assert done.returncode == 1
    assert re.search(rf"^wherry run: rank 1 {how} while rank [02] waits for it$", done.stderr, re.MULTILINE)


def test_ranks_that_ignore_sigterm_are_killed(jobs: Jobs, rank: str) -> None:
    began = time.monotonic()
    done = jobs.run(*shape(1, 2), "--", rank, "1:exit=5", "die-slowly")
    assert done.returncode == 5
    assert "[0] SIGTERM came" in done.stdout
    expect_told_in_time(began)


def test_what_a_rank_has_started_ends_with_it(jobs: Jobs, rank: str) -> None:
    done = jobs.run(*shape(1, 2), "--", rank, "fork")
    assert done.returncode == 0


@pytest.mark.usefixtures("told")
def test_timeout(jobs: Jobs, rank: str) -> None:
    """The timeout counts from the launcher's start. If it passes before the ranks have started, the test tries a longer
    one."""
    for seconds in ("0.5", "2", "8", "32"):
        done = jobs.run(*shape(1, 2), "--timeout", seconds, "--", rank, "exchange", "watch", timeout=120)
        why = f"the job took longer than its --timeout of {seconds} s"
        assert (done.returncode, done.stderr.splitlines()[-1]) == (124, f"wherry run: {why}")
        if done.stdout.count("broken: ") == 2:
            break
    assert done.stderr == f"wherry run: {why}\n"
    assert done.stdout.count(f"broken: {why}") == 2


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_everything(jobs: Jobs, rank: str, number: signal.Signals, status: int) -> None:
    with jobs.start(*shape(2, 1), "--placement", "host", "--", rank, "exchange", "watch") as launcher:
        assert launcher.stdout
        assert "rank" in launcher.stdout.readline()
        assert "rank" in launcher.stdout.readline()
        launcher.send_signal(number)
        out, err = launcher.communicate(timeout=300)
    assert launcher.returncode == status
    said = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    assert err == f"wherry run: {said}\n"
    assert out.count(f"broken: {said}") == 2


@pytest.mark.parametrize("placement", ["inline", "host"])
def test_launcher_that_is_killed_takes_everything_along(jobs: Jobs, rank: str, placement: str) -> None:
    with jobs.start(*shape(2, 1), "--placement", placement, "--", rank, "exchange", "fork", "die-slowly") as launcher:
        assert launcher.stdout
        assert "rank" in launcher.stdout.readline()
        assert "rank" in launcher.stdout.readline()
        assert eventually(lambda: len(jobs.processes("bootstrap_rank exchange")) == 4 + 1)  # the launcher's own line
        launcher.kill()
        launcher.communicate(timeout=300)
    jobs.expect_nothing_left()


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("placement", ["inline", "host"])
@pytest.mark.parametrize("end", ["kill", "exit=4"])
def test_rank_that_dies_among_messages_ends_the_job(jobs: Jobs, rank: str, placement: str, end: str) -> None:
    began = time.monotonic()
    done = jobs.run(*shape(2, 2), "--placement", placement, "--", rank, "3:spin=200", f"3:{end}", "spin")
    how, status = ("was killed by signal 9 (SIGKILL)", 137) if end == "kill" else ("exited with status 4", 4)
    assert (done.returncode, done.stderr) == (status, f"wherry run: rank 3 {how}\n")
    assert done.stdout.count("broken: ") == 3
    expect_told_in_time(began)


@pytest.mark.parametrize("placement", ["inline", "host"])
def test_rank_that_others_fail_because_of_is_named_though_it_ends_last(jobs: Jobs, rank: str, placement: str) -> None:
    """Rank 1 exits with status 3, and its destructors take 1 s. Rank 0 notices, and ends at once with status 5."""
    jobs.waits["CAUSE_S"] = 100.0
    shape_of_two = ["--nodes", "1", "--ranks-per-node", "2", "--placement", placement]
    done = jobs.run(*shape_of_two, "--", rank, "1:linger=1000", "1:spin=200", "1:exit=3", "spin-or-exit=5")
    assert (done.returncode, done.stderr) == (3, "wherry run: rank 1 exited with status 3\n"), done.stdout


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("actions", "status", "said", "broken"),
    [
        # Rank 1 runs until the launcher reports the end of rank 0. Then it exits with 3, the cause of that end.
        (["0:blame=1", "0:exit=5", "1:watch-or-exit=3", "watch"], 3, "rank 1 exited with status 3", 2),
        (["0:blame=1", "0:sleep=200", "0:exit=5", "1:exit=0", "watch"], 5, "rank 0 exited with status 5", 1),
        (["0:blame=-1", "0:exit=5", "watch"], 5, "rank 0 exited with status 5", 2),
    ],
    ids=["it runs", "it has ended with 0", "it is not known"],
)
def test_ranks_that_blame_another_are_waited_for_only_while_it_runs(
    jobs: Jobs, rank: str, actions: list[str], status: int, said: str, broken: int
) -> None:
    """The launcher would wait for an hour before it names a rank that blames another rank."""
    jobs.waits["CAUSE_S"] = 3600.0
    done = jobs.run(*shape(1, 3), "--timeout", "200", "--", rank, "exchange", *actions)
    # A rank that is still in its exchange when rank 0 ends reports this as an error of the exchange, not by a handler.
    early = "[1] bootstrap_rank: unavailable: rank 0 exited with status 5\n"
    assert (done.returncode, done.stderr.replace(early, "")) == (status, f"wherry run: {said}\n"), done.stdout
    told = done.stdout.count("broken: rank 0 exited with status 5") + done.stderr.count(early)
    assert told == broken, done.stdout


@pytest.mark.parametrize("placement", ["inline", "host"])
def test_child_that_takes_its_parents_place_is_refused(jobs: Jobs, rank: str, placement: str) -> None:
    done = jobs.run(*shape(1, 2), "--placement", placement, "--", rank, "again-in-a-child")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall("child: unavailable: .*has joined already", done.stdout)) == 2, done.stdout
    assert done.stdout.count(": done") == 2, done.stdout


@pytest.mark.usefixtures("told")
def test_rank_hears_of_a_failure_though_its_agent_is_stopped(jobs: Jobs, rank: str) -> None:
    """The agent is alive but does not answer, so rank 0 must report the failure without it."""
    with jobs.start(*shape(2, 1), "--placement", "host", "--", rank, "spin") as launcher:
        assert launcher.stdout
        assert "rank" in launcher.stdout.readline()
        assert "rank" in launcher.stdout.readline()
        for pid in jobs.processes("wherryd"):
            os.kill(pid, signal.SIGSTOP)
        ranks = [pid for pid, line in jobs.processes("bootstrap_rank spin").items() if "wherry run" not in line]
        victim = next(pid for pid in ranks if b"WHERRY_RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes())
        os.kill(victim, signal.SIGKILL)
        out, err = launcher.communicate(timeout=300)
    assert (launcher.returncode, err) == (137, "wherry run: rank 1 was killed by signal 9 (SIGKILL)\n")
    assert "[0] broken: " in out


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("actions", [["exchange", "watch"], ["spin"]])
def test_agent_that_dies_ends_the_job(jobs: Jobs, rank: str, actions: list[str]) -> None:
    with jobs.start(*shape(2, 1), "--placement", "host", "--", rank, *actions) as launcher:
        assert launcher.stdout
        assert "rank" in launcher.stdout.readline()
        assert "rank" in launcher.stdout.readline()
        (victim,) = (pid for pid, line in jobs.processes("wherryd").items() if "/node1/" in line)
        os.kill(victim, signal.SIGKILL)
        out, err = launcher.communicate(timeout=300)
    assert launcher.returncode == 137
    assert err == "wherry run: the agent of node 1 was killed by signal 9 (SIGKILL)\n"
    assert out.count("broken: ") == 2


def test_agent_that_does_not_start_says_why(jobs: Jobs, rank: str) -> None:
    done = jobs.run("--placement", "host", "--", rank, "exchange", WHERRY_BUDGET="much")
    assert done.returncode == 2
    assert "the agent of node 0 exited with status 2" in done.stderr
    assert "WHERRY_BUDGET" in done.stderr


# ---- settings of ranks and agents


def test_placement_and_agents(jobs: Jobs, rank: str) -> None:
    done = jobs.run(*shape(2, 2), "--placement", "shared", "--", rank, "exchange", "environment", "where")
    assert (done.returncode, done.stderr) == (0, "")
    cores = sorted(os.sched_getaffinity(0))
    pinning = plan_cores("shared", 2, 2, cores)
    for number in range(4):
        mine = [line[4:] for line in done.stdout.splitlines() if line.startswith(f"[{number}]")]
        assert "WHERRY_PLACEMENT=shared" in mine
        assert "WHERRY_ROUTE_BETWEEN=shm" in mine
        assert any(re.fullmatch(rf"WHERRY_AGENT=.*/node{number // 2}/agent\.json", line) for line in mine)
        assert f"cores {','.join(map(str, sorted(pinning.ranks[number])))}" in mine


def test_rank_may_start_an_embedded_agent(jobs: Jobs) -> None:
    """An embedded agent runs in the environment of the job, which must not contain settings of an agent."""
    done = jobs.run(*shape(1, 2), "--", "sh", "-c", f"{built('wherryd')} --dump-config >/dev/null")
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_variables_of_route_are_named(jobs: Jobs, rank: str) -> None:
    done = jobs.run("--", rank, WHERRY_ROUTE_BUFERS="2", WHERRY_ROUTE_BUFFERS="2")
    assert done.returncode == 0
    assert "WHERRY_ROUTE_BUFERS is set, but there is no such variable" in done.stderr
    assert "$WHERRY_ROUTE_BUFFERS is" not in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--", "no-such-program"], 1, "no-such-program is not a program: it is not in a directory of $PATH\n"),
        (["--", "./no-such-program"], 1, "./no-such-program is not a program: there is no such file"),
        (["--", "/etc"], 1, "/etc is not a program: it is not an executable file"),
        (["--nodes", "0", "--", "true"], 2, "nodes"),
        (["--placement", "moon", "--", "true"], 2, "moon"),
        (["--cores", "0,x", "--", "true"], 1, "'x' is not a core"),
        (["--cores", "99999", "--", "true"], 1, "may not use core 99999"),
        (["--cores", "0,0", "--", "true"], 1, "named twice"),
        (["--cores", "0", "--placement", "host", "--", "true"], 1, "use shared"),
        (["--placement", "dpu", "--", "true"], 1, "--agent"),
        (["--agent", "/nowhere", "--", "true"], 1, "only dpu does"),
        (["--placement", "dpu", "--agent", "/nowhere", "--", "true"], 1, "/nowhere"),
        ([], 2, "PROGRAM"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(jobs: Jobs, words: list[str], status: int, said: str) -> None:
    done = jobs.run(*words)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert done.stdout == ""


def test_a_program_of_this_directory_is_named(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    (tmp_path / "mine").chmod(0o755)
    done = jobs.run("--", "mine")
    assert done.returncode == 1
    assert (
        "mine is not a program: it is not in a directory of $PATH; the one in this directory is ./mine" in done.stderr
    )


def test_options_after_the_program_are_the_programs(jobs: Jobs) -> None:
    done = jobs.run("--ranks-per-node", "1", "--", "echo", "--nodes", "7", "--help")
    assert done.stdout == "--nodes 7 --help\n"


def test_help_teaches(jobs: Jobs) -> None:
    done = jobs.run("--help", COLUMNS="200")
    for word in ("--ranks-per-node", "--placement", "--netns", "wherry run --nodes 2", "124"):
        assert word in done.stdout


# ---- cores


@pytest.mark.parametrize(
    ("placement", "nodes", "per_node", "cores", "ranks", "agents"),
    [
        ("inline", 2, 2, [0, 1], [0, 1, 0, 1], []),
        ("dpu", 1, 3, [0, 1], [0, 1, 0], []),
        ("shared", 2, 2, [0, 1], [0, 0, 1, 1], [0, 1]),
        ("shared", 3, 1, [0, 1], [0, 1, 0], [0, 1, 0]),
        ("shared", 2, 2, [0, 1, 2, 3], [0, 1, 2, 3], [0, 2]),
        ("host", 2, 2, [0, 1], [0, 0, 0, 0], [1, 1]),
        ("host", 2, 1, [0, 1, 2, 3], [0, 1], [2, 3]),
        ("host", 2, 3, [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5], [6, 7]),
    ],
)
def test_cores(
    placement: str, nodes: int, per_node: int, cores: list[int], ranks: list[int], agents: list[int]
) -> None:
    plan = plan_cores(placement, nodes, per_node, cores)
    assert plan.ranks == [{core} for core in ranks]
    assert plan.agents == agents


def test_lists_of_cores() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert parse_cores("auto") == allowed
    assert parse_cores(",".join(map(str, reversed(allowed)))) == allowed[::-1]
    assert parse_cores(f"{allowed[0]}-{allowed[0]}") == allowed[:1]
    for wrong in ("", "1-0", "a", "-1", "0-", "1.5"):
        with pytest.raises(InvalidArgument, match="--cores"):
            parse_cores(wrong)


# ---- nodes of their own


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("placement", ["inline", "host"])
def test_nodes_in_network_namespaces(jobs: Jobs, rank: str, placement: str, tmp_path: Path) -> None:
    script = tmp_path / "rank.sh"
    script.write_text(
        f"{rank} exchange environment && ip -br -4 addr show eth0 && ls /sys/class/net && readlink /proc/self/ns/net\n"
        "for i in 1 2 3; do ping -c 1 -w 5 10.88.0.$i >/dev/null 2>&1 || "
        "python3 -c 'import socket, sys; s = socket.socket(); s.settimeout(5); "
        "sys.exit(s.connect_ex((sys.argv[1], 9)) != 111)' 10.88.0.$i && echo reaches $i; done\n"
        'test -z "$WHERRY_AGENT" || grep -o \'"host": "[^"]*"\' "$WHERRY_AGENT"\n'
        f"{rank} exchange\n"
    )
    done = jobs.run(*shape(3, 2), "--netns", "--placement", placement, "--", "sh", str(script))
    assert (done.returncode, done.stderr) == (0, "")
    spaces = set()
    for number in range(6):
        address = f"10.88.0.{number // 2 + 1}"
        mine = [line[4:] for line in done.stdout.splitlines() if line.startswith(f"[{number}]")]
        assert "WHERRY_ROUTE_BETWEEN=tcp" in mine
        assert any(f"{address}/16" in line for line in mine)
        assert "eth0" in mine, "/sys shows the namespace's devices"
        assert [line for line in mine if line.startswith("reaches")] == [f"reaches {i}" for i in (1, 2, 3)]
        if placement == "host":
            assert f'"host": "{address}"' in mine
        spaces |= {line for line in mine if line.startswith("net:")}
    assert len(spaces) == 3
    jobs.expect_nothing_left()
    used = {os.readlink(link) for link in Path("/proc").glob("[0-9]*/ns/net") if os.access(link, os.R_OK)}
    assert not spaces & used


@pytest.mark.usefixtures("namespaces")
def test_launcher_that_is_killed_takes_its_namespaces_along(jobs: Jobs, rank: str) -> None:
    with jobs.start(*shape(2, 1), "--netns", "--", rank, "exchange", "die-slowly") as launcher:
        assert launcher.stdout
        assert "rank" in launcher.stdout.readline()
        launcher.kill()
        launcher.communicate(timeout=300)
    jobs.expect_nothing_left()


def test_namespaces_without_root_are_refused(jobs: Jobs) -> None:
    words = jobs.command("--netns", "--", "true")
    if os.geteuid() == 0:
        words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *words]
    done = subprocess.run(words, env=jobs.environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "--netns" in done.stderr
