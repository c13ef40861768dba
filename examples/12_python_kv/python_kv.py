# SPDX-License-Identifier: Apache-2.0
"""Teaches: the replicated key-value store from Python. `wherry kv up --detach` starts a cluster to try it with."""

import struct

from wherry.errors import FailedPrecondition, NotFound
from wherry.kv import Client


def main() -> None:
    """Two clients agree on the owner of something. The loser learns from the version that it lost."""
    first = Client.of()  # your newest `wherry kv up`, or $WHERRY_KV_CLUSTER
    second = Client.of()  # the keeper gives each client its own lanes
    owner = int.from_bytes(b"owner")

    version = first.put_if(owner, b"first", 0)  # 0: only if the key does not exist
    try:
        second.put_if(owner, b"second", 0)
        raise AssertionError("two owners")
    except FailedPrecondition as lost:
        print(f"the second was too late: version {lost.version} is there, and {version} was written")
    assert second.get(owner) == (b"first", version)

    first.remove_if(owner, version)
    newer = second.put_if(owner, b"second", 0)
    assert newer > version, "versions never come again: a write with the old one cannot succeed now"
    second.remove(owner)
    try:
        first.get(owner)
    except NotFound:
        print("gone again")

    point = struct.pack("3d", 1.0, 2.0, 3.0)  # values are bytes, at most 1024
    first.put(42, point)
    print("point", *struct.unpack("3d", second.get(42)[0]))


if __name__ == "__main__":
    main()
