# SPDX-License-Identifier: Apache-2.0
"""Checks arguments before they reach C++, because a TypeError from C++ would name C++ types.

Each function raises InvalidArgument with the argument's name, its value, and the allowed values.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from typing import Any

from wherry.errors import InvalidArgument

U64 = (1 << 64) - 1


def _shown(number: int) -> str:
    bits = number.bit_length()
    return f"2**{bits} - 1" if bits > 20 and number == (1 << bits) - 1 else str(number)


def number(name: str, value: Any, low: int, high: int) -> int:
    """Checks a whole number from `low` to `high`."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} is {value!r}: want a whole number, {low} to {_shown(high)}") from None
    if low <= whole <= high:
        return whole
    raise InvalidArgument(f"{name} is {whole}: want {low} to {_shown(high)}")


def numbers(name: str, values: Any, low: int, high: int) -> list[int]:
    """Checks a list of whole numbers from `low` to `high`."""
    return [number(f"{name}[{i}]", value, low, high) for i, value in enumerate(_items(name, values, "numbers"))]


def seconds(name: str, value: Any, low: float = -math.inf) -> float:
    """Checks a number of seconds, which must be at least `low`."""
    try:
        time = math.nan if isinstance(value, str | bytes | bytearray) else float(value)
    except (TypeError, ValueError, OverflowError):
        time = math.nan
    if time >= low:
        return time
    wanted = "want seconds" if low == -math.inf else f"want seconds, {low:g} or more"
    raise InvalidArgument(f"{name} is {value!r}: {wanted}")


def text(name: str, value: Any) -> str:
    """Checks a text, which must be encodable as UTF-8."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} is {value!r}: want text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name} is {value!r}, which is not UTF-8: want UTF-8 text") from None
    return value


def texts(name: str, values: Any) -> list[str]:
    """Checks a list of texts."""
    return [text(f"{name}[{i}]", value) for i, value in enumerate(_items(name, values, "texts"))]


def path(name: str, value: Any) -> str:
    """Checks a path and returns it as text. Its bytes must be UTF-8, because messages carry them."""
    try:
        given = os.fspath(value)
    except TypeError:
        raise InvalidArgument(f"{name} is {value!r}: want a path") from None
    if "\0" in os.fsdecode(given):
        raise InvalidArgument(f"{name} is {value!r}: a path has no NUL")
    return text(name, os.fsdecode(given))


def _items(name: str, values: Any, what: str) -> Iterable[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgument(f"{name} is {values!r}: want a list of {what}")
    return values
