# SPDX-License-Identifier: Apache-2.0
"""Finds the agents of a dataset through a hosts file or etcd.

Both contain only paths of session files. A reader reads the agent's address and token from the session file, with all
checks of load_session(). So a false entry cannot direct a reader to another user's address, and neither a hosts file
nor etcd contains a secret. The session files must have the same paths on all machines that read them, for example in a
shared home directory.
"""

from __future__ import annotations

import json
import os
import re
import select
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.errors import AlreadyExists, Error, InvalidArgument, NotFound, Unavailable
from wherry.session.etcd import Etcd
from wherry.session.sessionfile import SessionFile

VERSION = 1
"""The version of the entries in etcd."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")
_MOST = 1 << 16
"""The most agents of a group, or of a hosts file."""


def find_agents(where: str) -> list[Path]:
    """Finds the session files that `where` names: "hosts:FILE", or "etcd:URL/prefix" as for `wherry agent announce`.

    Raises InvalidArgument; NotFound if there is no agent; Unavailable if etcd does not answer, or an announced group is
    not complete.
    """
    kind, _, rest = where.partition(":")
    if kind == "hosts" and rest:
        return _of_file(Path(rest).expanduser())
    if kind == "etcd" and rest:
        return Place.parse(where).agents()
    raise InvalidArgument(f"agents is {where!r}: want a list of agents, 'hosts:FILE' or 'etcd:http://host:port/prefix'")


def _of_file(file: Path) -> list[Path]:
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"cannot read the hosts file {file}: {error}") from None
    found: dict[Path, None] = {}
    directory = file.absolute().parent
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if any("=" not in word for word in words[1:]):  # MPI's machine files contain "host slots=4"
            raise InvalidArgument(f"{file}, line {number}: want the path of a session file, or a host, not {line!r}")
        named = words[0] if "/" in words[0] else f"{words[0]}.json"
        found[directory / Path(named).expanduser()] = None
    if not found:
        raise NotFound(f"the hosts file {file} names no agent")
    if len(found) > _MOST:
        raise InvalidArgument(f"the hosts file {file} names {len(found)} agents: want {_MOST} at most")
    return list(found)


@dataclass(frozen=True, slots=True)
class Place:
    """The place in etcd at which agents are announced."""

    url: str
    prefix: str
    """The prefix of the keys, which begins and ends with a slash."""

    @staticmethod
    def parse(text: str) -> Place:
        """Parses "etcd:http://host:port/prefix". Raises InvalidArgument."""
        match = re.fullmatch(r"etcd:(?P<url>https?://[^/@\s]+)(?P<prefix>(/[A-Za-z0-9._-]+)+)/?", text)
        if match is None:
            raise InvalidArgument(
                f"{text!r} is not a place in an etcd: want etcd:http://host:port/prefix, with a prefix of "
                "A-Z a-z 0-9 . _ - and /"
            )
        return Place(match["url"], match["prefix"] + "/")

    def agents(self) -> list[Path]:
        """The session files of the announced agents, in the order of the agents' names. Raises the errors of
        find_agents()."""
        entries = [Entry.parse(key, text) for key, text in Etcd(self.url).under(self.prefix).items()]
        if not entries:
            raise NotFound(f"no agent is announced at {self}; `wherry agent announce` announces one")
        sizes = {entry.of for entry in entries if entry.of is not None}
        if len(sizes) > 1:
            raise InvalidArgument(f"the agents announced at {self} disagree about their number: {sorted(sizes)}")
        if sizes and len(entries) != (size := sizes.pop()):
            raise Unavailable(f"{len(entries)} of {size} agents are announced at {self}")
        return list(dict.fromkeys(entry.session_file for entry in entries))

    def __str__(self) -> str:
        return f"etcd:{self.url}{self.prefix.rstrip('/')}"


@dataclass(frozen=True, slots=True)
class Entry:
    """An agent's entry in etcd: the path of its session file, without an address and without the token."""

    session_file: Path
    of: int | None
    """The number of agents that belong together. None: unknown."""

    def text(self) -> str:
        """The entry in the form for etcd."""
        more = {} if self.of is None else {"of": self.of}
        return json.dumps({"version": VERSION, "session_file": str(self.session_file), **more})

    @staticmethod
    def parse(key: str, text: str) -> Entry:
        """Parses an entry. Raises InvalidArgument, because any user may have written the entry."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        known: dict[str, Any] = fields if isinstance(fields, dict) else {}
        file, of = known.get("session_file"), known.get("of")
        fits = known.get("version") == VERSION and isinstance(file, str) and file.startswith("/") and "\0" not in file
        if not fits or (of is not None and (type(of) is not int or not 1 <= of <= _MOST)):
            raise InvalidArgument(f"etcd's key {key!r} is not an agent's announcement: {text[:80]!r}")
        return Entry(Path(str(file)), of)


def announce(
    session: SessionFile,
    place: Place,
    name: str,
    of: int | None,
    ttl_s: int,
    said: Callable[[str], None],
) -> None:
    """Announces the agent until it ends, or until an exception such as Ctrl-C ends the call. Then removes the entry.

    If this process or its machine dies, etcd removes the entry after `ttl_s` seconds. If etcd does not answer or has
    lost the entry, the call reports that and tries again. `said` is called with messages for people.

    Raises InvalidArgument; AlreadyExists if another agent has that name; Unavailable if the agent does not run on this
    machine, or if etcd does not answer the first call.
    """
    if not _NAME.fullmatch(name):
        raise InvalidArgument(f"name is {name!r}: want 1 to 255 of A-Z a-z 0-9 . _ -")
    if session.flight is None:
        raise Error(f"the agent of {session.path} serves no Arrow Flight, which datasets read: start it with --flight")
    entry = Entry(session.path.absolute(), of)
    etcd, key = Etcd(place.url), place.prefix + name
    try:
        process = os.pidfd_open(session.pid)
    except ProcessLookupError:
        raise Unavailable(
            f"the agent of {session.path} (pid {session.pid}) does not run here: announce it there"
        ) from None
    lease: int | None = None
    try:
        lease = _write(etcd, key, entry, ttl_s)
        said(f"announced: {key} in {place.url}, session file {entry.session_file}")
        ended = select.poll()
        ended.register(process, select.POLLIN)
        troubled = False
        while not ended.poll(ttl_s * 1000 / 3):
            try:
                if not etcd.keep(lease):
                    lease = _write(etcd, key, entry, ttl_s)
                    said(f"announced again: {key}")
                troubled = False
            except Unavailable as error:
                if not troubled:
                    said(f"{error}; trying again")
                troubled = True
        said(f"the agent of {session.path} has ended")
    finally:
        os.close(process)
        if lease is not None:
            try:
                etcd.revoke(lease)
            except Error as error:
                said(f"the entry {key} stays for up to {ttl_s} s: {error}")


def _write(etcd: Etcd, key: str, entry: Entry, ttl_s: int) -> int:
    """Writes the entry and returns its lease. Replaces an existing entry of the same agent, because its writer has
    died."""
    lease = etcd.grant(ttl_s)
    try:
        for _ in range(8):
            there = etcd.under(key).get(key)
            old = None if there is None else Entry.parse(key, there)
            if old is not None and old.session_file != entry.session_file:
                raise AlreadyExists(f"{key} is announced already, for {old.session_file}: choose another --name")
            if etcd.put_if(key, entry.text(), lease, found=there):
                return lease
        raise Unavailable(f"{key} in the etcd at {etcd.url} changes all the time: others write it")
    except BaseException:
        with suppress(Error):  # the lease ends by itself, and the first error says what went wrong
            etcd.revoke(lease)
        raise
