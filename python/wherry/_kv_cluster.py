# SPDX-License-Identifier: Apache-2.0
"""kv clusters as a user meets them: the cluster file, the running `wherry kv up`, the keeper's words, lanes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import wherry._kv_core as _core
from wherry import _arguments, _paths, _secure
from wherry._kv_frame import Kind, Kv, ReplyDetail, Status
from wherry.errors import DeadlineExceeded, Error, InvalidArgument, NotFound, ResourceExhausted, Unavailable

LONGEST_LINE = 1 << 16
"""Of the keeper's control connection."""
LANES_OF_COMMANDS = 64
"""Without a keeper, the last lanes of a cluster are for `wherry kv put` and `delete`; programs name others."""


# ---- the cluster file


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster file says."""

    path: Path
    name: str
    mode: str
    """static, keeper or etcd."""
    keepers: list[str]
    """host:port of each; none in mode static."""
    lanes: int
    static_lanes: int
    """Those below are named by clients; the keeper grants the others."""
    bucket_bits: int
    nodes: list[str]
    """"host:port" by number; "": there is none."""
    names: list[str]
    macs: list[int]
    """By number; 0: none is named."""
    xdp: list[str]
    """By number, the interface of a node on AF_XDP, as "eth0" or "eth0:3"; "": it is on a socket."""

    @property
    def keeper(self) -> str:
        """The first one; empty in mode static."""
        return self.keepers[0] if self.keepers else ""

    @property
    def numbers(self) -> list[int]:
        """Of the nodes that there are."""
        return [number for number, address in enumerate(self.nodes) if address]


def load(path: Path) -> Cluster:
    """Reads a cluster file. InvalidArgument names file, line and what is wanted; NotFound."""
    said = _core.cluster(_arguments.path("cluster", path))
    return Cluster(
        path=path,
        name=said["name"],
        mode=said["mode"],
        keepers=list(said["keepers"]),
        lanes=said["lanes"],
        static_lanes=said["static_lanes"],
        bucket_bits=said["bucket_bits"],
        nodes=list(said["nodes"]),
        names=list(said["names"]),
        macs=list(said["macs"]),
        xdp=list(said["xdp"]),
    )


def locate(path: str | os.PathLike[str] | None = None, environment: Mapping[str, str] | None = None) -> Cluster:
    """The cluster that is meant: that of `path`, of $WHERRY_KV_CLUSTER, or of this user's newest `wherry kv up`."""
    environment = os.environ if environment is None else environment
    if path is not None:
        return load(Path(path).expanduser())
    if environment.get("WHERRY_KV_CLUSTER"):
        return load(Path(environment["WHERRY_KV_CLUSTER"]).expanduser())
    return load(newest_up(environment).cluster)


# ---- the running `wherry kv up`


@dataclass(slots=True)
class Up:
    """What a running `wherry kv up` says of itself: in its own directory, and, the newest, in a well-known file."""

    pid: int
    started: int
    """When, as the kernel counts it: another process that got the number later is not meant."""
    cluster: Path
    keeper: int = 0
    """Its pid; 0: it does not run. So in `nodes`."""
    nodes: dict[int, int] = field(default_factory=dict)
    namespace: str = ""
    """A file: the network namespace where clients reach it, if it has one of its own."""
    rtl: list[int] = field(default_factory=list)
    """Nodes that are the RTL, simulated."""
    before: list[str] = field(default_factory=list)
    """Cluster files of this user's older ones that ran when it started, the newest last."""

    def alive(self) -> bool:
        """Whether it runs still."""
        return start_time(self.pid) == self.started

    def write(self, file: Path) -> None:
        """Replaces the file as a whole. Raises PermissionDenied if others can put files into its directory."""
        text = json.dumps(asdict(self) | {"cluster": str(self.cluster)}) + "\n"
        with _secure.secure_directory(file.parent) as directory:
            _secure.replace_own(file.name, text, directory)


def start_time(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 if there is none, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def up_file(environment: Mapping[str, str] | None = None) -> Path:
    """Where the newest `wherry kv up` of this user is known."""
    return _paths.runtime_directory(environment) / "kv-up.json"


def read_up(path: Path) -> Up:
    """Raises NotFound when it is missing, Unavailable when what it tells of has gone, Error when it is no such file.

    PermissionDenied: somebody else could have put it there.
    """
    path = path.absolute()
    remedy = "name the cluster with --cluster or $WHERRY_KV_CLUSTER"
    directory = -1
    try:
        directory = _secure.open_directory(path.parent)
        _secure.check_private(directory, path.parent, remedy)
        with open(_secure.open_own(path.name, os.O_RDONLY, directory, path.parent), "rb") as file:
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
    if not up.alive():
        older = older_up(up)
        others = f", or use your older one with --cluster {older.cluster}" if older is not None else ""
        raise Unavailable(
            f"the `wherry kv up` of {up.cluster} (pid {up.pid}) has gone, and its data; start another{others}"
        )
    return up


def older_up(up: Up) -> Up | None:
    """The newest of this user's that started before it and runs still."""
    for cluster in reversed(up.before):
        try:
            return up_of(Path(cluster))
        except (Error, OSError):
            continue
    return None


def newest_up(environment: Mapping[str, str] | None = None) -> Up:
    """This user's newest `wherry kv up`."""
    return read_up(up_file(environment))


def up_of(cluster: Path) -> Up:
    """The `wherry kv up` that runs a cluster file."""
    try:
        return read_up(cluster.absolute().parent / "up.json")
    except NotFound:
        raise NotFound(f"no `wherry kv up` runs {cluster}") from None


@contextmanager
def reached(cluster: Cluster) -> Iterator[None]:
    """Inside, sockets are made where the cluster is reached: the network of an `up --xdp` or `--tap`, or here."""
    try:
        namespace = up_of(cluster.path).namespace
    except (Error, OSError):
        namespace = ""  # started otherwise
    if not namespace:
        yield
        return
    from wherry import _kv_network

    with _kv_network.inside(namespace):
        yield


# ---- the keeper: one JSON object a line (src/kv/control/control.hpp)


def request(op: str, node: int = 0) -> bytes:
    """A command as a line."""
    command = {"type": "command", "op": op, "node": node, "first_slot": 0, "last_slot": 0}
    return json.dumps(command).encode() + b"\n"


def answer(line: bytes) -> str:
    """The text of the keeper's answer. InvalidArgument, with its sentence, when it refused."""
    try:
        said = json.loads(line)
        ok, text = bool(said["ok"]), str(said["text"])
    except (ValueError, TypeError, KeyError):
        raise Error("what answers at the keeper's address is no keeper of kv") from None
    if not ok:
        raise InvalidArgument(f"the keeper refuses: {text}")
    return text


def address(text: str) -> tuple[str, int]:
    """ "host:port" in two."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def ask(cluster: Cluster, op: str, node: int = 0, timeout: float = 3.0) -> str:
    """Gives the keeper a command. Unavailable: there is none, or it is not the elected one."""
    if cluster.mode == "static":
        raise Unavailable(f"{cluster.path}: mode static: there is no keeper to ask")
    last: Error | None = None
    for keeper in cluster.keepers:  # of several the elected one listens
        try:
            return _ask_one(cluster, keeper, op, node, timeout)
        except (Unavailable, DeadlineExceeded) as error:
            last = error
    assert last is not None
    raise last


def _ask_one(cluster: Cluster, keeper: str, op: str, node: int, timeout: float) -> str:
    where = f"the keeper of cluster '{cluster.name}' at {keeper}"
    deadline = time.monotonic() + timeout
    line = b""
    try:
        with reached(cluster):
            connection = socket.create_connection(address(keeper), timeout)
        with connection:
            connection.sendall(request(op, node))
            while not line.endswith(b"\n") and len(line) <= LONGEST_LINE:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                data = connection.recv(1 << 16)
                if not data:
                    raise Unavailable(f"{where} hung up")
                line += data
    except TimeoutError:
        raise DeadlineExceeded(f"{where} did not answer within {timeout:g} s") from None
    except OSError as error:
        raise Unavailable(f"{where} is not there ({error.strerror}): start it again, or see its log") from None
    return answer(line)


def status(cluster: Cluster, timeout: float = 3.0) -> dict[str, Any]:
    """What the keeper knows."""
    said = json.loads(ask(cluster, "status", timeout=timeout))
    assert isinstance(said, dict)
    return said


# ---- nodes, asked themselves


def ping(cluster: Cluster, timeout: float = 0.3) -> dict[int, str]:
    """What each node says of itself, "serving" or "not serving"; who says nothing is missing."""
    waiting = {address(text): number for number, text in enumerate(cluster.nodes) if text}
    tag = int.from_bytes(os.urandom(4))
    found: dict[int, str] = {}
    with reached(cluster):
        port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with port:
        end = time.monotonic() + timeout
        for where in waiting:
            port.sendto(Kv(kind=Kind.PING, request=tag).pack(), where)
        while len(found) < len(waiting) and (left := end - time.monotonic()) > 0:
            port.settimeout(left)
            try:
                data, sender = port.recvfrom(2048)
            except TimeoutError:
                break
            except OSError:
                continue  # refused: nobody is there
            if sender not in waiting or len(data) < Kv.BYTES:
                continue
            reply = Kv.unpack(data[: Kv.BYTES])
            if reply.kind == Kind.PONG and reply.request == tag:
                serves = ReplyDetail.unpack(bytes([reply.detail])).status == Status.OK
                found[waiting[sender]] = "serving" if serves else "not serving"
    return found


# ---- keys and lanes


def parse_key(word: str, text: bool = False) -> int:
    """A key as a user writes it: decimal, 0x and hexadecimal digits, or a text of 1 to 8 bytes.

    A text is the number that its UTF-8 bytes make, the first the most significant: "a" is 0x61, "user:42" is
    0x757365723a3432. With `text`, everything is a text.
    """
    if not text:
        if word.isascii() and word.isdigit():
            number = int(word)
        elif word[:2] in ("0x", "0X"):
            if not re.fullmatch("0[xX][0-9a-fA-F]+", word):
                raise InvalidArgument(f"key '{word}': not hexadecimal; if it is a text, say --text")
            number = int(word, 16)
        else:
            number = -1
        if number >= 1 << 64:
            raise InvalidArgument(f"key {word}: want a number below 2^64, or a text of at most 8 bytes (--text)")
        if number >= 0:
            return number
    data = word.encode(errors="surrogateescape")
    if not 1 <= len(data) <= 8 or 0 in data:
        raise InvalidArgument(
            f"key '{word}': a text of {len(data)} bytes; keys are numbers of 64 bits, so that a text has 1 to 8 bytes, "
            "none of them 0. Hash longer names to a number yourself"
        )
    return int.from_bytes(data)


@contextmanager
def own_lane(cluster: Cluster, lane: int | None = None) -> Iterator[int | None]:
    """A static lane for a command to write with; None: the keeper grants one. `lane`: this one.

    In mode static, without a keeper: one of the cluster's last that no other command of this user has.
    """
    if lane is not None or cluster.mode != "static":
        yield lane
        return
    directory = _paths.runtime_directory() / "kv-lanes"
    mark = hashlib.sha256("\0".join(cluster.nodes).encode()).hexdigest()[:16]
    for number in range(cluster.lanes - 1, max(-1, cluster.lanes - 1 - LANES_OF_COMMANDS), -1):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with _secure.secure_directory(directory, "set $XDG_RUNTIME_DIR") as opened:
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
