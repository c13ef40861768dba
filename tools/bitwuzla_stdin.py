# SPDX-License-Identifier: Apache-2.0
"""Runs Bitwuzla for yosys-smtbmc: reads SMT-LIB commands from standard input, and answers each at once."""

import ctypes
import re
import sys
from collections.abc import Iterable, Iterator

import bitwuzla

NOT_BRACKETS = re.compile(r'"[^"]*"|\|[^|]*\||;.*')
"""Strings, quoted symbols and comments. Yosys and yosys-smtbmc end each of them on the line where it begins."""


def commands(lines: Iterable[str]) -> Iterator[str]:
    """The commands in `lines`. A command has one or more lines."""
    pending: list[str] = []
    depth = 0
    for line in lines:
        bare = NOT_BRACKETS.sub("", line)
        depth += bare.count("(") - bare.count(")")
        if bare.strip():
            pending.append(line)
        if pending and depth == 0:
            yield "".join(pending)
            pending.clear()


def main(arguments: list[str]) -> int:
    """Runs the commands; returns 0. A wrong command raises an exception."""
    if "--help" in arguments:  # yosys-smtbmc finds out the version in this way
        print("usage: bitwuzla --lang smt2, commands on standard input")
        return 0
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    library = ctypes.CDLL(None)
    for command in commands(sys.stdin):
        if command.startswith("(exit"):
            break
        parser.parse(command, False, False)
        library.fflush(None)  # Bitwuzla writes its answers to C's buffer
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
