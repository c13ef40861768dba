#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as one site, with navigation and search: `make docs`.

The site has the pages of docs/ with the command reference, and the references of the public headers and of the Python
package. These are errors: a public name without a description, a comment that names a missing function, a warning of
Doxygen or Sphinx, a dead link, and a page without a link to it.

tools/docs_site/build.py [--out build/docs]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from docs_site import cpp, links, pages  # noqa: E402

UNLINKED = {"search.html"}
"""Pages that are reached by a form, not by a link."""


def build(out: Path) -> list[str]:
    """Builds the site in `out`/html. Returns a list of faults."""
    try:
        cpp.read_headers(ROOT, out / "doxygen")
    except cpp.Broken as error:
        return str(error).splitlines()
    faults = pages.write(ROOT, out / "source", out / "doxygen" / "xml")
    site = out / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-b", "html", "-c", str(ROOT / "tools" / "docs_site")]
    command += ["-d", str(out / "doctrees"), str(out / "source"), str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    faults += [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode != 0:
        return faults or [f"Sphinx ended with {done.returncode}"]
    found = links.reachable(site)
    faults += [f"{name}: no link leads to it" for name in sorted(_all(site) - found - UNLINKED)]
    return faults + links.check(site)


def _all(site: Path) -> set[str]:
    return {str(file.relative_to(site)) for file in site.rglob("*.html")}


def main() -> None:
    """Builds the site; ends with status 1 if it has faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="default: build/docs")
    options = parser.parse_args()
    out = options.out.resolve()
    faults = build(out)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"docs: {len(faults)} faults")
    print(f"docs: {len(_all(out / 'html'))} pages; open {out / 'html' / 'index.html'}")


if __name__ == "__main__":
    main()
