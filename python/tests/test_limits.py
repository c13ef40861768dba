# SPDX-License-Identifier: Apache-2.0
"""When disks, descriptors or memory run out, or the umask removes all rights: what still works, and the messages."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import eventually
from kvclusters import KvHome

from wherry.session import agent_process, sessionfile
from wherry.system import paths, processes

pytestmark = pytest.mark.agent

QUICK = ("--bucket-bits", "8", "--ping-ms", "40")
FULL = 1 << 16
"""Size in bytes of a file system that fills quickly."""
OTHER_USER = 12345


def on_small_file_system(directory: Path, *command: str, first: str = "") -> list[str]:
    """Command line of `command` with a file system of FULL bytes at `directory`. `first`: a shell command to run before
    it."""
    directory.mkdir()
    root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    # In a chroot, `/` is not a mount point, and unshare would fail.
    mount = "mount --make-rprivate / 2>/dev/null; "
    mount += f"mount -t tmpfs -o size={FULL} tmpfs {shlex.quote(str(directory))}"
    script = f"{mount} && {first or ':'} && exec {shlex.join(command)}"
    return ["unshare", *root, "--mount", "--propagation", "unchanged", "sh", "-c", script]


def fill(directory: Path) -> Path:
    """Fills the file system of `directory` with a file; returns the file."""
    file = directory / "fill"
    with file.open("wb", buffering=0) as all_of_it:
        for size in (4096, 1):
            try:
                while all_of_it.write(bytes(size)):
                    pass
            except OSError:
                continue
    return file


def wherry(*words: str) -> list[str]:
    return [sys.executable, "-m", "wherry", *words]


def surroundings() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent), "COLUMNS": "160"}


def one_sentence(text: str) -> str:
    """Checks that the message is one sentence of Wherry, not a traceback or a library's message. Returns it."""
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("wherry: "), text
    return lines[0]


def descriptors(count: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def test_what_dies_is_started_again_although_the_disk_was_full_then(home: KvHome, tmp_path: Path) -> None:
    place = tmp_path / "small"
    command = on_small_file_system(place, *home.command("up", "--restart", "--dir", str(place / "k"), *QUICK))
    log = tmp_path / "said"
    with log.open("wb") as said, subprocess.Popen(command, env=home.environment, stdout=said, stderr=said) as up:
        try:
            assert eventually(lambda: (home.runtime / "wherry" / "kv-up.json").exists()), log.read_text()
            home_of_up = Path(f"/proc/{up.pid}/root{place}")
            first = home.up.nodes[0]
            filled = fill(home_of_up)
            with pytest.raises(OSError, match="No space"):
                (home_of_up / "more").write_bytes(bytes(FULL))
            home.kill(0)
            assert eventually(lambda: "cannot write" in log.read_text()), log.read_text()
            filled.unlink()
            (home_of_up / "more").unlink()
            assert eventually(lambda: home.up.nodes[0] not in (0, first)), log.read_text()
            assert eventually(lambda: "node 0 started again" in log.read_text())
            assert eventually(lambda: "was killed by signal 9" in log.read_text())
        finally:
            up.terminate()
        assert up.wait(timeout=300) == 0


def test_notes_that_a_full_disk_did_not_take_are_in_the_log_later(home: KvHome, tmp_path: Path) -> None:
    place = tmp_path / "small"
    up_command = home.command("up", "--restart", "--dir", str(place / "k"), *QUICK)
    command = on_small_file_system(
        place,
        "sh",
        "-c",
        # With `up --detach` only its child would stay in the namespace. So `up` runs here, with its log on the small
        # disk.
        f"exec {shlex.join(up_command)} >/dev/null 2>{place}/up.log",
    )
    with subprocess.Popen(command, env=home.environment) as up:
        try:
            assert eventually(lambda: (home.runtime / "wherry" / "kv-up.json").exists())
            home_of_up = Path(f"/proc/{up.pid}/root{place}")
            first = home.up.nodes[1]
            filled = fill(home_of_up)
            home.kill(1)
            assert eventually(lambda: home.up.nodes[1] != first)
            filled.unlink()
            log = home_of_up / "up.log"
            assert eventually(lambda: "node 1 started again" in log.read_text()), log.read_text()
            assert f"node 1 (pid {first}) was killed by signal 9" in log.read_text()
        finally:
            up.terminate()
        assert up.wait(timeout=300) == 0


def test_up_on_a_full_disk_says_so(home: KvHome, tmp_path: Path) -> None:
    place = tmp_path / "small"
    command = on_small_file_system(
        place,
        *home.command("up", "--dir", str(place / "k"), *QUICK),
        first=f"(cat /dev/zero >{place}/fill 2>/dev/null; true)",
    )
    done = subprocess.run(command, env=home.environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    said = one_sentence(done.stderr)
    for words in (f"cannot write {place}/k/cluster.toml", "No space left on device", "free some space"):
        assert words in said


@pytest.mark.parametrize("count", [8, 10, 12])
def test_up_with_too_few_descriptors_says_so(home: KvHome, count: int) -> None:
    done = subprocess.run(
        home.command("up", *QUICK), env=home.environment, capture_output=True, text=True, timeout=300,
        preexec_fn=descriptors(count),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    said = one_sentence(done.stderr)
    assert said.startswith(("wherry: no directory", "wherry: cannot start", "wherry: cannot write", "wherry: Too many"))
    assert "ulimit -n" in said
    assert eventually(lambda: not home.processes())
    assert [entry for entry in home.temporary.iterdir() if entry != home.runtime] == []


@pytest.mark.parametrize("count", [12, 16, 24, 32, 48])
def test_an_agent_with_too_few_descriptors_says_so(wherryd: Path, tmp_path: Path, count: int) -> None:
    line = wherry("agent", "start", "--budget", "64MiB", "--session-file", str(tmp_path / "a.json"))
    done = subprocess.run(
        line, env=surroundings(), capture_output=True, text=True, timeout=300, preexec_fn=descriptors(count)
    )
    assert done.returncode == 1, done.stderr
    said = one_sentence(done.stderr)
    for words in ("exit status 1", "the agent has no file descriptors left", f"it may have {count}", "ulimit -n"):
        assert words in said


def test_an_agent_is_started_although_a_descriptor_of_the_caller_is_above_the_limit(
    wherryd: Path, tmp_path: Path
) -> None:
    where, lock = tmp_path / "a.json", tmp_path / "lock"
    line = shlex.join(wherry("agent", "start", "--budget", "64MiB", "--session-file", str(where)))
    script = f"exec 200>{shlex.quote(str(lock))}; flock 200; ulimit -n 150; exec {line}"
    done = subprocess.run(["bash", "-c", script], env=surroundings(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    session = sessionfile.load_session(where)
    try:
        assert subprocess.run(["flock", "-n", str(lock), "true"], timeout=300).returncode == 0
    finally:
        agent_process.stop_agent(session, 30)


def test_an_agent_whose_session_file_and_log_are_on_a_full_disk_says_so(wherryd: Path, tmp_path: Path) -> None:
    place = tmp_path / "small"
    line = wherry("agent", "start", "--budget", "64MiB", "--session-file", str(place / "a.json"))
    command = on_small_file_system(place, *line, first=f"(cat /dev/zero >{place}/fill 2>/dev/null; true)")
    done = subprocess.run(command, env=surroundings(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    said = one_sentence(done.stderr)
    for words in ("exit status 1", "cannot write the session file", "No space left on device", "free some space"):
        assert words in said


def test_a_node_without_memory_for_its_buckets_says_how_much_it_wants(home: KvHome) -> None:
    space = 1 << 30
    done = subprocess.run(
        home.command("up", "--bucket-bits", "24"), env=home.environment, capture_output=True, text=True, timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space)),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    said = one_sentence(done.stderr)
    least = 2**24 * 4 * 1024  # 4 KiB of values per location, as in docs/guide/kv.md
    wanted = int(said.partition("which want ")[2].split()[0])
    assert least <= wanted < 1.1 * least
    for words in ("node", "2^24 buckets", "ulimit -v", "bucket_bits"):
        assert words in said


def test_a_program_that_cannot_say_why_it_ends_ends_with_its_status(wherryd: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([str(wherryd), "--budget", "plenty"], stderr=full, timeout=300)
    assert done.returncode == 2


@pytest.mark.skipif(os.getuid() != 0, reason="root may enter directories of any mode; only root can play another user")
def test_an_agent_starts_whatever_the_umask(wherryd: Path, tmp_path: Path) -> None:
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_uid == os.getuid() and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o711)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, OTHER_USER, OTHER_USER)
    segments = Path(f"/dev/shm/wherry-{OTHER_USER}")
    before = set(segments.iterdir()) if segments.exists() else set()
    where = home / "new" / "a.json"
    program = [str(wherryd), "--session-file", str(where), "--budget", "64MiB", "--log-file", str(home / "agent.log")]
    with subprocess.Popen(program, user=OTHER_USER, group=OTHER_USER, extra_groups=[], umask=0o777, cwd="/") as agent:
        try:
            assert eventually(where.exists)
            assert agent.poll() is None
            assert where.stat().st_mode & 0o777 == 0o600
            assert where.parent.stat().st_mode & 0o777 == 0o700
            assert (home / "agent.log").stat().st_mode & 0o777 == 0o600
            assert {entry.stat().st_mode & 0o777 for entry in set(segments.iterdir()) - before} <= {0o700}
        finally:
            agent.terminate()
    assert set(segments.iterdir()) - before == set()


def test_the_sweeper_removes_its_directory_although_nobody_read_that_it_was_made(tmp_path: Path) -> None:
    """The pipe has no reader, as if the launcher was killed at that moment."""
    read, write = os.pipe()
    os.close(read)
    directory = tmp_path / "workspace"
    with subprocess.Popen(
        ["sh", "-c", processes._SWEEPER, "sweeper", str(directory)],
        stdin=subprocess.PIPE, stdout=write, stderr=subprocess.DEVNULL,
    ) as sweeper:  # fmt: skip
        os.close(write)
        assert sweeper.stdin
        assert eventually(directory.exists)
        sweeper.stdin.close()
        assert eventually(lambda: not directory.exists())


def test_a_session_without_a_name_of_an_agent_is_refused_in_a_sentence() -> None:
    import wherry as package
    from wherry.errors import InvalidArgument

    with pytest.raises(InvalidArgument, match="want auto, embedded, host:port, or the path of an agent's session file"):
        package.Session(agent="")


def test_paths_in_a_directory_that_was_removed_are_refused_in_a_sentence(wherryd: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    program = (
        "import os, sys, wherry\n"
        "os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])\n"
        "try: wherry.Session(agent='a/b.json')\n"
        "except wherry.errors.InvalidArgument as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(gone)], env=surroundings(), capture_output=True, text=True, timeout=300
    )
    assert "the current directory is unknown" in done.stdout, done.stderr


def test_no_directory_for_temporary_files_is_said(wherryd: Path, tmp_path: Path) -> None:
    program = (
        "import wherry\n"
        "try: wherry.Session(agent='embedded')\n"
        "except wherry.errors.InvalidArgument as error: print(error)\n"
    )
    nowhere = {**surroundings(), "TMPDIR": str(tmp_path / "nowhere")}
    done = subprocess.run([sys.executable, "-c", program], env=nowhere, capture_output=True, text=True, timeout=300)
    assert "set $TMPDIR" in done.stdout, done.stderr
