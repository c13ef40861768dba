# SPDX-License-Identifier: Apache-2.0
"""The path profile of this machine: settings that are derived from the measurements of `wherry probe profile`.

The agent reads the same file (`src/base/profile.hpp`). docs/guide/profile.md describes its content.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from wherry.errors import InvalidArgument
from wherry.system.machine import this_machine
from wherry.system.secure import replacing

SCHEMA = 1
NAME = "wherry-profile"
MOST_BYTES = 4 << 20
_MOST_TEXT = 512
_KEY = re.compile(r"[a-z0-9._]{1,512}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MOST_SETTINGS, _MOST_CORES, _MOST_DEPTH = 256, 65_536, 64
_OWN = ("name", "schema", "date", "machine", "settings")


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting, and its origin."""

    value: str
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as its users need it."""

    file: Path
    date: str
    settings: dict[str, Advice]
    more: dict[str, Any] = field(default_factory=dict)
    """The rest of the file, which is not checked: the figures from which the settings were derived."""

    def decimal(self, key: str, least: float, most: float) -> float | None:
        """A numeric setting. None: the profile lacks it. Raises InvalidArgument if it is outside of its limits."""
        advice = self.settings.get(key)
        if advice is None:
            return None
        try:
            value = float(advice.value)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise InvalidArgument(f"{self.file}: {key} = {advice.value!r}: want a number from {least:g} to {most:g}")
        return value

    def number(self, key: str, least: int, most: int, multiple_of: int = 1) -> int | None:
        """A setting that is a whole number. None: the profile lacks it. Raises InvalidArgument if it is not within its
        limits."""
        advice = self.settings.get(key)
        if advice is None:
            return None
        # Accepts the same numbers as the agent's parser, which is stricter than int(): no sign, space or underscore.
        value = int(advice.value) if re.fullmatch(r"[0-9]{1,512}", advice.value) else least - 1
        if not least <= value <= most or value % multiple_of != 0:
            multiple = f", a multiple of {multiple_of}" if multiple_of > 1 else ""
            raise InvalidArgument(
                f"{self.file}: {key} = {advice.value!r}: want a whole number from {least} to {most}{multiple}"
            )
        return value


def machine_key() -> dict[str, Any]:
    """This machine in the form that a profile stores."""
    here = this_machine()
    return {"cpu": here.cpu, "kernel": here.kernel, "cores": here.cores}


def default_profile_file() -> Path | None:
    """The default file of the profile, used without $WHERRY_PROFILE. None if the user has no home directory."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        cache = f"{home}/.cache"
    return Path(cache, "wherry", "profile.json")


def load_profile(file: Path) -> Profile:
    """Loads this machine's profile. Raises FileNotFoundError; InvalidArgument if other users can write to the file, if
    it is for another machine, or if it is not a profile."""
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InvalidArgument(f"{file} is not a file")
            if status.st_uid not in (os.getuid(), 0) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise InvalidArgument(
                    f"{file} must belong to this user or root, and others must not be able to write to it: chmod go-w"
                )
            text = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidArgument(f"{file}: {error.strerror}") from None
    if len(text) > MOST_BYTES:
        raise InvalidArgument(f"{file} is not a path profile: it has more than {MOST_BYTES} bytes")
    try:
        return _parse(_json(text), file)
    except InvalidArgument:
        raise
    except KeyError as error:
        raise InvalidArgument(f"{file} is not a path profile: it lacks {error}") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidArgument(f"{file} is not a path profile: {error}") from None


def _whole(text: str) -> int:
    float(text) if len(text) < 400 else _no_number(text)
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]} is not a JSON number, or is too large")


def _json(text: bytes) -> Any:
    """Parses JSON and accepts exactly what src/base/profile.cpp accepts; json.loads() alone also accepts NaN, UTF-16
    and lone surrogates."""
    if b"\0" in text:
        raise ValueError("it has a byte of 0")
    document = json.loads(text.decode("utf-8-sig"), parse_int=_whole, parse_float=_real, parse_constant=_no_number)
    json.dumps(document, ensure_ascii=False).encode()  # raises ValueError for a lone surrogate anywhere
    level = [document]
    for _ in range(_MOST_DEPTH + 1):
        level = [
            one for of in level for one in (of.values() if isinstance(of, dict) else of if isinstance(of, list) else ())
        ]
        if not level:
            return document
    raise ValueError(f"its lists and objects are more than {_MOST_DEPTH} deep")


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value.encode()) > _MOST_TEXT or _CONTROL.search(value):
        raise ValueError(f"{str(value)[:40]!r} is not a text of at most {_MOST_TEXT} bytes without control characters")
    return value


def _number(value: object, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{str(value)[:40]} is not a whole number up to {most}")
    return value


def _parse(document: Any, file: Path) -> Profile:
    if document["name"] != NAME:
        raise ValueError(f"its name is {document['name']!r}")
    if _number(document["schema"], _MOST_CORES) != SCHEMA:
        raise ValueError(f"it has schema {document['schema']}, and this is written for {SCHEMA}: measure again")
    machine, here = document["machine"], machine_key()
    of = {
        "cpu": _text(machine["cpu"]),
        "kernel": _text(machine["kernel"]),
        "cores": _number(machine["cores"], _MOST_CORES),
    }
    date = _text(document["date"])
    if len(document["settings"]) > _MOST_SETTINGS:
        raise ValueError(f"it has more than {_MOST_SETTINGS} settings")
    if of != here:
        raise InvalidArgument(
            f"{file} is the profile of another machine ({of}), this is {here}: `wherry probe profile` measures it"
        )
    settings = {}
    for key, one in document["settings"].items():
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key[:40]!r} is not the name of a setting")
        settings[key] = Advice(_text(one["value"]), _text(one["rule"]), _text(one["why"]))
    more = {key: value for key, value in document.items() if key not in _OWN}
    return Profile(file, date, settings, more)


def write_profile(
    file: Path,
    date: str,
    settings: Mapping[str, Advice],
    more: Mapping[str, Any],
    keeps: Callable[[str, Advice], bool],
) -> None:
    """Writes a profile of this machine to `file`. Only this user can write to the file.

    `more`: figures to store with the settings. If an existing profile is for this machine, its settings that `keeps`
    selects, and its figures with other names, are kept. Raises OSError.
    """
    try:
        there = load_profile(file)
    except (FileNotFoundError, InvalidArgument):
        there = Profile(file, date, {})
    kept = {key: one for key, one in there.settings.items() if keeps(key, one)}
    document = {
        "name": NAME,
        "schema": SCHEMA,
        "date": date,
        "machine": machine_key(),
        "settings": {key: asdict(one) for key, one in sorted((dict(settings) | kept).items())},
        **(there.more | dict(more)),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as whole:
        whole.write_text(json.dumps(document, indent=1) + "\n")
        whole.chmod(0o600)  # readers refuse files that other users may write to


def find_profile(warn: Callable[[str], None]) -> Profile | None:
    """The profile that $WHERRY_PROFILE names, else the profile in the default file. None if $WHERRY_PROFILE is "off".

    Raises InvalidArgument if $WHERRY_PROFILE names a profile that is missing or cannot be used. If the profile in the
    default file cannot be used, calls `warn` with the reason and returns None.
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
