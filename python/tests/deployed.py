# SPDX-License-Identifier: Apache-2.0
"""Runs the systemd units and Kubernetes containers of deploy/ as processes of a test."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


class Unit:
    """A systemd unit, read by the rules of systemd.unit(5) and systemd.service(5). In our units each key occurs
    once."""

    def __init__(self, path: Path, instance: str = "") -> None:
        self.path = path
        self._parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
        self._parser.optionxform = str  # type: ignore[assignment,method-assign]
        self._parser.read_string(path.read_text())
        self._specifiers = {"i": instance, "t": "/run", "S": "/var/lib"}

    def __getitem__(self, key: str) -> str:
        return self._resolved(self._parser["Service"][key])

    def __contains__(self, key: str) -> bool:
        return key in self._parser["Service"]

    @property
    def keys(self) -> set[str]:
        """All of section [Service]."""
        return {*self._parser["Service"]}

    def _resolved(self, text: str) -> str:
        return re.sub("%(.)", lambda match: self._specifiers[match[1]], text)

    def line(self, key: str, environment: Mapping[str, str] = {}) -> list[str]:
        """The words of a command line such as ExecStart. `environment`: variables that an EnvironmentFile would add."""
        known = dict([self["Environment"].split("=", 1)]) if "Environment" in self else {}
        known |= environment
        words: list[str] = []
        for word in shlex.split(self[key]):
            if word.startswith("$") and not word.startswith("${"):
                words += known.get(word[1:], "").split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda match: known.get(match[1], ""), word))
        return words


def elsewhere(words: list[str], root: Path, programs: Mapping[str, str]) -> list[str]:
    """The command line with its files moved below `root`, and its program replaced from `programs`."""
    moved = [re.sub(r"(?<![\w.])/(etc|run|var)/", f"{root}/\\1/", word) for word in words]
    return [programs.get(words[0], words[0]), *moved[1:]]


@contextmanager
def running(command: list[str], says: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Starts a program and yields its first output line that contains `says`. SIGTERM must end it with status 0."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        heard: list[str] = []
        try:
            for line in process.stdout:
                heard.append(line)
                if says in line:
                    break
            else:
                raise AssertionError(f"{command} ended, and never said '{says}': {''.join(heard)}")
            rest = threading.Thread(target=lambda: heard.extend(process.stdout or ()))
            rest.start()
            try:
                yield line
            finally:
                process.terminate()
                rest.join()
            assert process.wait(60) == 0, "".join(heard)
        finally:
            process.kill()
