# SPDX-License-Identifier: Apache-2.0
"""The session file: the addresses of a running agent, and the token that clients must present."""

from __future__ import annotations

import errno
import fcntl
import grp
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.errors import Error, InvalidArgument, NotFound, PermissionDenied, Unavailable, VersionMismatch
from wherry.system import check_private, open_directory, runtime_directory

VERSION = 2
"""The version of the session file that this package reads."""

_REMEDY = "name another session file, for example with $WHERRY_SESSION"
_MAX_LINKS = 8
_LOOPBACK = ("127.", "::1", "localhost")


def session_path(environment: Mapping[str, str] | None = None) -> Path:
    """The default session file: $WHERRY_SESSION, else $XDG_RUNTIME_DIR/wherry/agent.json, else
    /tmp/wherry-<uid>/agent.json.

    wherryd and the C++ client use the same rule (include/wherry/session.hpp). The function does not check whether the
    file exists.
    """
    environment = os.environ if environment is None else environment
    if environment.get("WHERRY_SESSION"):
        return Path(environment["WHERRY_SESSION"]).expanduser()
    return runtime_directory(environment) / "agent.json"


class BadSessionFile(Error):
    """The file exists, but it is not a session file or is not safe to use."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The addresses of an agent. `token` is a secret: a process that has it may write to and read from the agent."""

    path: Path
    pid: int
    control: Path
    """The Unix socket for clients on the agent's machine."""
    host: str | None
    """The address for clients on other machines. If there is none, it is None and `port` is 0."""
    port: int
    token: str
    local_socket: Path | None
    """The Unix socket of the local reader's protocol. None if the agent does not offer it."""
    flight: str | None
    """The Arrow Flight location, such as "grpc://127.0.0.1:1234". None if Flight is off."""
    metrics: str | None
    """The URL of the metrics in Prometheus' text format. None if metrics are off."""
    wherry: str
    """The agent's version."""

    @property
    def local(self) -> bool:
        """Whether the agent accepts only clients on its own machine, and therefore runs on this machine."""
        return self.host is None or self.host.startswith(_LOOPBACK)

    @property
    def address(self) -> str:
        """The agent's host:port for other machines, if there is one, else the path of its Unix socket."""
        return str(self.control) if self.host is None else f"{self.host}:{self.port}"

    def written(self) -> float | None:
        """The time at which the agent was ready and wrote the file, in seconds since 1970. None: the file no longer
        exists."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None

    def alive(self) -> bool:
        """Whether the agent lives. A living agent holds a lock on its session file. The lock ends with the agent in any
        case.

        Agents on other machines count as alive, because only a connection can show whether they live.
        """
        if not self.local:
            return True
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            return _held(handle)
        finally:
            os.close(handle)

    def __repr__(self) -> str:
        return f"SessionFile({str(self.path)!r}, pid={self.pid}, {self.address})"  # must not show the token


def _held(handle: int) -> bool:
    """Whether an agent holds the lock of the session file. Returns true on file systems without locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(handle, fcntl.LOCK_UN)
    return False


def _follow(where: Path) -> tuple[Path, str]:
    """The directory and the name of the file `where`, after following symbolic links of this user or root."""
    for _ in range(_MAX_LINKS):
        try:
            status = os.lstat(where)
        except OSError:
            break
        if not stat.S_ISLNK(status.st_mode) or status.st_uid not in (os.getuid(), 0):
            break
        where = where.parent / os.readlink(where)
    return where.parent, where.name


def load_session(path: str | os.PathLike[str] | None = None, *, require_alive: bool = True) -> SessionFile:
    """Reads and checks the session file at `path` (default: session_path()).

    Raises NotFound if the file is missing; Unavailable if `require_alive` is set and the agent has ended;
    VersionMismatch. Raises BadSessionFile if the file or its directory belongs to another user, if others can read the
    file or write to the directory, or if it is not a session file.

    An agent with `agent.group` shares its file with that group, and the file states the group. Such a file and its
    directory may belong to another user, but only if `path` or $WHERRY_SESSION names the file, because any user can
    make the default directories in /tmp.
    """
    where = Path(path).expanduser() if path is not None else session_path()
    missing = f"no agent: {where} does not exist; start one with `wherry agent start`"
    parent = where.absolute().parent
    handle = directory = -1
    try:
        parent, name = _follow(where.absolute())
        directory = open_directory(parent)
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise BadSessionFile(f"{where} is a directory, not a session file")
        if not stat.S_ISREG(status.st_mode):
            raise BadSessionFile(f"{where} is not a file, so not a session file")
        text = os.read(handle, 1 << 16)
        named = path is not None or bool(os.environ.get("WHERRY_SESSION"))
        shared = _names_group(text, status.st_gid)
        trusted = {os.getuid(), 0} | ({status.st_uid} if shared and named else set())
        if status.st_uid not in trusted:
            raise BadSessionFile(f"{where} belongs to user {status.st_uid}: its agent cannot be trusted")
        if status.st_mode & (stat.S_IRWXO | (stat.S_IWGRP | stat.S_IXGRP if shared else stat.S_IRWXG)):
            raise BadSessionFile(f"{where} holds a token, but others may read it: chmod 600 it, and restart its agent")
        check_private(directory, parent, _REMEDY, trusted)
        held = _held(handle)
    except (FileNotFoundError, NotFound):
        raise NotFound(missing) from None
    except (PermissionDenied, InvalidArgument) as error:
        raise BadSessionFile(f"cannot use the session file {where}: {error}") from None
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise BadSessionFile(f"cannot read the session file {where}: {reason}") from None
    finally:
        for descriptor in (handle, directory):
            if descriptor >= 0:
                os.close(descriptor)
    session = parse_session(text, where)
    if require_alive and session.local and not held:
        raise Unavailable(f"the agent of {where} (pid {session.pid}) has gone; start one with `wherry agent start`")
    return session


def _names_group(text: bytes, gid: int) -> bool:
    """Whether the file states that it is meant for the group that owns it."""
    try:
        return grp.getgrnam(json.loads(text)["group"]).gr_gid == gid
    except (ValueError, TypeError, KeyError):
        return False


def parse_session(text: bytes | str, path: Path) -> SessionFile:
    """Parses a session file's text. Raises BadSessionFile, which names the wrong field; VersionMismatch."""
    try:
        fields = json.loads(text)
    except (ValueError, UnicodeDecodeError) as error:
        raise BadSessionFile(f"{path} is not JSON ({error})") from None
    if not isinstance(fields, dict):
        raise BadSessionFile(f"{path} is not a session file: a JSON object is expected")
    version = fields.get("version")
    if version != VERSION or isinstance(version, bool):
        raise VersionMismatch(f"{path} is a session file of version {version!r}; this Wherry reads version {VERSION}")
    token = _field(fields, "token", str, path)
    if not token:
        raise BadSessionFile(f"{path}: token is empty")
    control = _field(fields, "control", str, path)
    if not control:
        raise BadSessionFile(f"{path}: control is empty; the path of a socket is expected")
    host = _field(fields, "host", str, path) or None
    port = _field(fields, "port", int, path)
    if host is None and port != 0:
        raise BadSessionFile(f"{path}: port is {port}, but host is empty; 0 is expected")
    if host is not None and not 0 < port < 1 << 16:
        raise BadSessionFile(f"{path}: port is {port}; 1 to 65535 is expected")
    pid = _field(fields, "pid", int, path)
    if pid <= 0:
        raise BadSessionFile(f"{path}: pid is {pid}; a positive number is expected")
    local_socket = _optional(fields, "local_socket", path)
    directory = path.resolve().parent  # socket names have no folder: the sockets are in the file's folder
    return SessionFile(
        path=path,
        pid=pid,
        control=directory / control,
        host=host,
        port=port,
        token=token,
        local_socket=directory / local_socket if local_socket else None,
        flight=_optional(fields, "flight", path),
        metrics=_optional(fields, "metrics", path),
        wherry=_field(fields, "wherry", str, path),
    )


def _field(fields: dict[str, Any], name: str, kind: type, path: Path) -> Any:
    if name not in fields:
        raise BadSessionFile(f"{path}: {name} is missing")
    value = fields[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        shown = "of another type" if name == "token" else repr(value)
        raise BadSessionFile(f"{path}: {name} is {shown}; {kind.__name__} is expected")
    return value


def _optional(fields: dict[str, Any], name: str, path: Path) -> str | None:
    """An optional string field. None if the field is missing, empty, null or "off"."""
    if fields.get(name) in (None, "", "off"):
        return None
    value: str = _field(fields, name, str, path)
    return value
