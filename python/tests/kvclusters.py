# SPDX-License-Identifier: Apache-2.0
"""Starts real kv clusters for tests with `wherry kv up`, and records histories of their clients' results
(docs/project/kv-testing.md)."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from jobs import Jobs, built, eventually

from wherry import cli
from wherry.errors import DeadlineExceeded, FailedPrecondition, NotFound, Unavailable
from wherry.kv import Client, cluster_file, keeper, running
from wherry.kv.generated import frame as kv

Done = subprocess.CompletedProcess[str]


class KvHome(Jobs):
    """A private environment for `wherry kv`. No process that is started in it outlives the test."""

    def __init__(self) -> None:
        super().__init__()
        self.runtime = self.temporary / "runtime"
        self.environment |= {"XDG_RUNTIME_DIR": str(self.runtime), "COLUMNS": "160"}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "wherry", "kv", *words]

    def run(self, *words: str, timeout: float = 300, **more: str) -> Done:
        """Runs `up` as a process, and other commands in this process, which saves most of the tests' time."""
        if words[0] == "up":
            return super().run(*words, timeout=timeout, **more)
        out, err = io.StringIO(), io.StringIO()
        surroundings = mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": str(self.runtime)} | more)
        with surroundings, redirect_stdout(out), redirect_stderr(err):
            status = cli.main(["kv", *words])
        return Done(["wherry", "kv", *words], status, out.getvalue(), err.getvalue())

    def ok(self, *words: str) -> str:
        """Standard output of a command that must succeed, even on a busy machine."""
        takes_a_while = words[0] in ("put", "get", "delete", "down") and "--timeout" not in words
        done = self.run(*words, *(["--timeout", "100"] if takes_a_while else []))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def up(self) -> running.Up:
        return running.read_up(self.runtime / "wherry" / "kv-up.json")

    @property
    def cluster(self) -> cluster_file.Cluster:
        return cluster_file.load(self.up.cluster)

    def client(self, *, lane: int | None = None, only: int | None = None, **options: Any) -> Client:
        """A client of the newest cluster. `lane`: its static lane. `only`: the client knows only that node."""
        options.setdefault("connect_timeout", 60.0)  # on a busy machine, nodes sometimes lose their leases
        if only is None:
            return Client(cluster=self.up.cluster, first_lane=lane, **options)
        nodes = [text if only == number else "" for number, text in enumerate(self.cluster.nodes)]
        return Client(nodes, first_lane=lane, **options)

    def states(self) -> dict[int, str]:
        """The nodes' states as the keeper sees them; empty if it does not answer."""
        try:
            return {node["node"]: node["state"] for node in keeper.status(self.cluster, 1)["nodes"]}
        except (Unavailable, DeadlineExceeded):
            return {}

    def all_serve(self) -> bool:
        found = self.states()
        return bool(found) and set(found.values()) == {"serving"}

    def wait_until_all_serve(self) -> None:
        assert eventually(self.all_serve), self.states()

    def kill(self, number: int) -> None:
        os.kill(self.up.nodes[number], signal.SIGKILL)

    @contextmanager
    def program(self, *words: str, cluster: Path | None = None) -> Iterator[None]:
        """Runs wherry-kv directly, as the notes of `up` describe, with the newest cluster or another cluster file."""
        command = [built("wherry-kv"), words[0], "--cluster", str(cluster or self.up.cluster), *words[1:]]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.DEVNULL) as process:
            try:
                yield
            finally:
                process.kill()

    def _left(self) -> list[Path]:
        return [entry for entry in self.temporary.iterdir() if entry != self.runtime]

    def expect_nothing_left(self) -> None:
        """Only files of lanes may remain, from commands in mode static."""
        assert eventually(lambda: not self.processes()), self.processes()
        # After kill -9, a helper removes the files.
        assert eventually(lambda: not self._left()), self._left()
        assert not (self.runtime / "wherry" / "kv-up.json").exists()


class Recorder:
    """Clients, each in a thread, that read and write a few keys at random and record their results."""

    def __init__(self, make: Callable[[int], Client], clients: int = 3, keys: int = 4, seed: int = 1) -> None:
        self._stop = threading.Event()
        self._lines: list[list[dict[str, Any]]] = [[] for _ in range(clients)]
        self._errors: list[BaseException] = []
        self._keys = [0xFEED + 0x9E3779B97F4A7C15 * k % (1 << 64) for k in range(keys)]
        self._threads = [
            # A test that fails before finish() must not keep the process from ending.
            threading.Thread(
                target=self._run, args=(number, make(number), random.Random(100 * seed + number)), daemon=True
            )
            for number in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def finish(self, file: Path) -> list[dict[str, Any]]:
        """Stops the clients and writes the history to `file`; returns its lines."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        lines = [line for one in self._lines for line in one]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return lines

    @property
    def count(self) -> int:
        return sum(len(one) for one in self._lines)

    def _run(self, number: int, client: Client, chance: random.Random) -> None:
        try:
            known: dict[int, int] = {}
            while not self._stop.is_set():
                self._one(number, client, chance, known)
        except BaseException as error:  # noqa: BLE001 - told in finish()
            self._errors.append(error)

    def _one(self, number: int, client: Client, chance: random.Random, known: dict[int, int]) -> None:
        key = chance.choice(self._keys)
        op = chance.choices(["get", "put", "put_if", "remove", "remove_if"], [5, 3, 3, 1, 1])[0]
        value = f"{number}:{len(self._lines[number])}".encode()
        line: dict[str, Any] = {"client": number, "key": f"{key:016x}", "op": op}
        deadline = chance.choice([0.05, 2.0])
        if op in ("put", "put_if"):
            line["value"] = value.hex()
        if op in ("put_if", "remove_if"):
            line["expected"] = known.get(key, 0)
        line["call"] = time.monotonic_ns()
        version = 0
        outcome = "ok"
        try:
            if op == "get":
                data, version = client.get(key, deadline=deadline)
                line["value"] = data.hex()
            elif op == "put":
                version = client.put(key, value, deadline=deadline)
            elif op == "put_if":
                version = client.put_if(key, value, line["expected"], deadline=deadline)
            elif op == "remove":
                version = client.remove(key, deadline=deadline)
            else:
                version = client.remove_if(key, line["expected"], deadline=deadline)
            known[key] = version if op != "remove" and op != "remove_if" else 0
        except NotFound:
            outcome = "no_such_key"
            known[key] = 0
        except FailedPrecondition as error:
            outcome = "version_mismatch"
            known[key] = version = error.version
        except DeadlineExceeded:
            outcome = "unknown"
        except Unavailable:
            outcome = "refused"
        line["return"] = None if outcome == "unknown" else time.monotonic_ns()
        line |= {"outcome": outcome, "version": version}
        self._lines[number].append(line)


def keys_of_one_hash(of: int, count: int) -> list[int]:
    """Keys with the same hash as `of`. The hash is linear in the key, so the XOR of two keys with one hash can be added
    to a third key without a change of its hash."""
    kernel: dict[int, int] = {}
    found = [of]
    for bit in range(64):
        key, difference = 1 << bit, kv.hash_of(1 << bit) ^ kv.hash_of(0)
        while difference and (top := difference.bit_length()) in kernel:
            key ^= kernel[top]
            difference = kv.hash_of(key) ^ kv.hash_of(0)
        if difference:
            kernel[difference.bit_length()] = key
        else:
            found += [other ^ key for other in found]
        if len(found) >= count:
            break
    return found[:count]
