# SPDX-License-Identifier: Apache-2.0
"""Descriptors of commodity NICs, taken from their datasheets, independently of the RTL and of spec/.

82574: Intel 82574 datasheet 7.1.5 (extended receive descriptors), 7.2.10 (legacy transmit descriptors), 7.2.11
(extended ones). igb: 82576 and I210 datasheets 7.1.5, 7.2.2. ixgbe: 82599 datasheet 7.1.6, 7.2.3. i40e: X710 datasheet
8.3.2.2, 8.4.2. ice: E810 datasheet 10.4 (flexible receive descriptor 2, in 32 bytes). iavf has i40e's descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TxDescriptor:
    """A transmit descriptor as the NIC reads it. kind: it is a data descriptor."""

    address: int
    bytes: int
    eop: bool
    report: bool
    data: bool
    total: int | None  # the frame's length, where the format has it


@dataclass(frozen=True)
class Format:
    """The descriptors of a family. `registers` are the values that the core needs for the format
    (docs/reference/bypass-registers.md)."""

    name: str
    family: str
    rx_bytes: int
    registers: dict[str, int]

    def rx_address(self, descriptor: bytes) -> int:
        """Returns the destination of a packet. The other bytes, for DD (bit 64) and the header's address, must be 0."""
        assert not any(descriptor[8:]), (self.name, descriptor.hex())
        return int.from_bytes(descriptor[:8], "little")

    def rx_done(self, length: int, *, eop: bool, error: bool, noise: int) -> bytes:
        """Returns a receive descriptor as the NIC writes it back. `noise` fills the other fields."""
        word = noise & ((1 << 128) - 1)

        def put(low: int, bits: int, value: int) -> None:
            nonlocal word
            word = word & ~(((1 << bits) - 1) << low) | value << low

        put(64, 1, 1)
        put(65, 1, int(eop))
        if self.family in ("e1000e", "igb", "ixgbe"):
            put(96, 16, length)  # length
            put(84, 12, 0x010 if error else 0)  # extended errors: CE is bit 24 of the double word
        elif self.family == "i40e":
            put(102, 14, length)  # packet buffer length
            put(83, 8, 0x01 if error else 0)  # error field: RXE
        else:
            put(32, 14, length)  # packet length
            put(64 + 10, 1, int(error))  # status/error 0: RXE
        return word.to_bytes(16, "little") + bytes(self.rx_bytes - 16)

    def tx_descriptor(self, descriptor: bytes) -> TxDescriptor:
        """Returns a transmit descriptor as the NIC reads it."""
        address, word = int.from_bytes(descriptor[:8], "little"), int.from_bytes(descriptor[8:16], "little")
        if self.family == "e1000e" and word >> 29 & 1:  # extended: DTALEN, DTYP, DCMD, STA, RSV, POPTS, VLAN
            command = word >> 24 & 0xFF
            data = word >> 20 & 0xF == 1 and command & 0x02 != 0 and word >> 32 == 0
            return TxDescriptor(address, word & 0xFFFFF, bool(command & 1), bool(command & 8), data, None)
        if self.family == "e1000e":  # legacy: length, CSO, CMD, STA, CSS, special
            command = word >> 24 & 0xFF
            rest = word >> 16 & 0xFF | word >> 32
            data = command & 0x20 == 0 and command & 0x02 != 0 and rest == 0  # no DEXT; IFCS
            return TxDescriptor(address, word & 0xFFFF, bool(command & 1), bool(command & 8), data, None)
        if self.family in ("igb", "ixgbe"):
            command = word >> 24 & 0xFF
            data = word >> 20 & 0xF == 3 and command & 0x22 == 0x22  # DTYP; DEXT, IFCS
            data = data and word >> 32 & 0x3FFF == 0  # STA, IDX, CC, POPTS
            return TxDescriptor(address, word & 0xFFFF, bool(command & 1), bool(command & 8), data, word >> 46)
        command = word >> 4 & 0xFFF
        data = word & 0xF == 0 and command & 0x4 != 0  # DTYPE; ICRC
        data = data and word >> 16 & 0x3FFFF == 0 and word >> 48 == 0  # OFFSET, L2TAG1
        return TxDescriptor(address, word >> 34 & 0x3FFF, bool(command & 1), bool(command & 2), data, None)

    def tx_done(self, descriptor: bytes) -> bytes:
        """Returns a transmit descriptor as the NIC writes it back."""
        word = int.from_bytes(descriptor[8:16], "little")
        if self.family in ("e1000e", "igb", "ixgbe"):
            word |= 1 << 32  # STA: DD
        else:
            word |= 0xF  # DTYPE: descriptor done
        return bytes(8) + word.to_bytes(8, "little")


LEGACY = {"descriptors": 0, "rx_error_mask": 0xFFF00000, "tx_word_low": 0x03000000, "tx_word_high": 0}
ADVANCED = {"descriptors": 0x10, "rx_error_mask": 0xFFF00000, "tx_word_low": 0x23300000, "tx_word_high": 0}
XL710 = {"descriptors": 0x6A, "rx_error_mask": 0x07F80000, "tx_word_low": 0x50, "tx_word_high": 0}
E810 = {"descriptors": 0x6D, "rx_error_mask": 0x00000400, "tx_word_low": 0x50, "tx_word_high": 0}
FORMATS = {
    f.name: f
    for f in (
        Format("e1000e", "e1000e", 16, LEGACY),
        Format("e1000e_extended", "e1000e", 16, LEGACY | {"tx_word_low": 0x23100000}),
        Format("igb", "igb", 16, ADVANCED),
        Format("ixgbe", "ixgbe", 16, ADVANCED),
        Format("i40e", "i40e", 16, XL710),
        Format("ice", "ice", 32, E810),
        Format("iavf", "i40e", 32, XL710 | {"descriptors": 0x6B}),
    )
}
