# SPDX-License-Identifier: Apache-2.0
"""Jobs over TCP with TLS: between ranks (placement inline) and between agents (placement host)."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
import sockets
from jobs import Jobs, built

pytestmark = pytest.mark.agent

SHAPE = ("--nodes", "2", "--ranks-per-node", "1")
PLACEMENTS = pytest.mark.parametrize("placement", ["inline", "host"])


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def _certificates(directory: Path, authority: str) -> dict[str, str]:
    """Creates an authority, its certificate for 127.0.0.1 and the key; returns the variables that name these files."""

    def at(name: str) -> str:
        return str(directory / f"{authority}-{name}")

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    _openssl("req", "-x509", *new, "-days", "2", "-subj", f"/CN={authority}", "-keyout", at("ca.key"), "-out", at("ca"))
    _openssl("req", *new, "-subj", "/CN=node", "-keyout", at("key"), "-out", at("request"))
    Path(at("names")).write_text("subjectAltName=IP:127.0.0.1")
    signing = ["-CA", at("ca"), "-CAkey", at("ca.key"), "-CAcreateserial", "-extfile", at("names"), "-days", "2"]
    _openssl("x509", "-req", "-in", at("request"), *signing, "-out", at("certificate"))
    return {
        "WHERRY_TLS_CERTIFICATE": at("certificate"),
        "WHERRY_TLS_KEY": at("key"),
        "WHERRY_TLS_CA": at("ca"),
    }


@pytest.fixture
def secured(jobs: Jobs, tmp_path: Path) -> Jobs:
    """Every rank and every agent has a certificate."""
    jobs.environment |= _certificates(tmp_path, "authority")
    jobs.environment["WHERRY_ROUTE_BETWEEN"] = "tcp"
    jobs.environment["WHERRY_ROUTE_LISTEN"] = "127.0.0.1"  # of ranks
    jobs.environment["WHERRY_LISTEN"] = "127.0.0.1:0"  # of agents
    return jobs


def _speaks_tls(at: tuple[str, int], files: dict[str, str]) -> bool:
    context = ssl.create_default_context(cafile=files["WHERRY_TLS_CA"])
    context.load_cert_chain(files["WHERRY_TLS_CERTIFICATE"], files["WHERRY_TLS_KEY"])
    try:
        with (
            socket.create_connection(at, timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=at[0]) as connection,
        ):
            return connection.version() == "TLSv1.3"
    except OSError:
        return False


@PLACEMENTS
def test_a_job_under_tls_delivers_every_message(secured: Jobs, placement: str) -> None:
    done = secured.run(*SHAPE, "--placement", placement, "--", built("route_delivery"), "20000", timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout.split(" ", 1)[1])
    assert (found["messages"], found["wrong"]) == (40000, 0)


@PLACEMENTS
def test_those_that_talk_to_another_node_take_tls_only(secured: Jobs, placement: str) -> None:
    with secured.start(*SHAPE, "--placement", placement, "--", built("route_chatter"), "3600") as job:
        try:
            assert job.stdout
            assert {job.stdout.readline().split()[-1] for _ in range(2)} == {"talking"}
            ranks = [pid for pid, line in secured.processes("route_chatter").items() if "-m" not in line.split()]
            agents = [pid for pid, line in secured.processes("wherryd").items() if "-m" not in line.split()]
            routers = agents if placement == "host" else ranks
            assert len(routers) == 2
            for pid in routers:
                listeners = {at for at in sockets.listeners(pid) if not sockets.serves_http(at)}
                # An agent has a second listener, for sessions.
                assert len(listeners) == (2 if placement == "host" else 1)
                assert {at: _speaks_tls(at, secured.environment) for at in listeners} == dict.fromkeys(listeners, True)
        finally:
            job.terminate()
            job.communicate(timeout=90)


def _node_1_otherwise(jobs: Jobs, directory: Path, program: str, files: dict[str, str]) -> str:
    """A script that runs `program`; on node 1 it uses the certificates `files`."""
    other = directory / "other"
    other.mkdir()
    script = other / Path(program).name
    changes = "\n".join(
        f"export {name}='{files[name]}'" if files else f"unset {name}"
        for name in ("WHERRY_TLS_CERTIFICATE", "WHERRY_TLS_KEY", "WHERRY_TLS_CA")
    )
    script.write_text(
        f'#!/bin/sh\ncase "$WHERRY_NODE $*" in 1\\ *|*/node1/*)\n{changes}\n;; esac\nexec {program} "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


@PLACEMENTS
@pytest.mark.parametrize("lacks", ["TLS", "authority"])
def test_one_without_the_right_certificate_ends_the_job_and_says_why(
    secured: Jobs, tmp_path: Path, wherryd: Path, placement: str, lacks: str
) -> None:
    files = {} if lacks == "TLS" else _certificates(tmp_path, "stranger")
    program = built("route_delivery")
    if placement == "host":
        secured.environment["WHERRY_WHERRYD"] = _node_1_otherwise(secured, tmp_path, str(wherryd), files)
    else:
        program = _node_1_otherwise(secured, tmp_path, program, files)
    done = secured.run(*SHAPE, "--placement", placement, "--", program, "1000", timeout=120)
    assert done.returncode != 0
    assert done.stdout == "", "a message got there"
    assert ("TLS" if lacks == "TLS" else "certificate") in done.stderr, done.stderr
