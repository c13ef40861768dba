# SPDX-License-Identifier: Apache-2.0
"""The agent of deploy/wherryd.service: one user runs it, and other users of its group use it. The test acts as all of
them, as root."""

import grp
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.errors import Error
from wherry.session import load_session

AGENT, MEMBER, STRANGER = 12345, 12346, 12347
GROUP = grp.getgrnam("users")
ROOT = Path(__file__).resolve().parents[2]

CLIENT = """
import numpy as np
import wherry

with wherry.Session() as session:
    print(session.info)
    x = np.arange(100_000.0)
    stream = session.stream("x", {"x": x})
    stream.offload({"x": x}, tag=3).wait(60)
    stream.close()
    (read,) = [(f.tag, f.batch.column("x").to_numpy().copy()) for f in wherry.open("x", agent=session, timeout=60)]
assert read[0] == 3 and np.array_equal(read[1], x), read
"""

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can play other users")


@pytest.fixture
def place(tmp_path: Path, wherryd: Path) -> Iterator[Path]:
    """Runs an agent as user AGENT for the group; yields its session file."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_uid == os.getuid() and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o711)
    run = tmp_path / "run"  # as systemd creates it: RuntimeDirectory=, RuntimeDirectoryMode=0750
    run.mkdir(mode=0o750)
    os.chown(run, AGENT, GROUP.gr_gid)
    file = run / "agent.json"
    line = [str(wherryd), "--session-file", str(file), "--budget", "64MiB", "--group", GROUP.gr_name, "--flight", "off"]
    with subprocess.Popen(line, user=AGENT, group=GROUP.gr_gid, extra_groups=[], umask=0o027, cwd="/") as agent:
        try:
            while agent.poll() is None:
                try:
                    load_session(file)
                    break
                except Error:
                    pass
            assert agent.poll() is None
            yield file
        finally:
            agent.terminate()
    assert agent.returncode == 0


def client(user: int, groups: list[int], file: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT / "python"), "WHERRY_AGENT": str(file), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", CLIENT],
        user=user, group=user, extra_groups=groups, env=environment, cwd="/",
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_a_member_of_the_group_offloads_and_reads(place: Path) -> None:
    done = client(MEMBER, [GROUP.gr_gid], place)
    assert done.returncode == 0, done.stderr
    assert "stream/unix" in done.stdout, "processes of different users share no memory and no CMA"


def test_a_user_outside_of_the_group_is_refused(place: Path) -> None:
    done = client(STRANGER, [], place)
    assert done.returncode != 0
    assert "PermissionDenied" in done.stderr
    assert str(place) in done.stderr
    assert client(MEMBER, [GROUP.gr_gid], place).returncode == 0, "the agent serves on"
