# SPDX-License-Identifier: Apache-2.0
"""`wherry kv resp`: serves Redis' protocol from a cluster. The program wherry-kv implements it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from wherry.kv.cli.common import ClusterOption
from wherry.kv.generated.frame import MAX_LANES


def resp(
    cluster: ClusterOption = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address for clients. Port 0: any free port, which is printed.")
    ] = "127.0.0.1:6379",
    password_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Its first line is the password that clients say with AUTH. Only you may read it."
        ),
    ] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Listen on an address that other machines reach, without a password.")
    ] = False,
    key_by_key: Annotated[
        bool, typer.Option("--key-by-key", help="Allow MGET and MSET. Each key is one step; all together are not.")
    ] = False,
    clients: Annotated[int, typer.Option(min=1, max=1_000_000, help="Most connections at the same time.")] = 1000,
    lanes: Annotated[int, typer.Option(min=1, max=1024, help="Most writes at the same time.")] = 64,
    first_lane: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_LANES - 1,
            help="Static lanes, that no other client uses, from this one on. Needed in mode static.",
        ),
    ] = None,
) -> None:
    """Serve redis-cli and Redis' client libraries from a cluster. Keys are names, and values are strings. Each key is
    linearizable, and each write is on every live node before it is acknowledged. Redis features that this store lacks
    (expiry, lists, transactions) are refused by name. After Ctrl-C the gateway answers the commands in progress and
    ends. The data stays in the cluster.

    If the gateway listens on the loopback without a password, every user of this machine can connect.

    Examples:

      wherry kv resp

      wherry kv resp --listen 0.0.0.0:6379 --password-file secret.txt

      redis-cli -p 6379 set greeting hello
    """
    from wherry.errors import InvalidArgument
    from wherry.kv import programs, running

    where = running.locate(cluster)
    if where.mode == "static" and first_lane is None:
        raise InvalidArgument("the cluster has no keeper that grants lanes: name free ones with --first-lane")
    options = ["--listen", listen, "--clients", str(clients), "--lanes", str(lanes)]
    options += ["--password-file", str(password_file.expanduser())] if password_file is not None else []
    options += ["--no-password"] if no_password else []
    options += ["--key-by-key"] if key_by_key else []
    options += ["--first-lane", str(first_lane)] if first_lane is not None else []
    command = programs.resp(where.path, options)
    with running.reached(where):
        os.execv(command[0], command)  # the program handles signals itself
