# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes example of kv. Its objects are valid by Kubernetes' own schemas, and match each other and the cluster
file. Their containers' commands form a cluster on this machine's loopback interface. These tests do not run
Kubernetes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from deployed import DEPLOY, elsewhere, running
from jobs import eventually
from test_deploy_kv import ask

from wherry.kv import Client, cluster_file
from wherry.kv.generated.frame import MAX_VALUE_BYTES
from wherry.system.ports import free_ports

pytestmark = pytest.mark.agent
MANIFEST = DEPLOY / "kubernetes" / "kv.yaml"
VERSIONS = ("1.29", "1.33", "1.37")
WAYS, LINE_BYTES = 4, 64
"""Ways of a bucket, and the bytes of a bucket besides its values (docs/guide/kv.md, "The cluster file")."""
PASSWORD = "a-password-of-the-test"
Object = dict[str, Any]


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], Object]:
    """By kind and name."""
    read = [*yaml.safe_load_all(MANIFEST.read_text())]
    found = {(one["kind"], one["metadata"]["name"]): one for one in read}
    assert len(found) == len(read)
    return found


@pytest.fixture(scope="module")
def cluster(objects: dict[tuple[str, str], Object], tmp_path_factory: pytest.TempPathFactory) -> cluster_file.Cluster:
    """The cluster file in the ConfigMap, as the programs read it."""
    file = tmp_path_factory.mktemp("config") / "kv.toml"
    file.write_text(objects["ConfigMap", "wherry-kv"]["data"]["kv.toml"])
    return cluster_file.load(file)


def workload(objects: dict[tuple[str, str], Object], role: str) -> Object:
    """The StatefulSet or Deployment of a role."""
    kinds = {"node": "StatefulSet", "keeper": "StatefulSet", "resp": "Deployment"}
    return objects[kinds[role], f"wherry-kv-{role}"]


def container(objects: dict[tuple[str, str], Object], role: str) -> Object:
    (only,) = workload(objects, role)["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_own_schemas_accept_every_object(objects: dict[tuple[str, str], Object], version: str) -> None:
    for one in objects.values():
        kubernetes_validate.validate(one, version, strict=True)
    misspelt = objects["PodDisruptionBudget", "wherry-kv-node"] | {"spec": {"maxUnavailible": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, version, strict=True)


def test_the_nodes_are_those_of_the_cluster_file(
    objects: dict[tuple[str, str], Object], cluster: cluster_file.Cluster
) -> None:
    addresses = [cluster.nodes[number].rpartition(":") for number in cluster.numbers]
    nodes = workload(objects, "node")
    pods = nodes["spec"]["template"]["spec"]
    assert nodes["spec"]["replicas"] == len(addresses)
    assert pods["hostNetwork"], "the cluster file names machines"
    (port,) = container(objects, "node")["ports"]
    assert {str(port["containerPort"]), str(port["hostPort"])} == {text for _, _, text in addresses}
    (rule,) = objects["NetworkPolicy", "wherry-kv-keeper"]["spec"]["ingress"]
    allowed = {one["ipBlock"]["cidr"] for one in rule["from"] if "ipBlock" in one}
    assert allowed == {f"{host}/32" for host, _, _ in addresses}
    (apart,) = pods["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"] == nodes["spec"]["selector"]
    assert objects["PodDisruptionBudget", "wherry-kv-node"]["spec"]["selector"] == nodes["spec"]["selector"]
    # An empty cluster starts when all nodes have reported, so no node may wait until another node serves.
    assert nodes["spec"]["podManagementPolicy"] == "Parallel"
    assert "livenessProbe" not in container(objects, "node")


def test_the_keeper_is_where_the_cluster_file_says(
    objects: dict[tuple[str, str], Object], cluster: cluster_file.Cluster
) -> None:
    service = objects["Service", "wherry-kv-keeper"]
    (port,) = service["spec"]["ports"]
    names = service["metadata"]
    assert cluster.keepers == [f"{names['name']}.{names['namespace']}.svc:{port['port']}"]
    assert [one["containerPort"] for one in container(objects, "keeper")["ports"]] == [port["port"]]
    assert f"0.0.0.0:{port['port']}" in objects["ConfigMap", "wherry-kv"]["data"]["pod.py"]
    keeper = workload(objects, "keeper")
    assert (keeper["kind"], keeper["spec"]["replicas"]) == ("StatefulSet", 1), "never two keepers at the same time"


def test_a_node_has_the_memory_that_a_full_table_takes(
    objects: dict[tuple[str, str], Object], cluster: cluster_file.Cluster
) -> None:
    full = (1 << cluster.bucket_bits) * (LINE_BYTES + WAYS * MAX_VALUE_BYTES)
    resources = container(objects, "node")["resources"]
    assert resources["requests"] == resources["limits"], "such pods are the last to be evicted"
    limit = int(resources["limits"]["memory"].removesuffix("Mi")) << 20
    assert full < limit * 0.9


@pytest.mark.parametrize("role", ["node", "keeper", "resp"])
def test_a_pod_is_whole_and_may_do_little(objects: dict[tuple[str, str], Object], role: str) -> None:
    one = workload(objects, role)
    template = one["spec"]["template"]
    assert one["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    assert objects["Service", f"wherry-kv-{role}"]["spec"]["selector"] == template["metadata"]["labels"]
    pod, inner = template["spec"], container(objects, role)
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
    assert {mount["name"] for mount in inner["volumeMounts"]} == volumes
    assert not [volume for volume in pod["volumes"] if "hostPath" in volume]
    rights = inner["securityContext"]
    assert (rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"]) == (False, True)
    assert rights["capabilities"] == {"drop": ["ALL"]}
    user = re.findall(r"^USER (\d+):(\d+)$", (DEPLOY / "container" / "Dockerfile").read_text(), re.MULTILINE)
    about = pod["securityContext"]
    assert user == [(str(about["runAsUser"]), str(about["runAsGroup"]))]
    assert about["runAsNonRoot"]
    assert about["seccompProfile"] == {"type": "RuntimeDefault"}


class Pods:
    """Runs the containers' commands as processes on this machine. Each pod has its own files, and each simulated
    machine its own loopback address."""

    def __init__(self, objects: dict[tuple[str, str], Object], directory: Path) -> None:
        self.directory = directory
        self.keeper_port, self.node_port, self.resp_port = free_ports(3)
        self._objects = objects

    def _text(self, text: str, root: Path) -> str:
        text = re.sub(r'"(/(?:etc|run|var)/)', rf'"{root}\1', text)
        text = text.replace("wherry-kv-keeper.wherry-kv.svc:19287", f"127.0.0.1:{self.keeper_port}")
        text = text.replace("0.0.0.0:19287", f"127.0.0.1:{self.keeper_port}")
        text = text.replace("0.0.0.0:6379", f"127.0.0.1:{self.resp_port}")
        text = text.replace("10.0.0.0/24", "127.0.0.0/8").replace("bucket_bits = 18", "bucket_bits = 8")
        text = text.replace("lease_ms = 800", "lease_ms = 5000")  # a busy machine
        return re.sub(r"10\.0\.0\.(\d+):19286", rf"127.0.1.\1:{self.node_port}", text)

    def root(self, pod: str) -> Path:
        root = self.directory / pod
        if not root.exists():
            for folder in ("etc/wherry", "etc/wherry-resp", "run/wherry", "var/lib/wherry"):
                (root / folder).mkdir(parents=True, mode=0o770)  # like volumes with fsGroup
            for name, text in self._objects["ConfigMap", "wherry-kv"]["data"].items():
                (root / "etc/wherry" / name).write_text(self._text(text, root))
            (root / "etc/wherry-resp/password").write_text(PASSWORD)
            (root / "etc/wherry-resp/password").chmod(0o440)
        return root

    def command(self, pod: str, words: list[str]) -> list[str]:
        return elsewhere(words, self.root(pod), {"python3": sys.executable})

    @staticmethod
    def environment(machine: int) -> dict[str, str]:
        return os.environ | {"HOST_IP": f"127.0.1.{machine}"}

    def probe(self, role: str, pod: str, machine: int) -> subprocess.CompletedProcess[str]:
        """Runs the readiness probe of a role's container, for a pod on a machine."""
        words = container(self._objects, role)["readinessProbe"]["exec"]["command"]
        return subprocess.run(
            self.command(pod, words), env=self.environment(machine), capture_output=True, text=True, check=False
        )


def test_the_containers_are_a_cluster(objects: dict[tuple[str, str], Object], tmp_path: Path) -> None:
    pods = Pods(objects, tmp_path)
    machines = {"wherry-kv-node-0": 12, "wherry-kv-node-1": 11, "wherry-kv-node-2": 13}
    """One possible placement by the scheduler, in which a pod's ordinal differs from its node's number."""

    def ready(role: str, pod: str, machine: int) -> Callable[[], bool]:
        return lambda: pods.probe(role, pod, machine).returncode == 0

    with ExitStack() as stack:

        def start(role: str, pod: str, machine: int, says: str) -> None:
            command = pods.command(pod, container(objects, role)["command"])
            stack.enter_context(running(command, says, pods.environment(machine)))

        start("keeper", "keeper", 1, "kv keeper of cluster lab")
        assert eventually(ready("keeper", "keeper", 1))
        for pod, machine in machines.items():
            start("node", pod, machine, f"kv node {machine - 11} of cluster lab")
        for pod, machine in machines.items():
            assert eventually(ready("node", pod, machine)), pods.probe("node", pod, machine).stderr
        start("resp", "resp", 1, "listening on ")
        assert ask(pods.resp_port, b"PING").startswith(b"-NOAUTH")
        assert ask(pods.resp_port, b"AUTH", PASSWORD.encode()) == b"+OK\r\n"
        with Client(cluster=pods.root("resp") / "etc/wherry/kv.toml", connect_timeout=100) as client:
            client.put(7, b"a value", deadline=100)
            assert client.get(7, deadline=100)[0] == b"a value"

    stray = pods.command("stray", container(objects, "node")["command"])
    done = subprocess.run(stray, env=pods.environment(99), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "127.0.1.99: take the label from the machine" in done.stderr
    unanswered = pods.probe("node", "wherry-kv-node-0", 12)
    assert unanswered.returncode != 0, "without a keeper no node is ready"
