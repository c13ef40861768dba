# SPDX-License-Identifier: Apache-2.0
"""Resolves requirements-run.in and requirements.in into their lock files: `make lock`.

requirements.lock has every package of requirements-run.lock, in the same version. The first line of a lock file has the
size of the download. tools/setup.sh shows that line before it downloads packages.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def resolve(wanted: Path, *more: str) -> list[str]:
    """Every package that `wanted` requires, directly or indirectly, as NAME==VERSION."""
    with tempfile.TemporaryDirectory(prefix="wherry-lock-") as directory:
        subprocess.run(["/usr/bin/python3", "-m", "venv", directory], check=True)
        pip = [f"{directory}/bin/pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", "--no-compile", "-r", str(wanted), *more], check=True)
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True)
    return sorted(frozen.stdout.split("\n"), key=str.lower)[1:]


def headline(packages: list[str]) -> str:
    """The size of a download of these packages, as a comment line."""
    with tempfile.TemporaryDirectory(prefix="wherry-lock-") as directory:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "download", "-q", "--no-deps", "-d", directory, *packages], check=True)
        wheels = list(Path(directory).iterdir())
        download = sum(wheel.stat().st_size for wheel in wheels)
        disk = sum(file.file_size for wheel in wheels for file in zipfile.ZipFile(wheel).infolist())
    size = f"{download / 1e6:.0f} MB to download, {disk / 1e6:.0f} MB on disk"
    return f"# {len(packages)} packages, {size}. `make lock` writes this file."


def write(path: Path, packages: list[str]) -> None:
    """Writes a lock file."""
    path.write_text("\n".join([headline(packages), *packages, ""]))


def main() -> None:
    """Writes both lock files."""
    small, large = ROOT / "requirements-run.lock", ROOT / "requirements.lock"
    write(small, resolve(ROOT / "requirements-run.in"))
    write(large, resolve(ROOT / "requirements.in", "-c", str(small)))


if __name__ == "__main__":
    main()
