# SPDX-License-Identifier: Apache-2.0
"""Sends requests to the keeper, one JSON object per line (src/kv/control/control.hpp), and pings the nodes."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

from wherry.errors import DeadlineExceeded, Error, InvalidArgument, Unavailable
from wherry.kv.cluster_file import Cluster
from wherry.kv.generated.frame import Kind, Kv, ReplyDetail, Status
from wherry.kv.running import reached

LONGEST_LINE = 1 << 16
"""The largest number of bytes of a line on the keeper's control connection."""


def request(op: str, node: int = 0) -> bytes:
    """A request to the keeper as a line."""
    command = {"type": "command", "op": op, "node": node, "first_slot": 0, "last_slot": 0}
    return json.dumps(command).encode() + b"\n"


def answer(line: bytes) -> str:
    """The text of the keeper's answer. Raises InvalidArgument, with the keeper's text, if the keeper refused the
    request."""
    try:
        said = json.loads(line)
        ok, text = bool(said["ok"]), str(said["text"])
    except (ValueError, TypeError, KeyError):
        raise Error("the process at the keeper's address is not a keeper of kv") from None
    if not ok:
        raise InvalidArgument(f"the keeper refuses: {text}")
    return text


def address(text: str) -> tuple[str, int]:
    """Splits "host:port" into host and port."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def ask(cluster: Cluster, op: str, node: int = 0, timeout: float = 3.0) -> str:
    """Sends the keeper a request and returns its answer. Raises Unavailable if no elected keeper answers."""
    if cluster.mode == "static":
        raise Unavailable(f"{cluster.path}: mode static: there is no keeper to ask")
    last: Error | None = None
    for keeper in cluster.keepers:  # only the elected keeper listens
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
    """The state of the cluster as the keeper knows it."""
    said = json.loads(ask(cluster, "status", timeout=timeout))
    assert isinstance(said, dict)
    return said


def ping(cluster: Cluster, timeout: float = 0.3) -> dict[int, str]:
    """The state that each node reports: "serving" or "not serving". Nodes that do not answer are missing."""
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
                continue  # refused: no process listens at that port
            if sender not in waiting or len(data) < Kv.BYTES:
                continue
            reply = Kv.unpack(data[: Kv.BYTES])
            if reply.kind == Kind.PONG and reply.request == tag:
                serves = ReplyDetail.unpack(bytes([reply.detail])).status == Status.OK
                found[waiting[sender]] = "serving" if serves else "not serving"
    return found
