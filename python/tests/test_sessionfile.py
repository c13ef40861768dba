# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import fcntl
import grp
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wherry.errors import NotFound, Unavailable, VersionMismatch
from wherry.session import sessionfile
from wherry.session.sessionfile import BadSessionFile
from wherry.system import paths

Write = Callable[..., Path]


def test_load_reads_every_field(write_session: Write, tmp_path: Path) -> None:
    session = sessionfile.load_session(write_session())
    assert (session.pid, session.host, session.port) == (os.getpid(), "127.0.0.1", 4242)
    assert session.token == "6f6e6520746f6b656e"
    assert session.local_socket == tmp_path / "local.sock"
    assert session.flight == "grpc://127.0.0.1:4243"
    assert session.metrics == "http://127.0.0.1:4244/metrics"
    assert session.wherry == "0.1.0"
    assert session.control == tmp_path / "agent.json.control"
    assert session.address == "127.0.0.1:4242"
    assert session.local
    assert session.alive()


@pytest.mark.parametrize("absent", ["", "off", None])
def test_services_that_are_off_are_none(write_session: Write, absent: str | None) -> None:
    session = sessionfile.load_session(write_session(flight=absent, metrics=absent, local_socket=absent))
    assert session.flight is None
    assert session.metrics is None
    assert session.local_socket is None


def test_sockets_lie_beside_the_file_that_names_them(write_session: Write, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.json"
    link.parent.mkdir()
    link.symlink_to(write_session(control="agent.json.control", local_socket="agent.json.sock"))
    session = sessionfile.load_session(link)
    assert session.control == tmp_path / "agent.json.control"
    assert session.local_socket == tmp_path / "agent.json.sock"


def test_unknown_fields_are_ignored(write_session: Write) -> None:
    assert sessionfile.load_session(write_session(colour="blue")).port == 4242


def test_token_is_in_no_text_of_the_session(write_session: Write) -> None:
    session = sessionfile.load_session(write_session())
    assert session.token not in repr(session)
    assert session.token not in f"{session}"


def test_missing_file_says_how_to_start_an_agent(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nothing\.json does not exist; start one with `wherry agent start`"):
        sessionfile.load_session(tmp_path / "nothing.json")


def test_dead_agent_whatever_runs_under_its_pid(write_session: Write) -> None:
    for pid in (os.getpid(), os.getppid(), 1):
        path = write_session(pid=pid, alive=False)
        with pytest.raises(Unavailable, match=rf"pid {pid}\) has gone"):
            sessionfile.load_session(path)
        session = sessionfile.load_session(path, require_alive=False)
        assert session.pid == pid
        assert not session.alive()


def test_agent_that_runs_in_another_pid_namespace(write_session: Write) -> None:
    session = sessionfile.load_session(write_session(pid=1_999_999_999))  # no process here has this pid
    assert session.alive()


def test_readers_that_look_at_once_do_not_take_each_other_for_agents(write_session: Write) -> None:
    path = write_session(alive=False)
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        with pytest.raises(Unavailable, match="has gone"):
            sessionfile.load_session(path)


def test_agent_of_another_machine_counts_as_alive(write_session: Write) -> None:
    session = sessionfile.load_session(write_session(host="10.0.0.7", alive=False))
    assert not session.local
    assert session.alive()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_file_that_others_may_open_is_refused(write_session: Write, mode: int) -> None:
    with pytest.raises(BadSessionFile, match="others may read it: chmod 600"):
        sessionfile.load_session(write_session(mode=mode))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_file_of_another_user_is_refused(write_session: Write) -> None:
    path = write_session()
    os.chown(path, 12345, -1)
    with pytest.raises(BadSessionFile, match="belongs to user 12345"):
        sessionfile.load_session(path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_directory_of_another_user_is_refused(write_session: Write) -> None:
    path = write_session()
    os.chown(path.parent, 12345, -1)
    with pytest.raises(BadSessionFile, match="belongs to user 12345, which could"):
        sessionfile.load_session(path)


def test_directory_that_others_may_write_to_is_refused(write_session: Write) -> None:
    path = write_session()
    path.parent.chmod(0o770)
    with pytest.raises(BadSessionFile, match="chmod go-w"):
        sessionfile.load_session(path)
    path.parent.chmod(0o1777)
    assert sessionfile.load_session(path).pid == os.getpid()


def test_links_count_if_they_are_of_this_user(write_session: Write, tmp_path: Path) -> None:
    write_session()
    (tmp_path / "link.json").symlink_to("agent.json")
    (tmp_path / "way").symlink_to(tmp_path)
    session = sessionfile.load_session(tmp_path / "way" / "link.json")
    assert session.pid == os.getpid()
    if os.getuid() != 0:
        return
    for link in ("link.json", "way"):
        os.chown(tmp_path / link, 12345, -1, follow_symlinks=False)
        with pytest.raises(BadSessionFile, match="symbolic link"):
            sessionfile.load_session(tmp_path / "way" / "link.json")
        os.chown(tmp_path / link, 0, -1, follow_symlinks=False)


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(BadSessionFile, match="is a directory"):
        sessionfile.load_session(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "\x00\xff", "[1, 2", '{"version": 1,}'])
def test_not_json(write_session: Write, text: str) -> None:
    with pytest.raises(BadSessionFile, match="is not JSON"):
        sessionfile.load_session(write_session(text=text))


@pytest.mark.parametrize("text", ["[]", "1", "null", '"token"'])
def test_json_that_is_no_object(write_session: Write, text: str) -> None:
    with pytest.raises(BadSessionFile, match="a JSON object is expected"):
        sessionfile.load_session(write_session(text=text))


@pytest.mark.parametrize("version", [0, 1, "2", True, None])
def test_other_versions(write_session: Write, version: object) -> None:
    with pytest.raises(VersionMismatch, match="reads version 2"):
        sessionfile.load_session(write_session(version=version))


@pytest.mark.parametrize("field", ["pid", "control", "host", "port", "token", "wherry"])
def test_each_missing_field_is_named(write_session: Write, field: str) -> None:
    with pytest.raises(BadSessionFile, match=f"{field} is missing"):
        sessionfile.load_session(write_session(**{field: None}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pid", "12"), ("pid", 0), ("pid", -1), ("pid", True), ("pid", 1.5), ("port", 0), ("port", 65536),
        ("port", "80"), ("control", ""), ("control", 7), ("host", ""),
        ("host", 1), ("token", ""), ("token", 5), ("flight", 7), ("local_socket", ["x"]), ("wherry", {}),
    ],
)  # fmt: skip
def test_each_wrong_field_is_named(write_session: Write, field: str, value: object) -> None:
    with pytest.raises(BadSessionFile, match=field):
        sessionfile.load_session(write_session(**{field: value}))


def test_wrong_token_is_not_shown(write_session: Write) -> None:
    with pytest.raises(BadSessionFile) as caught:
        sessionfile.load_session(write_session(token=987654321))
    assert "987654321" not in str(caught.value)


def test_parse_takes_bytes() -> None:
    fields = {"version": 2, "pid": 1, "control": "/c", "host": "", "port": 0, "token": "t", "wherry": "0.1.0"}
    assert sessionfile.parse_session(json.dumps(fields).encode(), Path("x")).address == "/c"


def test_default_path_follows_the_environment() -> None:
    assert sessionfile.session_path({"WHERRY_SESSION": "/a/b.json", "XDG_RUNTIME_DIR": "/run/1"}) == Path("/a/b.json")
    assert sessionfile.session_path({"XDG_RUNTIME_DIR": "/run/1"}) == Path("/run/1/wherry/agent.json")
    assert sessionfile.session_path({}) == Path(f"/tmp/wherry-{os.getuid()}/agent.json")


@pytest.mark.may_lack  # some machines do not allow user namespaces
def test_default_path_in_a_user_namespace_is_that_of_the_user_outside() -> None:
    enter = ["unshare", "--user", f"--map-user={os.getuid() + 5}"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no user namespaces")
    text = "import os; from wherry.session import sessionfile; print(os.getuid(), sessionfile.session_path({}))"
    done = subprocess.run([*enter, sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(os.getuid() + 5), f"/tmp/wherry-{os.getuid()}/agent.json"]


def test_programs_are_found_where_the_environment_says(tmp_path: Path) -> None:
    program = tmp_path / "wherryd"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(NotFound, match=r"\$WHERRY_WHERRYD names .*, which is not an executable file"):
        paths.wherryd({"WHERRY_WHERRYD": str(program)})
    program.chmod(0o755)
    assert paths.wherryd({"WHERRY_WHERRYD": str(program)}) == program


def test_program_on_the_path_is_found_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "python" / "wherry")
    with pytest.raises(NotFound, match=r"no wherryd: looked at .*; build it with `make build`"):
        paths.wherryd({"PATH": ""})
    program = tmp_path / "wherryd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert paths.wherryd({"PATH": str(tmp_path)}) == program


def _own_group() -> str:
    return grp.getgrgid(os.getgid()).gr_name


def test_file_that_says_it_is_for_a_group_of_ours(write_session: Write) -> None:
    assert sessionfile.load_session(write_session(mode=0o640, group=_own_group())).pid == os.getpid()


@pytest.mark.parametrize("mode", [0o660, 0o644, 0o650])
def test_file_for_a_group_that_may_do_more_than_read_is_refused(write_session: Write, mode: int) -> None:
    with pytest.raises(BadSessionFile, match="others may read it"):
        sessionfile.load_session(write_session(mode=mode, group=_own_group()))


@pytest.mark.parametrize("group", ["no-such-group", 7, ""])
def test_file_for_another_group_is_refused(write_session: Write, group: object) -> None:
    with pytest.raises(BadSessionFile, match="others may read it"):
        sessionfile.load_session(write_session(mode=0o640, group=group))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_file_of_another_user_for_our_group_counts_where_it_was_named(
    write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(mode=0o640, group=_own_group())
    os.chown(path, 12345, -1)
    assert sessionfile.load_session(path).pid == os.getpid()
    monkeypatch.setattr(sessionfile, "session_path", lambda: path)
    with pytest.raises(BadSessionFile, match="belongs to user 12345"):
        sessionfile.load_session()
    monkeypatch.setenv("WHERRY_SESSION", str(path))
    assert sessionfile.load_session().pid == os.getpid()
