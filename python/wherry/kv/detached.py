# SPDX-License-Identifier: Apache-2.0
"""`wherry kv up --detach`: the same in the background, with a log."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from wherry.kv.cluster_file import Cluster
from wherry.kv.options import Options
from wherry.kv.running import Up
from wherry.kv.up import run
from wherry.system import inherited, open_own, secure_directory


def run_detached(options: Options, describe: Callable[[Cluster, dict[str, Any], Up], str]) -> tuple[int, str]:
    """Forks. The parent returns when all serve: 0, and what `describe` makes of it. If it does not come to that the
    child says why, and the status is the child's. The child returns when the cluster has ended; its text is empty."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        # What the caller handed on, such as the lock of `flock`, is not the cluster's to keep.
        for number in inherited():
            os.close(number)

        def ready(cluster: Cluster, status: dict[str, Any], up: Up) -> None:
            text = describe(cluster, status, up)
            _talk_to_a_log(cluster)
            with os.fdopen(write, "w") as pipe:
                pipe.write(text)

        return run(options, ready), ""
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    if not said:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or 1, ""
    return 0, said


def _talk_to_a_log(cluster: Cluster) -> None:
    """From here on, standard output and error."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    place = cluster.path.absolute().parent
    with secure_directory(place, "name another --dir") as opened:
        log = open_own("up.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, opened, place)
    os.set_blocking(log, True)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
