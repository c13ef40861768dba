# SPDX-License-Identifier: Apache-2.0
"""What python/src/kv.cpp offers to kv/client.py. Errors are those of wherry.errors. One thread at a time."""

from typing import Any

class Client:
    """A client of the key-value store. Each call returns (version, value); a mismatch's exception has `version`."""

    def get(self, key: int, deadline: float) -> tuple[int, bytes]: ...
    def put(self, key: int, value: bytes, deadline: float) -> tuple[int, bytes]: ...
    def put_if(self, key: int, version: int, value: bytes, deadline: float) -> tuple[int, bytes]: ...
    def remove(self, key: int, deadline: float) -> tuple[int, bytes]: ...
    def remove_if(self, key: int, version: int, deadline: float) -> tuple[int, bytes]: ...

def connect(
    nodes: list[str],
    cluster: str,
    keepers: list[str],
    first_lane: int | None,
    lanes: int,
    reads: str,
    spin: bool,
    first_timeout: float,
    timeout_cap: float,
    connect_timeout: float,
    seed: int,
) -> Client: ...
def cluster(path: str) -> dict[str, Any]: ...
