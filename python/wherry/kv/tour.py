# SPDX-License-Identifier: Apache-2.0
"""kv's part of `wherry demo`: a replicated cluster of processes keeps its values when a node is killed."""

from __future__ import annotations

import os
import random
import signal
import statistics
import time

from rich.console import Console

from wherry.errors import Error
from wherry.kv.client import Client
from wherry.kv.programs import cluster
from wherry.kv.running import up_of
from wherry.units import time_text

NODES = 3
KEYS = 200
VALUE_BYTES = 64
FAILOVER_S = 20.0


def show(console: Console) -> None:
    """Runs this part, and prints the results. Raises Error if a value that was read differs from the one that was
    put."""
    values = {key: random.Random(key).randbytes(VALUE_BYTES) for key in range(KEYS)}
    with cluster(NODES) as file, Client.of(file) as client:
        puts, gets = [], []
        for key, value in values.items():
            puts.append(_time(lambda key=key, value=value: client.put(key, value)))
        for key, value in values.items():
            gets.append(_time(lambda key=key, value=value: _check(client, key, value)))
        console.print(f"kv: {NODES} nodes and a keeper, {KEYS} keys put and got, values of {VALUE_BYTES} bytes")
        console.print(f"  put {time_text(statistics.median(puts))}, get {time_text(statistics.median(gets))} (medians)")
        os.kill(up_of(file).nodes[0], signal.SIGKILL)
        start = time.monotonic()
        for key, value in values.items():
            _check(client, key, value, FAILOVER_S)
        after = time.monotonic() - start
        console.print(f"  node 0 killed: {KEYS} of {KEYS} values are still there, all read {time_text(after)} later")


def _time(call: object) -> float:
    assert callable(call)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _check(client: Client, key: int, value: bytes, deadline: float | None = None) -> None:
    if client.get(key, deadline=deadline)[0] != value:
        raise Error(f"kv: key {key} has not the value that was put")
