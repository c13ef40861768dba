# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of this machine as the nodes of a job. Veth pairs connect them to a bridge, or directly to each
other.

The namespaces have no names, so each exists only as long as a process is in it. They disappear with the launcher, even
if it is killed.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import subprocess
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from wherry.errors import DeadlineExceeded, PermissionDenied, Unsupported
from wherry.system.processes import run_to_end

NETWORK = ipaddress.ip_network("10.88.0.0/16")
"""The network of the namespaces. It is not visible outside, because the namespaces have no route to the outside."""
UP_TIMEOUT_S = 5.0

_libc = ctypes.CDLL(None, use_errno=True)


def set_network(namespace: int) -> None:
    """Moves the calling thread into the network namespace of a descriptor."""
    clone_newnet = 0x40000000
    if _libc.setns(namespace, clone_newnet) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Namespace:
    """A network namespace, and a mount namespace whose /sys shows it. An idle process keeps both alive."""

    def __init__(self, option: str = "--netns") -> None:
        """`option`: the command-line option to name in errors."""
        self._option = option
        # UCX looks for devices in /sys/class/net, which shows the namespace in which /sys was mounted. So mount /sys
        # again, as a private mount. In a chroot, `/` is not a mount, and only /sys can be marked private.
        script = "mount --make-rprivate / 2>/dev/null; mount --make-rprivate /sys && mount -t sysfs sysfs /sys"
        script += " && ip link set lo up && echo ready && exec cat"
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "unchanged", "sh", "-c", script],
            stdin=subprocess.PIPE,  # the end of this process closes it in any case
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        self._held: list[int] = []  # network namespace, mount namespace, and the root directory in the mount namespace
        if self._holder.stdout.readline() != b"ready\n":
            why = self._holder.stderr.read().decode(errors="replace").strip()
            self.close()
            raise Unsupported(f"{option}: cannot make a network namespace: {why}")
        self._held = [os.open(f"/proc/{self.pid}/{name}", os.O_RDONLY) for name in ("ns/net", "ns/mnt", "root")]

    @property
    def pid(self) -> int:
        """The process that keeps the namespace alive."""
        return self._holder.pid

    @property
    def net(self) -> int:
        """A descriptor of the network namespace."""
        return self._held[0]

    def enter(self) -> None:
        """Moves the calling process, which must have one thread, into the namespaces."""
        here = os.getcwd()
        *spaces, root = self._held
        for space in spaces:
            if _libc.setns(space, 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        os.fchdir(root)  # setns() sets the mount namespace's root, which is outside of a chroot
        os.chroot(".")
        os.chdir(here)

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Runs a program in the namespaces, and returns its output."""
        return run_to_end(command, before=self.enter)

    def ip(self, *words: str) -> str:
        """Runs `ip` in the namespace. Raises Unsupported with the message of `ip`."""
        done = self.run(["ip", *words])
        if done.returncode != 0:
            raise Unsupported(f"{self._option}: ip {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def close(self) -> None:
        """Releases the namespaces."""
        for descriptor in self._held:
            os.close(descriptor)
        self._held = []
        self._holder.kill()
        self._holder.communicate()


class _Namespaces:
    """One namespace for each node. Each has an address that the other nodes can reach."""

    def __init__(self, nodes: int) -> None:
        if os.geteuid() != 0:
            raise PermissionDenied("--netns makes network namespaces, which takes root; without it, nodes share memory")
        if nodes > NETWORK.num_addresses - 2:
            raise Unsupported(f"--netns: {nodes} nodes are more than {NETWORK} has addresses")
        self.namespaces: list[Namespace] = []
        self.addresses = [str(NETWORK[node + 1]) for node in range(nodes)]
        with ExitStack() as stack:
            self._build(stack)
            self._open = stack.pop_all()

    def _build(self, stack: ExitStack) -> None:
        raise NotImplementedError

    @staticmethod
    def _make(stack: ExitStack) -> Namespace:
        try:
            namespace = Namespace()
        except FileNotFoundError as error:
            raise Unsupported(f"--netns needs the program {error.filename}: install util-linux and iproute2") from None
        stack.callback(namespace.close)
        return namespace

    @staticmethod
    def _wait_until_up(namespace: Namespace, interface: str) -> None:
        """Waits for the carrier, because a veth gets it shortly after both ends are up, and UCX skips interfaces
        without carrier."""
        deadline = time.monotonic() + UP_TIMEOUT_S
        while " UP " not in namespace.ip("-br", "link", "show", interface):
            if time.monotonic() > deadline:
                raise DeadlineExceeded(f"--netns: an interface was not up within {UP_TIMEOUT_S:g} s")
            time.sleep(0.01)

    def close(self) -> None:
        """Releases the namespaces. Each is removed when the last process has left it."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Network(_Namespaces):
    """Each namespace has an interface `eth0`, whose other end is in a bridge."""

    def _build(self, stack: ExitStack) -> None:
        switch = self._make(stack)
        switch.ip("link", "add", "switch", "type", "bridge")
        switch.ip("link", "set", "switch", "up")
        for node, address in enumerate(self.addresses):
            namespace = self._make(stack)
            self.namespaces.append(namespace)
            peer = ["peer", "name", "eth0", "netns", str(namespace.pid)]
            switch.ip("link", "add", f"node{node}", "type", "veth", *peer)
            switch.ip("link", "set", f"node{node}", "master", "switch", "up")
            namespace.ip("addr", "add", f"{address}/{NETWORK.prefixlen}", "dev", "eth0")
            namespace.ip("link", "set", "eth0", "up")
        for namespace in self.namespaces:
            self._wait_until_up(namespace, "eth0")


class Mesh(_Namespaces):
    """A veth pair connects each node to each other node: `eth0` to the first of the others, `eth1` to the second. All
    interfaces of a node have the node's address, and a route to the node at the other end."""

    def _build(self, stack: ExitStack) -> None:
        self.namespaces += [self._make(stack) for _ in self.addresses]
        nodes = range(len(self.namespaces))
        for node in nodes:
            for other in nodes[node + 1 :]:
                there = ["peer", "name", self.interface(other, node), "netns", str(self.namespaces[other].pid)]
                self.namespaces[node].ip("link", "add", self.interface(node, other), "type", "veth", *there)
        for node, namespace in enumerate(self.namespaces):
            for other in nodes:
                if other != node:
                    name = self.interface(node, other)
                    namespace.ip("addr", "add", f"{self.addresses[node]}/32", "dev", name)
                    namespace.ip("link", "set", name, "up")
                    namespace.ip("route", "add", f"{self.addresses[other]}/32", "dev", name)
        for node, namespace in enumerate(self.namespaces):
            for name in self.interfaces(node):
                self._wait_until_up(namespace, name)

    @staticmethod
    def interface(node: int, other: int) -> str:
        """The interface of `node` that is connected to node `other`."""
        return f"eth{other if other < node else other - 1}"

    def interfaces(self, node: int) -> list[str]:
        """All interfaces of a node."""
        return [self.interface(node, other) for other in range(len(self.namespaces)) if other != node]
