# SPDX-License-Identifier: Apache-2.0
"""Starts a kv cluster and runs a program that uses it: with_kv.py PROGRAM [ARGS]...

The program gets $WHERRY_KV_CLUSTER. An argument "{cluster}" is replaced by the path of the cluster file.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main(words: list[str]) -> int:
    """The program's exit status."""
    with tempfile.TemporaryDirectory(prefix="wherry-kv-") as directory:
        wherry = [sys.executable, "-m", "wherry.cli", "kv"]
        file = Path(directory) / "cluster.toml"
        environment = os.environ | {"XDG_RUNTIME_DIR": directory, "WHERRY_KV_CLUSTER": str(file)}
        subprocess.run([*wherry, "up", "--detach", "--dir", directory], env=environment, check=True, timeout=400)
        try:
            filled = [str(file) if word == "{cluster}" else word for word in words]
            return subprocess.run(filled, env=environment, check=False, timeout=400).returncode
        finally:
            subprocess.run([*wherry, "down"], env=environment, check=True, timeout=400)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
