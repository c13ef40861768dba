# SPDX-License-Identifier: Apache-2.0
"""A private network on this machine for a kv cluster. Each node has a network namespace, and the clients and the keeper
share one more. A switch connects the namespaces.

Each namespace has an interface eth0, one end of a veth pair. The other ends belong to a bridge in a separate namespace.
With --xdp, the program `wherry-kv switch` forwards frames without the bridge (docs/guide/kv-xdp.md); the bridge
forwards only frames to addresses that the program does not know. With --tap, eth0 and the other end of a simulated node
are TAP devices, with the core between them (docs/design/kv-sim.md). The namespaces have no names. They and their
interfaces are removed when `wherry kv up` ends, even if it is killed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from wherry.errors import InvalidArgument, PermissionDenied, Unsupported
from wherry.system import Namespace, free_ports, set_network

if TYPE_CHECKING:
    from wherry.kv.cluster_file import Cluster

INTERFACE = "eth0"
"""The name of the interface in each namespace."""
PORT = 19286
KEEPER_PORT = 19287
OUTSIDE = "10.89.0.100"
"""The address of the clients and the keeper."""
OUTSIDE_MAC = 0x02_57_4B_56_00_64


def node_address(number: int) -> str:
    """The address of a node."""
    return f"10.89.0.{number + 1}"


def node_mac(number: int) -> int:
    """The MAC of a node's interface."""
    return 0x02_57_4B_56_00_01 + number


def mac_text(mac: int) -> str:
    """The MAC in the form of the cluster file."""
    return mac.to_bytes(6).hex(":")


def loopback_ports(count: int) -> list[int]:
    """Ports of the loopback that are free now, for UDP and TCP, for a cluster without its own network."""
    return free_ports(count)


def listens(port: int) -> bool:
    """Whether a process accepts connections at that port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def require_root(option: str = "--xdp") -> None:
    """Raises PermissionDenied if this process is not root."""
    if os.geteuid() != 0:
        raise PermissionDenied(f"{option} makes network namespaces and interfaces, which takes root: be root")


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Moves the calling thread into the network namespace of this file for the duration of the block."""
    try:
        with open("/proc/thread-self/ns/net", "rb") as here, open(namespace, "rb") as there:
            set_network(there.fileno())
            try:
                yield
            finally:
                set_network(here.fileno())
    except PermissionError as error:
        why = f"the cluster is in a network namespace of its own ({error.strerror}): be root"
        raise PermissionDenied(why) from None


class KvNetwork:
    """The network that the cluster file of a `wherry kv up --xdp` or `--tap` describes."""

    def __init__(self, cluster: Cluster, *, option: str = "--xdp", taps: Container[int] = ()) -> None:
        """`taps`: the nodes whose interfaces are TAP devices."""
        self._option = option
        require_root(option)
        _check(cluster, option)
        try:
            with ExitStack() as stack:
                self._switch = self._make(stack)
                self._switch.ip("link", "add", "switch", "type", "bridge", "stp_state", "0")
                self._switch.ip("link", "set", "switch", "up")
                self.outside = self._join(stack, "clients", OUTSIDE, OUTSIDE_MAC)
                self.nodes = {
                    number: self._join(
                        stack, f"node{number}", node_address(number), node_mac(number), tap=number in taps
                    )
                    for number in cluster.numbers
                }
                self._open = stack.pop_all()
        except FileNotFoundError as error:
            raise Unsupported(
                f"{option} needs the program {error.filename}: install util-linux, iproute2 and ethtool"
            ) from None

    @property
    def outside_file(self) -> str:
        """The file of the clients' namespace, for `nsenter --net=`. Other processes may use it while this process
        lives."""
        return f"/proc/{os.getpid()}/fd/{self.outside.net}"

    @property
    def switch(self) -> Namespace:
        """The namespace with the bridge and the other ends of the veth pairs."""
        return self._switch

    @property
    def stations(self) -> list[str]:
        """Arguments of `wherry-kv switch`."""
        macs = {"clients": OUTSIDE_MAC} | {f"node{number}": node_mac(number) for number in self.nodes}
        return [f"{name}={mac_text(mac)}" for name, mac in macs.items()]

    def tap_arguments(self, number: int) -> list[str]:
        """Options of `wherry-kv-rtl`, which runs in the node's namespace."""
        space = f"/proc/{os.getpid()}/fd/{self._switch.net}"
        return ["--tap", f"node{number}", "--tap-netns", space, "--host-tap", INTERFACE]

    def _make(self, stack: ExitStack) -> Namespace:
        namespace = Namespace(self._option)
        stack.callback(namespace.close)
        return namespace

    def _join(self, stack: ExitStack, name: str, address: str, mac: int, *, tap: bool = False) -> Namespace:
        """Makes a namespace and connects it to the switch."""
        namespace = self._make(stack)
        if tap:  # persistent devices, so that addresses and connections survive a restart of the simulated node
            self._switch.ip("tuntap", "add", "dev", name, "mode", "tap")
            namespace.ip("tuntap", "add", "dev", INTERFACE, "mode", "tap")
            namespace.ip("link", "set", INTERFACE, "address", mac_text(mac))
        else:
            peer = ["peer", "name", INTERFACE, "address", mac_text(mac), "netns", str(namespace.pid)]
            self._switch.ip("link", "add", name, "type", "veth", *peer)
        self._switch.ip("link", "set", name, "master", "switch", "up")
        namespace.ip("addr", "add", f"{address}/24", "dev", INTERFACE)
        namespace.ip("link", "set", INTERFACE, "up")
        if self._option == "--xdp":
            # "tx off": the stack computes checksums, since a veth does not. "gro on": a veth drops redirected frames if
            # it does not use NAPI, which GRO enables. The other end takes note of that only if this end is already up.
            _ethtool(namespace, INTERFACE, "tx", "off", "gro", "on")
        return namespace

    def close(self) -> None:
        """Releases the namespaces. The kernel removes them and their interfaces when the last process has left them."""
        self._open.close()


def _ethtool(namespace: Namespace, interface: str, *features: str) -> None:
    command = ["ethtool", "--features", interface, *features]
    done = namespace.run(command)
    if done.returncode != 0:
        raise Unsupported(f"--xdp: {' '.join(command)}: {done.stderr.strip()}")


def _check(cluster: Cluster, option: str) -> None:
    """Checks that the cluster file describes such a network, not real machines with other addresses."""
    interface = INTERFACE if option == "--xdp" else ""
    for number in cluster.numbers:
        wanted = f'udp = "{node_address(number)}:{PORT}", mac = "{mac_text(node_mac(number))}"'
        wanted += f', xdp = "{interface}"' if interface else " and no xdp"
        if (cluster.nodes[number], cluster.macs[number], cluster.xdp[number]) != (
            f"{node_address(number)}:{PORT}",
            node_mac(number),
            interface,
        ):
            raise InvalidArgument(f"{cluster.path}: `up {option}` makes a network in which node {number} has {wanted}")
    if cluster.keeper != f"{OUTSIDE}:{KEEPER_PORT}":
        why = f'`up {option}` makes a network in which keeper = "{OUTSIDE}:{KEEPER_PORT}"'
        raise InvalidArgument(f"{cluster.path}: {why}")
