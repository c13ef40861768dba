# SPDX-License-Identifier: Apache-2.0
"""`wherry kv metrics`, read by Prometheus' own parser, while nodes die and the keeper stops."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
from jobs import eventually
from kvclusters import KvHome
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.agent


@pytest.fixture
def server(home: KvHome) -> Iterator[tuple[KvHome, str, subprocess.Popen[str]]]:
    home.ok("up", "--detach")
    process = subprocess.Popen(
        home.command("metrics", "--listen", "127.0.0.1:0"),
        env=home.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.search(r"http://\S+/metrics", said)
    assert found, said
    yield home, found[0], process
    process.kill()
    process.wait()
    process.stderr.close()
    home.ok("down")


def read(url: str) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(url, timeout=100) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *(value for label, value in sorted(sample.labels.items()) if label != "cluster")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "cluster" in sample.labels
    }


def test_a_cluster_and_the_death_of_a_node(server: tuple[KvHome, str, subprocess.Popen[str]]) -> None:
    home, url, process = server
    home.ok("put", "greeting", "hello")
    assert eventually(lambda: all(read(url)["wherry_kv_node_serving", str(node)] == 1 for node in range(3)))
    # The keeper gets a node's counters with the node's next answer.
    assert eventually(lambda: all(read(url)["wherry_kv_node_frames_total", str(node)] >= 1 for node in range(3)))
    now = read(url)
    assert now["wherry_kv_keeper_up",] == 1
    assert sum(now["wherry_kv_node_leads", str(node)] for node in range(3)) == 256
    assert all(0 < now["wherry_kv_node_lease_seconds", str(node)] < 60 for node in range(3))
    epoch = now["wherry_kv_epoch",]

    os.kill(home.up.nodes[2], signal.SIGKILL)
    assert eventually(lambda: read(url)["wherry_kv_epoch",] > epoch and read(url)["wherry_kv_node_serving", "2"] == 0)

    os.kill(home.up.keeper, signal.SIGKILL)
    assert eventually(lambda: read(url)["wherry_kv_keeper_up",] == 0)
    assert ("wherry_kv_epoch",) not in read(url)

    process.send_signal(signal.SIGINT)
    process.wait(timeout=100)
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def test_an_address_that_is_none_is_an_error(home: KvHome) -> None:
    home.ok("up", "--detach")
    done = home.run("metrics", "--listen", "here")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "--listen here" in done.stderr
    home.ok("down")
