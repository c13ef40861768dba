# SPDX-License-Identifier: Apache-2.0
"""Keys as a user writes them."""

from __future__ import annotations

import re

from wherry.errors import InvalidArgument


def parse_key(word: str, text: bool = False) -> int:
    """Parses a key as a user writes it: decimal digits, 0x and hexadecimal digits, or a text of 1 to 8 bytes.

    The UTF-8 bytes of a text form its number, most significant byte first: "a" is 0x61, "user:42" is 0x757365723a3432.
    With `text`, every word is a text.
    """
    if not text:
        if word.isascii() and word.isdigit():
            number = int(word)
        elif word[:2] in ("0x", "0X"):
            if not re.fullmatch("0[xX][0-9a-fA-F]+", word):
                raise InvalidArgument(f"key '{word}': not hexadecimal; if it is a text, say --text")
            number = int(word, 16)
        else:
            number = -1
        if number >= 1 << 64:
            raise InvalidArgument(f"key {word}: want a number below 2^64, or a text of at most 8 bytes (--text)")
        if number >= 0:
            return number
    data = word.encode(errors="surrogateescape")
    if not 1 <= len(data) <= 8 or 0 in data:
        raise InvalidArgument(
            f"key '{word}': a text of {len(data)} bytes; keys are numbers of 64 bits, so that a text has 1 to 8 bytes, "
            "none of them 0. Hash longer names to a number yourself"
        )
    return int.from_bytes(data)
