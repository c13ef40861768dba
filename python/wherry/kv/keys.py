# SPDX-License-Identifier: Apache-2.0
"""Keys as a user writes them, and the lanes that commands write with."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from wherry.errors import InvalidArgument, ResourceExhausted
from wherry.kv.cluster_file import Cluster
from wherry.system import paths, secure

LANES_OF_COMMANDS = 64
"""Without a keeper, the last lanes of a cluster are for `wherry kv put` and `delete`; programs name others."""


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
    directory = paths.runtime_directory() / "kv-lanes"
    mark = hashlib.sha256("\0".join(cluster.nodes).encode()).hexdigest()[:16]
    for number in range(cluster.lanes - 1, max(-1, cluster.lanes - 1 - LANES_OF_COMMANDS), -1):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with secure.secure_directory(directory, "set $XDG_RUNTIME_DIR") as opened:
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
