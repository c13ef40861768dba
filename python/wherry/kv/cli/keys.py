# SPDX-License-Identifier: Apache-2.0
"""`wherry kv get`, `put` and `delete`: one key."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wherry.errors import Cancelled, DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound, Unavailable
from wherry.kv.cli.common import (
    NO,
    UNAVAILABLE,
    UNKNOWN,
    ClusterOption,
    IfVersionOption,
    JsonOption,
    KeyArgument,
    LaneOption,
    TextOption,
    TimeoutOption,
    after,
    into,
    note,
)

if TYPE_CHECKING:
    from wherry.kv import Client
    from wherry.kv.cluster_file import Cluster


@contextmanager
def _outcomes() -> Iterator[None]:
    """Reports a failed operation or a wrong command line with an exit status and a line of text."""
    try:
        yield
    except InvalidArgument as error:
        raise typer.BadParameter(str(error)) from None
    except NotFound:
        note("no such key")
        raise typer.Exit(NO) from None
    except FailedPrecondition as error:
        found = int(getattr(error, "version", 0))
        note(f"another version: it is {found}" if found else "another version: there is no such key")
        raise typer.Exit(NO) from None
    except (DeadlineExceeded, Cancelled) as error:
        note(f"unknown: {error}")
        raise typer.Exit(UNKNOWN) from None
    except Unavailable as error:
        note(f"unavailable: {error}")
        raise typer.Exit(UNAVAILABLE) from None


def _reader(cluster: Cluster, timeout: float, node: int | None = None) -> Client:
    from wherry.kv import Client
    from wherry.kv.running import reached

    nodes = cluster.nodes
    if node is not None:
        if node not in cluster.numbers:
            raise InvalidArgument(f"cluster '{cluster.name}' has no node {node}")
        nodes = [address if number == node else "" for number, address in enumerate(nodes)]
    with reached(cluster):
        return Client(nodes, deadline=timeout, connect_timeout=timeout, lanes=0)


def _writer(cluster: Cluster, timeout: float, lane: int | None) -> Client:
    from wherry.kv import Client
    from wherry.kv.running import reached

    with reached(cluster):
        return Client(cluster=cluster.path, deadline=timeout, connect_timeout=timeout, first_lane=lane)


def get(
    key: KeyArgument,
    cluster: ClusterOption = None,
    text: TextOption = False,
    as_hex: Annotated[bool, typer.Option("--hex", help="The value in hexadecimal.")] = False,
    output: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The value's bytes, exactly; - is standard output.")
    ] = None,
    as_json: JsonOption = False,
    node: Annotated[int | None, typer.Option(min=0, max=7, help="Ask only this node.")] = None,
    timeout: TimeoutOption = 5.0,
) -> None:
    """Print the value of a key, as text if possible, else as 0x and hexadecimal digits. The version goes to standard
    error.

    Examples:

      wherry kv get greeting

      wherry kv get 42 --out value.bin

      wherry kv get 0x2a --json | jq .version
    """
    from wherry.kv import keys, running

    with _outcomes():
        number = keys.parse_key(key, text)
    where = running.locate(cluster)
    with _outcomes():
        value, version = _reader(where, timeout, node).get(number)
    if as_json:
        print(json.dumps({"key": number, "version": version, **_value_fields(value)}))
        return
    if output is not None and str(output) != "-":
        with into(output):
            output.write_bytes(value)
    elif output is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
    else:
        shown = None if as_hex else _as_text(value)
        print(value.hex() if as_hex else f"0x{value.hex()}" if shown is None else shown)
    note(f"version {version}")


def _as_text(value: bytes) -> str | None:
    """The value as text. None if it is not text or contains control characters, which could damage a terminal."""
    try:
        decoded = value.decode()
    except UnicodeDecodeError:
        return None
    return decoded if all(c.isprintable() or c in "\n\t" for c in decoded) else None


def _value_fields(value: bytes) -> dict[str, str]:
    decoded = _as_text(value)
    return {"hex": value.hex()} | ({} if decoded is None else {"text": decoded})


def _value_of(word: str, as_hex: bool) -> bytes:
    if as_hex:
        try:
            return bytes.fromhex(word.removeprefix("0x"))
        except ValueError:
            raise InvalidArgument(f"--hex: '{word}' is not hexadecimal") from None
    if word == "-":
        if sys.stdin is None:  # without this check, an empty value would be written
            raise InvalidArgument("VALUE is -, but standard input is closed: give the value, @FILE, or an open input")
        return sys.stdin.buffer.read(1 << 16)
    if word.startswith("@"):
        with Path(word[1:]).expanduser().open("rb") as file:
            return file.read(1 << 16)  # more than the largest value: the client reports longer values
    return word.encode(errors="surrogateescape")


def put(
    key: KeyArgument,
    value: Annotated[
        str, typer.Argument(metavar="VALUE|-|@FILE", help="A text; - for standard input; @FILE for a file's bytes.")
    ],
    cluster: ClusterOption = None,
    if_version: IfVersionOption = None,
    text: TextOption = False,
    as_hex: Annotated[bool, typer.Option("--hex", help="VALUE is hexadecimal.")] = False,
    as_json: JsonOption = False,
    lane: LaneOption = None,
    timeout: TimeoutOption = 5.0,
) -> None:
    """Write a key and print its new version. With --if-version 0: write only if the key does not exist.

    Examples:

      wherry kv put greeting hello

      wherry kv put greeting bye --if-version 3 || echo somebody was faster

      wherry kv put 42 @value.bin
    """
    from wherry.kv import keys, running

    with _outcomes():
        number, data = keys.parse_key(key, text), _value_of(value, as_hex)
    where = running.locate(cluster)
    with running.own_lane(where, lane) as mine, _outcomes():
        store = _writer(where, timeout, mine)
        version = store.put(number, data) if if_version is None else store.put_if(number, data, if_version)
    with after("the write took effect; its result could not be printed"):
        print(json.dumps({"key": number, "version": version}) if as_json else f"version {version}")


def delete(
    key: KeyArgument,
    cluster: ClusterOption = None,
    if_version: IfVersionOption = None,
    text: TextOption = False,
    lane: LaneOption = None,
    timeout: TimeoutOption = 5.0,
) -> None:
    """Delete a key. The exit status is 1 if the key does not exist, or, with --if-version, if it has another version.

    Examples:

      wherry kv delete greeting

      wherry kv delete greeting --if-version 4
    """
    from wherry.kv import keys, running

    with _outcomes():
        number = keys.parse_key(key, text)
    where = running.locate(cluster)
    with running.own_lane(where, lane) as mine, _outcomes():
        store = _writer(where, timeout, mine)
        if if_version is None:
            store.remove(number)
        else:
            store.remove_if(number, if_version)
