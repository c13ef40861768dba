# SPDX-License-Identifier: Apache-2.0
"""Makes correct and wrong Ethernet frames with scapy, and predicts their outcome from section 3 of
docs/design/kv-protocol.md, independently of the RTL."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

MAC, ADDRESS, PORT = "02:00:00:00:00:05", "10.0.0.5", 19286
KINDS_WITH_PLACE = {2, 3, 4, 5, 8, 9, 27}


def mac_number(text: str) -> int:
    """Converts aa:bb:... to a number."""
    return int(text.replace(":", ""), 16)


def ip_number(text: str) -> int:
    """Converts a.b.c.d to a number."""
    return int.from_bytes(bytes(int(part) for part in text.split(".")), "big")


def endpoint(mac: str, address: str, port: int) -> int:
    """Returns the addresses as an endpoint_t."""
    return mac_number(mac) << 48 | ip_number(address) << 16 | port


SELF = endpoint(MAC, ADDRESS, PORT)


@dataclass(frozen=True)
class Opinion:
    """The expected outcome of a frame: host, checksum, length, or request."""

    fate: str
    kv: bytes = b""
    value: bytes = b""
    length: int = 0
    too_long: bool = False
    summed: bool = False


def ones_sum(data: bytes) -> int:
    """Returns the sum of RFC 1071: 16-bit words in wire order, with end-around carry."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def judge(frame: bytes, *, error: bool = False) -> Opinion:
    """Predicts the outcome for the node at MAC, ADDRESS, PORT. For frames of at least 64 bytes."""
    fragment, protocol = int.from_bytes(frame[20:22], "big"), frame[23]
    ours = frame[:6] == mac_number(MAC).to_bytes(6, "big") and frame[12:15] == b"\x08\x00\x45"
    ours &= fragment & 0x3FFF == 0 and protocol == 17
    ours &= frame[30:34] == ip_number(ADDRESS).to_bytes(4, "big") and frame[36:38] == PORT.to_bytes(2, "big")
    if not ours:
        return Opinion("host")
    total_length, udp_length, checksum = (int.from_bytes(frame[i : i + 2], "big") for i in (16, 38, 40))
    if error or ones_sum(frame[14:34]) != 0xFFFF:
        return Opinion("checksum")
    lengths_agree = udp_length >= 30 and total_length == udp_length + 20 and len(frame) >= total_length + 14
    if checksum:
        if not lengths_agree:
            return Opinion("either")  # a checksum over a length that is wrong says nothing
        if ones_sum(frame[26:34] + struct.pack(">HH", 17, udp_length) + frame[34 : 34 + udp_length]) != 0xFFFF:
            return Opinion("checksum")
    if not lengths_agree:
        return Opinion("length")
    value = frame[64 : 34 + udp_length]
    return Opinion("request", frame[42:64], value[:1024], min(len(value), 1024), len(value) > 1024, checksum != 0)


def kv_header(draw: random.Random, kind: int) -> bytes:
    """Returns a random header of that kind."""
    return bytes([kind << 3 | draw.randrange(8)]) + draw.randbytes(21)


def good(
    draw: random.Random, *, kind: int | None = None, size: int | None = None, checksum: bool | None = None
) -> Ether:
    """Returns a correct frame for the core. Values that are not given are random."""
    kind = draw.randrange(32) if kind is None else kind
    if size is None:
        size = draw.choice([0, 0, 0, 1, 2, 63, 64, 65, 127, 128, 1023, 1024, draw.randrange(1025)])
    udp = UDP(sport=draw.randrange(1, 65536), dport=PORT)
    if not (draw.random() < 0.5 if checksum is None else checksum):
        udp.chksum = 0
    source = ".".join(str(draw.randrange(1, 255)) for _ in range(4))
    ether = Ether(dst=MAC, src="02:" + ":".join(f"{draw.randrange(256):02x}" for _ in range(5)))
    ip = IP(src=source, dst=ADDRESS, flags=draw.choice(["DF", 0]), ttl=draw.randrange(1, 256), tos=draw.randrange(256))
    ip.id = draw.randrange(65536)
    return ether / ip / udp / Raw(kv_header(draw, kind) + draw.randbytes(size))


def strange(draw: random.Random) -> bytes:
    """Returns a strange frame of at least 64 bytes."""
    packet = good(draw)
    how = draw.randrange(16)
    if how == 0:
        packet[Ether].dst = draw.choice(["ff:ff:ff:ff:ff:ff", "02:00:00:00:00:04", "01:00:5e:00:00:05"])
    elif how == 1:
        packet = Ether(src=packet.src, dst=MAC) / Dot1Q(vlan=draw.randrange(4096)) / packet[IP]
    elif how == 2:
        packet[IP].flags = "MF"
    elif how == 3:
        packet[IP].frag = draw.randrange(1, 8192)
    elif how == 4:
        packet[IP].options = b"\x01\x01\x01\x00"
    elif how == 5:
        packet[IP].dst = "10.0.0.6"
    elif how == 6:
        packet[UDP].dport = PORT ^ 1 << draw.randrange(16)
    elif how == 7:
        packet[IP].chksum = draw.randrange(65536)
    elif how == 8:
        packet[UDP].chksum = draw.randrange(1, 65536)
    elif how == 9:
        packet[UDP].len = draw.choice([0, 8, 29, 30, 31, draw.randrange(65536)])
    elif how == 10:
        packet[IP].len = draw.choice([0, 20, 49, 50, 51, draw.randrange(65536)])
    elif how == 11:
        packet[IP].proto = draw.choice([6, 1, 132])
    elif how == 12:
        packet = good(draw, size=draw.randrange(1025, draw.choice([1450, 9000])))
    data = bytes(packet)
    if how == 13:
        data += draw.randbytes(draw.randrange(1, 200))  # padding, which no block reads
    elif how == 14:
        data = data[: draw.randrange(64, len(data) + 1)]
    elif how == 15:
        at = draw.randrange(14, len(data))
        data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
    return data + draw.randbytes(max(0, 64 - len(data)))


def random_bytes(draw: random.Random) -> bytes:
    """Returns random bytes, half of the time addressed to the node."""
    data = draw.randbytes(draw.randrange(64, 1500))
    return bytes(good(draw))[: draw.randrange(14, 43)] + data if draw.random() < 0.5 else data


def crc32c(key: bytes) -> int:
    """Computes the CRC bit by bit."""
    state = 0xFFFFFFFF
    for byte in key:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF
