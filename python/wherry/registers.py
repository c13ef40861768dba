# SPDX-License-Identifier: Apache-2.0
"""The classes of hardware registers, for the modules that are generated from spec/."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bits:
    """A bit field of a register."""

    low: int
    bits: int

    def get(self, word: int) -> int:
        """The field's value in a word."""
        return word >> self.low & ((1 << self.bits) - 1)

    def put(self, value: int) -> int:
        """A word in which the field has `value` and all other bits are 0. Raises ValueError if the value does not
        fit."""
        if value < 0 or value >> self.bits:
            raise ValueError(f"{value} does not fit {self.bits} bits")
        return value << self.low


@dataclass(frozen=True)
class Register:
    """A register, or an array of `count` that are `stride` bytes apart."""

    offset: int
    access: str
    reset: int
    count: int
    stride: int
    staged: bool
    fields: dict[str, Bits] = field(default_factory=dict)

    def at(self, index: int = 0) -> int:
        """The offset of register `index` of the array."""
        if not 0 <= index < self.count:
            raise IndexError(f"{index} is not below {self.count}")
        return self.offset + self.stride * index
