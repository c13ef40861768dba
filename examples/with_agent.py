# SPDX-License-Identifier: Apache-2.0
"""Runs a program beside a running agent: with_agent.py PROGRAM [ARGS]... It finds the agent like the user's own."""

import os
import subprocess
import sys
import tempfile


def main(words: list[str]) -> int:
    """The program's exit status."""
    with tempfile.TemporaryDirectory(prefix="wherry-agent-") as directory:
        environment = {name: value for name, value in os.environ.items() if name != "WHERRY_AGENT"}
        environment["XDG_RUNTIME_DIR"] = directory
        agent = [sys.executable, "-m", "wherry.cli", "agent"]
        subprocess.run([*agent, "start", "--budget", "256MiB"], env=environment, check=True, timeout=400)
        try:
            return subprocess.run(words, env=environment, check=False, timeout=400).returncode
        finally:
            subprocess.run([*agent, "stop"], env=environment, check=True, timeout=400)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
