# SPDX-License-Identifier: Apache-2.0
"""Finds a running `wherry kv up`: its record, the choice among several, and the addresses of its cluster.

The module also manages the lanes of commands that write, as files in the user's own directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from wherry.errors import Error, NotFound, ResourceExhausted, Unavailable
from wherry.kv.cluster_file import Cluster, load
from wherry.kv.network import inside
from wherry.system import check_private, open_directory, open_own, replace_own, runtime_directory, secure_directory

LANES_OF_COMMANDS = 64
"""Without a keeper, the last lanes of a cluster, this many, are reserved for `wherry kv put` and `delete`."""


@dataclass(slots=True)
class Up:
    """The record of a running `wherry kv up`. It is stored in the cluster's directory. A well-known file has the record
    of the newest one."""

    pid: int
    started: int
    """The start time of the process, in the kernel's ticks. It distinguishes the process from a later one with the same
    pid."""
    cluster: Path
    keeper: int = 0
    """The pid of the keeper. 0: it does not run. `nodes` has the pid of each node in the same form."""
    nodes: dict[int, int] = field(default_factory=dict)
    namespace: str = ""
    """The file of the network namespace in which clients reach the cluster. Empty: it has no separate namespace."""
    rtl: list[int] = field(default_factory=list)
    """The numbers of the nodes that are simulated RTL."""
    before: list[str] = field(default_factory=list)
    """The cluster files of this user's `wherry kv up` commands that already ran when this one started, the newest
    last."""

    def alive(self) -> bool:
        """Whether the process still runs."""
        return start_time(self.pid) == self.started

    def write(self, file: Path) -> None:
        """Replaces the file atomically. Raises PermissionDenied if other users can put files into its directory."""
        text = json.dumps(asdict(self) | {"cluster": str(self.cluster)}) + "\n"
        with secure_directory(file.parent) as directory:
            replace_own(file.name, text, directory)


def start_time(pid: int) -> int:
    """The start time of a process, in ticks since boot. 0: the process does not exist, or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def up_file(environment: Mapping[str, str] | None = None) -> Path:
    """The file that names the newest `wherry kv up` of this user."""
    return runtime_directory(environment) / "kv-up.json"


def read_up(path: Path) -> Up:
    """Reads a record.

    Raises NotFound if the file is missing, Unavailable if the process has ended, Error if the file is not a record,
    PermissionDenied if another user could have put it there.
    """
    up = _record(path)
    if not up.alive():
        older = older_up(up)
        others = f", or use your older one with --cluster {older.cluster}" if older is not None else ""
        raise Unavailable(
            f"the `wherry kv up` of {up.cluster} (pid {up.pid}) has gone, and its data; start another{others}"
        )
    return up


def _record(path: Path) -> Up:
    """Like read_up(), but accepts a record whose process has ended."""
    path = path.absolute()
    remedy = "name the cluster with --cluster or $WHERRY_KV_CLUSTER"
    directory = -1
    try:
        directory = open_directory(path.parent)
        check_private(directory, path.parent, remedy)
        with open(open_own(path.name, os.O_RDONLY, directory, path.parent), "rb") as file:
            text = file.read(1 << 16)
    except (FileNotFoundError, NotFound):
        raise NotFound(
            "no kv cluster: none was named, and no `wherry kv up` of this user runs; start one, or name a file with "
            "--cluster or $WHERRY_KV_CLUSTER"
        ) from None
    finally:
        if directory >= 0:
            os.close(directory)
    try:
        said = json.loads(text)
        nodes = {int(number): int(pid) for number, pid in said["nodes"].items()}
        up = Up(int(said["pid"]), int(said["started"]), Path(said["cluster"]), int(said["keeper"]), nodes)
        up.namespace = str(said.get("namespace", ""))
        up.rtl = [int(number) for number in said.get("rtl", [])]
        up.before = [str(file) for file in said.get("before", [])]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Error(f"{path} is not what `wherry kv up` wrote ({error}): remove it") from None
    return up


def older_up(up: Up) -> Up | None:
    """This user's newest running `wherry kv up` that started before `up`."""
    for cluster in reversed(up.before):
        try:
            return up_of(Path(cluster))
        except (Error, OSError):
            continue
    return None


def all_ups(environment: Mapping[str, str] | None = None) -> list[Up]:
    """All running `wherry kv up` of this user, the newest last."""
    try:
        newest = _record(up_file(environment))
    except NotFound:
        return []
    found: dict[int, Up] = {}
    for cluster in [*newest.before, str(newest.cluster)]:
        try:
            up = up_of(Path(cluster))
        except (Error, OSError):
            continue  # this one has ended
        found[up.pid] = up
    return list(found.values())


def newest_up(environment: Mapping[str, str] | None = None) -> Up:
    """This user's newest `wherry kv up`."""
    return read_up(up_file(environment))


def up_of(cluster: Path) -> Up:
    """The `wherry kv up` that runs the cluster of a file."""
    try:
        return read_up(cluster.absolute().parent / "up.json")
    except NotFound:
        raise NotFound(f"no `wherry kv up` runs {cluster}") from None


def locate(path: str | os.PathLike[str] | None = None, environment: Mapping[str, str] | None = None) -> Cluster:
    """Loads the cluster file `path`, else $WHERRY_KV_CLUSTER, else that of this user's newest `wherry kv up`."""
    environment = os.environ if environment is None else environment
    if path is not None:
        return load(Path(path).expanduser())
    if environment.get("WHERRY_KV_CLUSTER"):
        return load(Path(environment["WHERRY_KV_CLUSTER"]).expanduser())
    return load(newest_up(environment).cluster)


@contextmanager
def reached(cluster: Cluster) -> Iterator[None]:
    """In this context, new sockets can reach the cluster: they are in the network namespace of its `up --xdp` or
    `--tap`, if it has one."""
    try:
        namespace = up_of(cluster.path).namespace
    except (Error, OSError):
        namespace = ""  # `wherry kv up` did not start the cluster
    if not namespace:
        yield
        return
    with inside(namespace):
        yield


@contextmanager
def own_lane(cluster: Cluster, lane: int | None = None) -> Iterator[int | None]:
    """Yields a static lane for a command that writes. None: the keeper grants a lane. `lane`: use this lane.

    In mode static, without a keeper, it is one of the cluster's last lanes that no other command of this user uses.
    """
    if lane is not None or cluster.mode != "static":
        yield lane
        return
    directory = runtime_directory() / "kv-lanes"
    mark = hashlib.sha256("\0".join(cluster.nodes).encode()).hexdigest()[:16]
    for number in range(cluster.lanes - 1, max(-1, cluster.lanes - 1 - LANES_OF_COMMANDS), -1):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with secure_directory(directory, "set $XDG_RUNTIME_DIR") as opened:
            handle = os.open(f"{mark}.{number}", flags, 0o600, dir_fd=opened)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        try:
            yield number
        finally:
            os.close(handle)
        return
    raise ResourceExhausted(f"{LANES_OF_COMMANDS} other commands write just now: try again")
