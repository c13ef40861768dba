# SPDX-License-Identifier: Apache-2.0
"""`wherry kv dump` and `wherry kv load`: write all keys to a file, and load them. The program wherry-kv implements
both."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wherry.kv.cli.common import ClusterOption, JsonOption, LaneOption, after, note, progress
from wherry.units import bytes_text

if TYPE_CHECKING:
    from wherry.kv.cluster_file import Cluster

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The snapshot.")]
PatienceOption = Annotated[
    float, typer.Option("--timeout", min=0.001, help="Seconds to wait for a cluster that does not answer.")
]
INTERRUPTED = 130


def _run(command: list[str], cluster: Cluster | None) -> tuple[int, dict[str, Any], str]:
    """Runs the program until it ends, and shows its progress on a terminal. Returns its exit status, result and error
    text.

    Ctrl-C is passed on to the program, which then ends cleanly. If this process is killed, the program ends because its
    pipe has no reader.
    """
    from contextlib import ExitStack

    from wherry.kv.running import reached

    result: dict[str, Any] = {}
    console = progress()
    with ExitStack() as stack:
        if cluster is not None:
            stack.enter_context(reached(cluster))
        process = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        )
        assert process.stdout is not None
        assert process.stderr is not None
        status = stack.enter_context(console.status("")) if sys.stderr.isatty() else None
        while True:
            try:
                line = process.stdout.readline()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
                continue
            if not line:
                break
            said = json.loads(line)
            if "result" in said:
                result = said["result"]
            elif status is not None:
                of = f" of {said['of']:,}" if said["of"] else ""
                status.update(f"{said['done']:,}{of} {said['progress']}")
        why = process.stderr.read().strip().removeprefix("wherry-kv: ")
        return process.wait(), result, why


def _end(status: int, why: str) -> None:
    """Exits if the program failed: 130 if interrupted, 2 for a wrong file or command line, 4 without an answer, else
    1."""
    if why:
        note(why)
    if status != 0:
        raise typer.Exit(INTERRUPTED if status == -signal.SIGINT else status if status > 0 else 1)


def dump(
    file: FileArgument,
    cluster: ClusterOption = None,
    node: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=7, help="Let node N, of this machine, list its keys. Default: any."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing FILE.")] = False,
    as_json: JsonOption = False,
    timeout: PatienceOption = 30.0,
) -> None:
    """Write all keys of a cluster to FILE while the cluster serves clients.

    FILE contains every key that existed during the whole dump. For each of its keys, FILE has one value that was
    acknowledged at some time between the beginning and the end of the dump. The dump is not a snapshot of all keys at
    one moment. A node of this machine lists its keys, only for its own user and for root. The values are read from the
    nodes as by any client. FILE appears when it is complete and on disk. A dump that fails or is interrupted leaves no
    file.

    Examples:

      wherry kv dump lab.kv

      wherry kv dump lab.kv --force --node 2

      wherry kv dump all.kv --json | jq .keys
    """
    from wherry.kv import programs, running

    where = running.locate(cluster)
    command = programs.dump(where.path, file.expanduser(), timeout)
    command += ["--node", str(node)] if node is not None else []
    command += ["--force"] if force else []
    status, result, why = _run(command, where)
    _end(status, why)
    with after(f"{file} was written; its figures could not be printed"):
        if as_json:
            print(json.dumps(result))
            return
        print(f"{file}: {result['keys']:,} keys, {bytes_text(result['value_bytes'])} of values, {_whence(result)}")


def _whence(result: dict[str, Any]) -> str:
    seconds = (result["ended_ns"] - result["began_ns"]) / 1e9
    kind = "a simulated core" if result["source"] == "hardware" else "software"
    return f"of cluster '{result['cluster']}' (node {result['node']}, {kind}) within {seconds:.1f} s"


def load(
    file: FileArgument,
    cluster: ClusterOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also write keys that exist already: their newer values are lost.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Read the whole FILE, and write nothing.")] = False,
    as_json: JsonOption = False,
    lane: LaneOption = None,
    timeout: PatienceOption = 30.0,
) -> None:
    """Write the keys of FILE, which `wherry kv dump` made, to a cluster. The cluster may have other nodes and another
    size.

    Existing keys are not changed, only counted, so you can continue an interrupted load by running it again. Loaded
    keys get new versions, as with any write. The command checks the whole FILE first, so a damaged FILE changes
    nothing. The exit status is 1 if the table had no room for some of the keys; the others are loaded.

    Examples:

      wherry kv load lab.kv

      wherry kv load lab.kv --overwrite

      wherry kv load lab.kv --check
    """
    from wherry.kv import programs, running

    if check:
        status, result, why = _run(programs.check_snapshot(file.expanduser()), None)
        _end(status, why)
        print(json.dumps(result) if as_json else f"{file} is whole: {result['keys']:,} keys, {_whence(result)}")
        return
    where = running.locate(cluster)
    with running.own_lane(where, lane) as mine:
        command = programs.load_snapshot(where.path, file.expanduser(), timeout)
        command += ["--overwrite"] if overwrite else []
        command += ["--lane", str(mine)] if mine is not None else []
        status, result, why = _run(command, where)
    if result:
        with after("keys were loaded; their number could not be printed"):
            print(json.dumps(result) if as_json else _loaded(file, result))
    _end(status, why)


def _loaded(file: Path, result: dict[str, Any]) -> str:
    words = [f"{result['loaded']:,} of {result['keys']:,} keys of {file} loaded"]
    if result["skipped"]:
        words.append(f"{result['skipped']:,} were there already and are as they were (--overwrite writes them, too)")
    if result["no_room"]:
        some = ", ".join(f"{key:#x}" for key in result["without_room"])
        words.append(f"{result['no_room']:,} found no room: {some}, ...")
    return "; ".join(words)
