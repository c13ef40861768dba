# SPDX-License-Identifier: Apache-2.0
"""Predicts bypass_echo's output for a frame with scapy, independently of the RTL, and makes frames to test it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from kv_frames import ones_sum
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

MAC, ADDRESS, PORT = "02:00:00:00:0e:c0", "10.7.0.1", 7
PEER_MAC, PEER = "02:00:00:00:00:99", "10.7.0.9"
BROADCAST = "ff:ff:ff:ff:ff:ff"


@dataclass(frozen=True)
class Host:
    """The settings of the echo function: its addresses, and which requests it answers."""

    mac: str = MAC
    ip: str = ADDRESS
    arp: bool = True
    icmp: bool = True
    udp: bool = True
    udp_any: bool = False
    reflect: bool = False
    udp_port: int = PORT

    @property
    def registers(self) -> dict[str, int]:
        """Returns the register values for these settings."""
        mac = int(self.mac.replace(":", ""), 16)
        control = (
            self.arp | self.icmp << 1 | self.udp << 2 | self.udp_any << 3 | self.reflect << 4 | self.udp_port << 16
        )
        address = int.from_bytes(bytes(map(int, self.ip.split("."))), "big")
        return {
            "echo_mac_low": mac & 0xFFFFFFFF,
            "echo_mac_high": mac >> 32,
            "echo_ip": address,
            "echo_control": control,
        }


@dataclass(frozen=True)
class Fate:
    """The counter for the frame, and the output. `icmp_end`: the end of an ICMP message whose checksum is at 36."""

    counter: str
    reply: bytes | None = None
    icmp_end: int = 0


def is_group(mac: str) -> bool:
    """Returns true for a multicast or broadcast address."""
    return bool(int(mac[:2], 16) & 1)


def fate(frame: bytes, host: Host) -> Fate:
    """Returns the fate of a frame."""
    if len(frame) < 14:
        return Fate("echo_other")
    asked = Ether(frame)
    body, kind = asked.payload, int.from_bytes(frame[12:14], "big")
    if not is_group(asked.src):
        found = _arp(asked, host, len(frame)) if kind == 0x0806 else None
        if kind == 0x0800 and isinstance(body, IP) and body.version == 4:
            found = _ipv4(frame, asked, host)
        if found and (found.reply or not host.reflect):
            return found
        if host.reflect:
            source = host.mac if is_group(asked.dst) else asked.dst
            back = bytes.fromhex(asked.src.replace(":", "")) + bytes.fromhex(source.replace(":", "")) + frame[12:]
            return Fate("echo_reflected", back)
    return Fate("echo_other")


def _arp(asked: Any, host: Host, size: int) -> Fate | None:
    arp = asked.payload
    if not (host.arp and isinstance(arp, ARP) and size >= 42 and asked.dst in (host.mac, BROADCAST)):
        return None
    if (arp.hwtype, arp.ptype, arp.hwlen, arp.plen, arp.op, arp.pdst) != (1, 0x0800, 6, 4, 1, host.ip):
        return None
    reply = Ether(dst=asked.src, src=host.mac, type=0x0806) / ARP(
        op=2, hwsrc=host.mac, psrc=host.ip, hwdst=arp.hwsrc, pdst=arp.psrc
    )
    return Fate("echo_arp", bytes(reply) + bytes(asked)[42:])


def _ipv4(frame: bytes, asked: Any, host: Host) -> Fate | None:
    ip = asked.payload
    answers = {1: host.icmp, 17: host.udp}.get(ip.proto, False)
    if not answers or ip.ihl != 5 or ip.dst != host.ip or asked.dst != host.mac:
        return None
    least = 21 if ip.frag else 28
    if ones_sum(frame[14:34]) != 0xFFFF or not least <= ip.len <= len(frame) - 14:
        return Fate("echo_malformed")
    back = asked.copy()
    back.src, back.dst = asked.dst, asked.src
    back[IP].src, back[IP].dst = ip.dst, ip.src
    del back[IP].chksum
    if ip.frag:
        return Fate("echo_fragments", bytes(back))
    if ip.proto == 1:
        if (frame[34], frame[35]) != (8, 0):
            return None
        end = 14 + ip.len
        back[ICMP].type = 0
        if ip.flags.MF or ones_sum(frame[34:end]) != 0xFFFF:
            return Fate("echo_icmp", bytes(back), end)
        del back[ICMP].chksum
        return Fate("echo_icmp", bytes(back), end)
    ports = int.from_bytes(frame[34:36], "big"), int.from_bytes(frame[36:38], "big")
    if not host.udp_any and (ports[1] != host.udp_port or ports[0] == host.udp_port):
        return None
    swapped = bytearray(bytes(back))
    swapped[34:38] = frame[36:38] + frame[34:36]
    return Fate("echo_udp", bytes(swapped))


def check(frame: bytes, found: bytes, expected: Fate) -> None:
    """Compares the output for a frame with the expected output."""
    assert expected.reply is not None
    if not expected.icmp_end:
        assert found == expected.reply, (expected.counter, frame.hex(), found.hex(), expected.reply.hex())
        return
    # All ones and all zeros are the same checksum. The error of a wrong checksum must stay the same.
    end = expected.icmp_end
    assert found[:36] + found[38:] == expected.reply[:36] + expected.reply[38:], (frame.hex(), found.hex())
    assert ones_sum(found[34:end]) % 0xFFFF == ones_sum(frame[34:end]) % 0xFFFF
    if ones_sum(frame[34:end]) == 0xFFFF:
        assert ones_sum(found[34:end]) == 0xFFFF, "a receiver would drop it"


def length_of(draw: random.Random, most: int) -> int:
    """Returns the number of bytes after the headers, often such that a beat is exactly full."""
    near = 64 * draw.randint(1, max(1, most // 64)) - 42 + draw.randint(-2, 2)
    return max(0, min(most - 42, draw.choice([near, 0, 1, 18, draw.randint(0, most - 42)])))


def asking(draw: random.Random, most: int = 1514) -> bytes:
    """Returns a request, in most cases to Host(), and sometimes with an error."""
    kind = draw.choice(["arp", "icmp", "icmp", "udp", "udp", "noise", "other", "fragment", "tagged"])
    data = draw.randbytes(length_of(draw, most))
    ether: Any = Ether(src=PEER_MAC, dst=MAC)
    ip: Any = IP(src=PEER, dst=ADDRESS, ttl=draw.randint(1, 255), id=draw.getrandbits(16), tos=draw.getrandbits(8))
    if kind == "arp":
        asked = Ether(src=PEER_MAC, dst=draw.choice([BROADCAST, MAC])) / ARP(
            hwsrc=PEER_MAC, psrc=draw.choice([PEER, "0.0.0.0"]), pdst=draw.choice([ADDRESS, ADDRESS, "10.7.0.2"])
        )
        frame = bytes(asked).ljust(60, b"\0")
    elif kind == "icmp":
        request = ICMP(type=draw.choice([8, 8, 8, 0, 13]), id=draw.getrandbits(16), seq=draw.getrandbits(16))
        frame = bytes(ether / ip / request / Raw(data))
    elif kind == "udp":
        to = draw.choice([PORT, PORT, 9])
        frame = bytes(ether / ip / UDP(sport=draw.choice([4000, PORT]), dport=to) / Raw(data))
        if draw.random() < 0.3:
            frame = frame[:40] + b"\0\0" + frame[42:]
    elif kind == "fragment":
        ip.frag, ip.flags = draw.choice([(0, "MF"), (185, "MF"), (185, 0)])
        ip.proto = draw.choice([1, 17, 6])
        frame = bytes(ether / ip / Raw(b"\x08\0" + draw.randbytes(6) + data))
    elif kind == "tagged":
        frame = bytes(ether / Dot1Q(vlan=5) / ip / ICMP() / Raw(data))
    elif kind == "other":
        ip.dst = draw.choice([ADDRESS, "10.7.0.2"])
        ether.dst = draw.choice([MAC, BROADCAST, "01:00:5e:00:00:01", "02:00:00:00:00:77"])
        ether.src = draw.choice([PEER_MAC, "03:00:00:00:00:99"])
        frame = bytes(ether / ip / ICMP() / Raw(data))
    else:
        frame = draw.randbytes(60 + len(data))
    if draw.random() < 0.12:  # one header bit is wrong
        at = draw.randrange(min(len(frame), 44))
        frame = frame[:at] + bytes([frame[at] ^ 1 << draw.randrange(8)]) + frame[at + 1 :]
    padded = frame + draw.randbytes(max(0, 60 - len(frame)) + draw.choice([0, 0, 0, 3]))
    return padded[: draw.choice([len(padded), len(padded), max(17, len(padded) - 5)])][:most]
