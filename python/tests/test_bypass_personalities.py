# SPDX-License-Identifier: Apache-2.0
"""The NIC personalities in Python, against values that were copied by hand from DPDK's headers (drivers/net/intel)."""

from __future__ import annotations

import re

from wherry.bypass.generated import personalities
from wherry.system import paths


def test_tail_registers_are_those_of_the_drivers() -> None:
    tails = {name: (p.rx_tail_offset, p.tx_tail_offset) for name, p in personalities.PERSONALITIES.items()}
    assert tails["e1000e"] == (0x02818, 0x03818)  # E1000_RDT(0), E1000_TDT(0)
    assert tails["igb"] == (0x0C018, 0x0E018)  # E1000_RDT(4) and E1000_TDT(4), less 4 * 0x40
    assert tails["ixgbe"] == (0x01018, 0x06018)  # IXGBE_RDT(0), IXGBE_TDT(0)
    assert tails["ixgbevf"] == (0x01018, 0x02018)  # IXGBE_VFRDT(0), IXGBE_VFTDT(0)
    assert tails["i40e"] == (0x128000, 0x108000)  # I40E_QRX_TAIL(0), I40E_QTX_TAIL(0)
    assert tails["ice"] == (0x290000, 0x2C0000)  # QRX_TAIL(0), QTX_COMM_DBELL(0)
    assert tails["iavf"] == (0x2000, 0x0)  # IAVF_QRX_TAIL1(0), IAVF_QTX_TAIL1(0)


WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen"]  # fmt: skip


def number(word: str) -> int:
    """ "12", "twelve"."""
    return int(word) if word.isdigit() else WORDS.index(word.lower()) + 1


def test_pages_count_as_many_families_as_the_table_has() -> None:
    root = paths.repository()
    assert root is not None
    count = rf"({'|'.join(WORDS)}|\d+)"
    said = re.compile(rf"\b{count} (?:of the {count} )?(?:NIC )?(?:families|personalities)\b", re.IGNORECASE)
    found = 0
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        for match in said.finditer(" ".join(page.read_text().split())):
            some, every = match[1], match[2] or match[1]
            assert number(every) == len(personalities.PERSONALITIES), f"{page.name}: {match[0]}"
            assert number(some) <= number(every), f"{page.name}: {match[0]}"
            found += 1
    assert found >= 6, "the pages count them no more: this test looks for nothing"


def test_every_device_has_a_personality() -> None:
    assert personalities.DEVICES[0x10FB] == ("ixgbe", "82599 SFP+")
    for name, _ in personalities.DEVICES.values():
        assert name in personalities.PERSONALITIES


def test_a_transmit_descriptor_is_made_of_the_table() -> None:
    # A descriptor of 300 bytes with EOP and RS. The bytes are those of src/bypass/descriptor_test.cpp.
    golden = {"e1000e": "2c01102b00000000", "ixgbe": "2c01302b00004b00", "i40e": "70000000b0040000"}
    for name, expected in golden.items():
        p = personalities.PERSONALITIES[name]
        word = p.tx_data_word | p.tx_eop_mask | p.tx_rs_mask | 300 << (p.tx_length_low - 64)
        if p.tx_total_bits:
            word |= 300 << (p.tx_total_low - 64)
        assert word.to_bytes(8, "little").hex() == expected
