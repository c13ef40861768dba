# SPDX-License-Identifier: Apache-2.0
"""`wherry kv metrics`: serves the keeper's view of the nodes to Prometheus."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wherry.errors import DeadlineExceeded, InvalidArgument, Unavailable
from wherry.kv.cli.common import ClusterOption, note

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from wherry.kv.cluster_file import Cluster

PATIENCE_S = 2.0
"""The time limit for the keeper's answer. By default Prometheus waits ten seconds for a page."""
COUNTERS = {
    "frames": "Frames of the store that the node has received since it started.",
    "dropped": "Frames that the node could not use.",
    "retries": "Frames that the node has sent again.",
}
GAUGES = {
    "in_flight": "Requests that the node works at.",
    "leads": "How many of the 256 slots of keys the node leads.",
    "buckets_left": "Buckets that a node that came back still fetches.",
}


class ClusterMetrics:
    """A collector for a registry of prometheus_client. It asks the keeper once per request. Any thread may use it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics. If the keeper does not answer, yields that fact and the nodes' own answers."""
        from wherry.kv import keeper

        name = self._cluster.name
        try:
            status = keeper.status(self._cluster, PATIENCE_S)
        except (Unavailable, DeadlineExceeded):
            yield _gauge("keeper_up", "1: the keeper answers.", (), [((), 0)], name)
            said = keeper.ping(self._cluster)
            serving = [((str(node),), float(said.get(node) == "serving")) for node in self._cluster.numbers]
            yield _gauge("node_serving", "1: the node answers clients.", ("node",), serving, name)
            return
        yield _gauge("keeper_up", "1: the keeper answers.", (), [((), 1)], name)
        yield _gauge(
            "epoch", "The cluster's epoch: one more for each change of members.", (), [((), status["epoch"])], name
        )
        yield _gauge("settled", "1: all members have entered the epoch.", (), [((), float(status["settled"]))], name)
        lanes = status["lanes"]
        yield _gauge("clients", "Clients to which the keeper has granted lanes.", (), [((), lanes["clients"])], name)
        yield _gauge("lanes_granted", "Lanes that clients hold.", (), [((), lanes["granted"])], name)
        yield from self._nodes(status["nodes"])

    def _nodes(self, nodes: list[dict[str, Any]]) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        name = self._cluster.name

        def of_each(key: str, factor: float = 1) -> list[tuple[tuple[str, ...], float]]:
            return [((str(node["node"]),), node[key] * factor) for node in nodes]

        serving = [((str(node["node"]),), float(node["state"] == "serving")) for node in nodes]
        yield _gauge("node_serving", "1: the node answers clients.", ("node",), serving, name)
        states = [((str(node["node"]), node["state"]), 1.0) for node in nodes]
        yield _gauge("node_state", "The node's state as the keeper sees it.", ("node", "state"), states, name)
        lease = "Seconds that the node may still answer without a word of the keeper."
        yield _gauge("node_lease_seconds", lease, ("node",), of_each("lease_ms", 1e-3), name)
        for key, about in GAUGES.items():
            yield _gauge(f"node_{key}", about, ("node",), of_each(key), name)
        for key, about in COUNTERS.items():
            counter = CounterMetricFamily(f"wherry_kv_node_{key}", about, labels=("cluster", "node"))
            for labels, value in of_each(key):
                counter.add_metric((name, *labels), value)
            yield counter


def _gauge(
    name: str, about: str, labels: Sequence[str], samples: Sequence[tuple[tuple[str, ...], float]], cluster: str
) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    gauge = GaugeMetricFamily(f"wherry_kv_{name}", about, labels=("cluster", *labels))
    for values, value in samples:
        gauge.add_metric((cluster, *values), value)
    return gauge


def metrics(
    cluster: ClusterOption = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where Prometheus asks, at /metrics; port 0: any, which is said.")
    ] = "127.0.0.1:9466",
) -> None:
    """Serve the keeper's view of the nodes to Prometheus: which nodes serve, epochs, leases, frames, retries. Ends with
    Ctrl-C. The metrics contain no keys and no values. Every process that can reach the address may read them.

    Examples:

      wherry kv metrics

      wherry kv metrics --cluster lab.toml --listen 0.0.0.0:9466
    """
    from prometheus_client import CollectorRegistry, start_http_server

    from wherry.kv import running

    where = running.locate(cluster)
    if where.mode == "static":
        raise InvalidArgument("the cluster has no keeper, which knows the nodes' counters")
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidArgument(f"--listen {listen}: want HOST:PORT")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ClusterMetrics(where))
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        server, thread = start_http_server(int(port), addr=host.strip("[]"), registry=registry)
    except OSError as error:
        raise Unavailable(f"--listen {listen}: {error.strerror}") from None
    try:
        note(f"metrics of cluster '{where.name}' at http://{host}:{server.server_port}/metrics; Ctrl-C ends it")
        ended.wait()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        signal.signal(signal.SIGTERM, before)
