# SPDX-License-Identifier: Apache-2.0
"""Reads bus traces and counts their accesses. It is written only from docs/design/card-memory.md, to check the C++
writer.

tools/bus_trace.py FILE...
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MAGIC = b"WBT2"
KINDS = ("read_words", "written_words", "read_lines", "fetched_lines")
BYTES = (4, 4, 32, 32)
HEADER_BYTES, PAGE_BYTES = 8, 4096


def clock_hz(data: bytes) -> int:
    """The clock of the core in Hz. Raises ValueError if the bytes are not a bus trace."""
    if len(data) < HEADER_BYTES or data[:4] != MAGIC:
        raise ValueError("no bus trace")
    return int.from_bytes(data[4:HEADER_BYTES], "little")


def numbers(data: bytes) -> Iterator[int]:
    """The numbers after the header. Raises ValueError if the last number is incomplete."""
    value = shift = 0
    for byte in data[HEADER_BYTES:]:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
    if shift:
        raise ValueError("the last number is cut short")


def accesses(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Cycle, address and kind (an index of KINDS) of each access."""
    clock_hz(data)
    cycle = word = 0
    stream = numbers(data)
    for after in stream:
        what = next(stream, None)
        if what is None:
            raise ValueError("an access without an address")
        folded, kind = divmod(what, 4)
        cycle += after
        word += folded // 2 if folded % 2 == 0 else -(folded + 1) // 2
        yield cycle, word * 4, kind


def count(data: bytes) -> dict[str, int]:
    """Counts the accesses in total and by kind, their bytes and their pages, and finds the cycle of the last access."""
    kinds: Counter[int] = Counter()
    pages: set[int] = set()
    last = 0
    for cycle, address, kind in accesses(data):
        last = cycle
        kinds[kind] += 1
        pages.add(address // PAGE_BYTES)
    found = {name: kinds[kind] for kind, name in enumerate(KINDS)}
    total = sum(kinds[kind] * size for kind, size in enumerate(BYTES))
    return {"accesses": kinds.total(), **found, "bytes": total, "pages": len(pages), "cycles": last}


def main() -> None:
    """Prints the counts of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    for file in parser.parse_args().files:
        print(f"{file}: {json.dumps(count(file.read_bytes()))}")


if __name__ == "__main__":
    main()
