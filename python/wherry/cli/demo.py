# SPDX-License-Identifier: Apache-2.0
"""`wherry demo`: shows that an installed Wherry works, part by part."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from wherry import services
from wherry.cli.output import out
from wherry.errors import InvalidArgument


def demo(
    parts: Annotated[
        list[str] | None, typer.Argument(metavar="[PART]...", help="move, route, kv; all if none.")
    ] = None,
) -> None:
    """Show that Wherry works on this machine, and what it does. Takes ten seconds, without compiler or root.

    move: time steps hand columns of numpy to an agent, which this command starts for itself. The columns are read back
    without a copy and with Arrow Flight, and every byte is compared. A table shows the host's time for a frame, in
    calls and in waits, and the same for Arrow Flight's DoPut.

    route: four ranks count random numbers together, by messages of 8 bytes. One rank alone checks the counts.

    kv: three nodes and a keeper store values. A node is killed with SIGKILL, and all values are still there.

    Everything runs on this machine, in processes that end with the command. Exit status: 0 if all results are right, 1
    if not. The command also reports which way is faster; that does not change the status.

    Examples:

      wherry demo

      wherry demo move
    """
    shows = {module.__name__.split(".")[1]: module.show for module in services.parts("tour")}
    for part in parts or ():
        if part not in shows:
            raise InvalidArgument(f"'{part}' is not a part of the demonstration: there are {', '.join(shows)}")
    console = out()
    start = time.monotonic()
    for part, show in shows.items():
        if not parts or part in parts:
            show(console)
            console.print()
    console.print(f"wherry demo: passed, {time.monotonic() - start:.1f} s")
