# SPDX-License-Identifier: Apache-2.0
"""The path profile of this machine: the settings that follow from what `wherry probe profile` measured.

The agent reads the same file (`src/base/profile.hpp`); docs/profile.md says what is in it.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.errors import InvalidArgument
from wherry.system.machine import this_machine

SCHEMA = 1
NAME = "wherry-profile"
MOST_BYTES = 4 << 20
_MOST_TEXT = 512
_KEY = re.compile(r"[a-z0-9._]+")


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting, and where it comes from."""

    value: str
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What consumers take from a profile."""

    file: Path
    date: str
    settings: dict[str, Advice]

    def number(self, key: str, least: int, most: int, multiple_of: int = 1) -> int | None:
        """A setting that is a whole number; none: the profile does not say. Raises InvalidArgument: it is absurd."""
        advice = self.settings.get(key)
        if advice is None:
            return None
        try:
            value = int(advice.value)
        except ValueError:
            value = least - 1
        if not least <= value <= most or value % multiple_of != 0:
            multiple = f", a multiple of {multiple_of}" if multiple_of > 1 else ""
            raise InvalidArgument(
                f"{self.file}: {key} = {advice.value!r}: want a whole number from {least} to {most}{multiple}"
            )
        return value


def machine_key() -> dict[str, Any]:
    """What a profile is of."""
    here = this_machine()
    return {"cpu": here.cpu, "kernel": here.kernel, "cores": here.cores}


def default_profile_file() -> Path | None:
    """Where the profile lies unless $WHERRY_PROFILE says otherwise. None: there is no home."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        cache = f"{home}/.cache"
    return Path(cache, "wherry", "profile.json")


def load_profile(file: Path) -> Profile:
    """This machine's. Raises FileNotFoundError; InvalidArgument: others can write it, it is another's, or none."""
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InvalidArgument(f"{file} is no file")
            if status.st_uid not in (os.getuid(), 0) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise InvalidArgument(
                    f"{file} must belong to this user or root, and nobody else may write it: chmod go-w"
                )
            text = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidArgument(f"{file}: {error.strerror}") from None
    if len(text) > MOST_BYTES:
        raise InvalidArgument(f"{file} is no path profile: it has more than {MOST_BYTES} bytes")
    try:
        return _parse(json.loads(text), file)
    except InvalidArgument:
        raise
    except KeyError as error:
        raise InvalidArgument(f"{file} is no path profile: it lacks {error}") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgument(f"{file} is no path profile: {error}") from None


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value.encode()) > _MOST_TEXT or not value.isprintable():
        raise ValueError(f"{str(value)[:40]!r} is no text of at most {_MOST_TEXT} bytes")
    return value


def _parse(document: Any, file: Path) -> Profile:
    if document["name"] != NAME:
        raise ValueError(f"its name is {document['name']!r}")
    if document["schema"] != SCHEMA:
        raise ValueError(f"it has schema {document['schema']}, and this is written for {SCHEMA}: measure again")
    of, here = {key: document["machine"][key] for key in ("cpu", "kernel", "cores")}, machine_key()
    if of != here:
        raise InvalidArgument(
            f"{file} is the profile of another machine ({of}), this is {here}: `wherry probe profile` measures it"
        )
    settings = {}
    for key, one in document["settings"].items():
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key[:40]!r} is no setting's name")
        settings[key] = Advice(_text(one["value"]), _text(one["rule"]), _text(one["why"]))
    return Profile(file, _text(document["date"]), settings)


def find_profile(warn: Callable[[str], None]) -> Profile | None:
    """The one that $WHERRY_PROFILE names, or else the one in the default place; "off": none.

    Raises InvalidArgument if a person named one that is not there or cannot be used; of one in the default place that
    cannot be used, `warn` is told why.
    """
    named = os.environ.get("WHERRY_PROFILE", "")
    if named == "off":
        return None
    file = Path(named) if named else default_profile_file()
    if file is None:
        return None
    try:
        return load_profile(file)
    except FileNotFoundError:
        if named:
            raise InvalidArgument(f"$WHERRY_PROFILE: there is no file {named}") from None
        return None
    except InvalidArgument as error:
        if named:
            raise
        warn(f"no profile is used: {error}")
        return None
