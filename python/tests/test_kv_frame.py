# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import random
import re
from pathlib import Path

import pytest
from kvclusters import keys_of_one_hash

from wherry.kv.generated import frame as kv
from wherry.kv.generated import registers as registers

DOCS = Path(__file__).parents[2] / "docs/reference/kv-frame.md"

# A replicate frame with a value of 5 bytes, from node 3 to node 6. src/kv/frame_test.cpp has the same bytes.
WRITTEN = bytes.fromhex(
    "020000000006 020000000003 0800"
    "45 00 0037 0000 4000 40 11 26ae 0a000003 0a000006"
    "4b56 4b56 0023 0000"
    "43 95 a1b2 cc0d 01020304 fffefdfc 1122334455667788"
)


def expected() -> kv.Headers:
    return kv.Headers(
        kv.Ethernet(0x020000000006, 0x020000000003, kv.ETHERTYPE_IPV4),
        kv.Ipv4(
            version_ihl=kv.IP_VERSION_IHL,
            total_length=kv.MIN_IP_LENGTH + 5,
            flags_offset=kv.IP_DONT_FRAGMENT,
            ttl=kv.IP_TTL,
            protocol=kv.IP_PROTOCOL_UDP,
            checksum=0x26AE,
            source=0x0A000003,
            destination=0x0A000006,
        ),
        kv.Udp(kv.UDP_PORT, kv.UDP_PORT, kv.MIN_UDP_LENGTH + 5),
        kv.Kv(
            kind=kv.Kind.REPLICATE,
            node=3,
            detail=kv.NodeDetail(way=2, place=21).pack()[0],
            epoch=0xA1B2,
            candidate=6,
            client=0x0C0D,
            request=0x01020304,
            version=0xFFFEFDFC,
            key=0x1122334455667788,
        ),
    )


def test_pack_writes_the_bytes_written_by_hand() -> None:
    assert expected().pack() == WRITTEN


def test_unpack_reads_them() -> None:
    assert kv.Headers.unpack(WRITTEN) == expected()


def test_the_ip_checksum_of_those_bytes_is_right() -> None:
    words = [int.from_bytes(WRITTEN[i : i + 2], "big") for i in range(14, 34, 2)]
    assert sum(words) % 0xFFFF == 0


def test_random_headers_come_back() -> None:
    source = random.Random(4)
    for _ in range(200):
        data = source.randbytes(64)
        assert kv.Headers.unpack(data).pack() == data
        assert kv.WayHeader.unpack(data[:16]).pack() == data[:16]


def test_headers_fill_one_beat() -> None:
    assert kv.Headers.BYTES == kv.HEADER_BYTES == len(kv.Headers().pack()) == 64


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(kv.Kv)])
def test_a_field_too_large_is_refused_by_name(name: str) -> None:
    header = kv.Kv()
    setattr(header, name, 1 << 64)
    with pytest.raises(ValueError, match=rf"kv\.{name}: 18446744073709551616 does not fit"):
        header.pack()


def test_a_short_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="21 bytes, not 22"):
        kv.Kv.unpack(bytes(21))


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, as defined."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def test_the_hash_is_the_crc_of_the_keys_bytes() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the published check value
    source = random.Random(5)
    for key in [0, 1, 2**64 - 1, *(source.getrandbits(64) for _ in range(200))]:
        assert kv.hash_of(key) == crc32c(key.to_bytes(8, "big"))
    assert kv.hash_of(0) == 0x8C28B28A


def candidates(key: int, bits: int) -> list[tuple[int, int]]:
    """Bucket and number of each candidate, exactly as docs/reference/kv-frame.md describes it, with the bits as a text,
    highest first."""
    hashed = f"{crc32c(key.to_bytes(8, 'big')):032b}"

    def part(high: int, low: int) -> str:
        return hashed[31 - high : 32 - low]

    first = part(bits - 1, 0).zfill(32)  # b0
    groups = [(0, first)]
    if bits > 10:
        x = part(31, 22)[-min(10, bits - 10) :]
        if int(x) == 0:
            x = "1"
        turned = "".join(str(int(a != b)) for a, b in zip(first[12:22], x.zfill(10), strict=True))  # bits [19:10]
        groups.append((4, first[:12] + turned + first[22:]))
    found = []
    for number, group in groups:
        for by in range(4):
            if by.bit_length() + 8 > max(bits, 8):
                continue
            two = int(group[22:24], 2) ^ by  # bits [9:8]
            found.append((int(group[:22] + f"{two:02b}" + group[24:], 2), number + two))
    return found


@pytest.mark.parametrize("bits", range(8, 33))
def test_candidates_are_what_the_docs_say(bits: int) -> None:
    source = random.Random(6)
    for key in [0, 0x12D, *(source.getrandbits(64) for _ in range(200))]:
        hashed, wanted = kv.hash_of(key), candidates(key, bits)
        assert kv.buckets_of(hashed, bits) == [bucket for bucket, _ in wanted]
        for bucket, number in wanted:
            assert kv.candidate_of(hashed, bucket, bits) == number
            assert kv.bucket_of_candidate(hashed, number, bits) == bucket


def test_the_docs_show_such_candidates() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\w{8}) \| ([\w, ]+) \| ([\d, ]+) \|$", DOCS.read_text(), re.MULTILINE)
    assert len(rows) == 7
    for key, bits, hashed, buckets, numbers in rows:
        assert int(hashed, 16) == crc32c(int(key, 16).to_bytes(8, "big"))
        told = list(zip((int(b, 16) for b in buckets.split(", ")), map(int, numbers.split(", ")), strict=True))
        assert candidates(int(key, 16), int(bits)) == told


def test_five_keys_of_one_bucket_exist() -> None:
    """The hash is linear in the key, so tests can construct keys with the same full hash to fill a bucket."""
    found = keys_of_one_hash(7, 100)
    assert len(set(found)) == 100
    assert {crc32c(key.to_bytes(8, "big")) for key in found} == {kv.hash_of(7)}


def test_fields_of_a_register() -> None:
    state = registers.REGISTERS["state"]
    assert state.fields["leftovers"].get(0x00002460) == 0x123
    assert state.fields["leftovers"].put(0x123) == 0x00002460
    assert registers.REGISTERS["peer_ip"].at(7) == 0x178
    with pytest.raises(IndexError):
        registers.REGISTERS["peer_ip"].at(8)
