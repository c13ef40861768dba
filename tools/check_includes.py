# SPDX-License-Identifier: Apache-2.0
"""Holds the layers to their rule: what a folder under src/ may include, and where foreign headers may appear.

base < fabric < {move, route, kv, probe} < agent; sim/ on base and kv; services never include one another; <ucp/...>
only in src/fabric, MPI only in its plugin; no Arrow, UCX or MPI in the public headers; no Arrow in the client half;
apps/ on the public headers alone. Folders inside a service that has an order of its own: FOLDERS.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVICES = {"move", "route", "kv", "probe"}
MAY_INCLUDE = {"base": {"base"}, "fabric": {"base", "fabric"}, "agent": {"base", "fabric", "agent", *SERVICES}}
MAY_INCLUDE["sim"] = {"base", "kv", "sim"}
MAY_INCLUDE |= {service: {"base", "fabric", service} for service in SERVICES}

FOLDERS: dict[str, dict[str, set[str]]] = {
    "kv": {
        ".": {"generated"},
        "generated": set(),
        "net": {".", "generated"},
        "control": {".", "generated", "net"},
        "node": {".", "generated"},
        "node/driver": {".", "generated", "net", "control"},
        "client": {".", "generated", "net", "control"},
        "keeper": {".", "generated", "net", "control"},
        "process": {".", "generated", "net", "control", "node", "node/driver", "client", "keeper"},
        "sim": {".", "generated", "net", "control", "node", "node/driver", "client", "keeper"},
    }
}
"""By service and folder: the other folders of the service that its files may include. "." is the service's own folder; "node/driver"
is a folder of its own. Tests may include any."""
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_violations(path: Path, name: str) -> list[str]:
    """The same for an include of one folder of a service by another. Both paths begin with the service's name."""
    service = path.parts[0]
    rules = FOLDERS.get(service)
    if rules is None or name.split("/")[0] != service or path.stem.endswith(("_test", "_fuzz", "testing")):
        return []
    here, there = (str(file.parent.relative_to(service)) for file in (path, Path(name)))
    unknown = [folder for folder in (here, there) if folder not in rules]
    if unknown:
        return [f'src/{path}: "{name}": tools/check_includes.py does not say what {service}/{unknown[0]} may include']
    if here != there and there not in rules[here]:
        return [f'src/{path}: "{name}": {service}/{here} must not include {service}/{there}']
    return []


def violations() -> list[str]:
    """One line for every include that breaks the rule."""
    found = []
    for path in sorted(
        [
            *ROOT.glob("src/**/*.[ch]pp"),
            *ROOT.glob("include/**/*.h*"),
            *ROOT.glob("apps/**/*.[ch]pp"),
            *ROOT.glob("sim/**/*.[ch]pp"),
        ]
    ):
        relative = path.relative_to(ROOT)
        layer = {"src": relative.parts[1], "apps": "apps", "sim": "sim"}.get(relative.parts[0], "public")
        test = path.stem.endswith(("_test", "_fuzz")) or path.stem in {"testing", "random_arrow", "fault_client"}
        for kind, name in INCLUDE.findall(path.read_text()):
            top = name.split("/")[0]
            foreign = {
                "ucp": "ucx",
                "uct": "ucx",
                "ucs": "ucx",
                "arrow": "arrow",
                "parquet": "arrow",
                "mpi.h": "mpi",
            }.get(top)
            if foreign == "ucx" and relative != Path("src/fabric/fabric.cpp"):
                found.append(f"{relative}: <{name}>: only src/fabric/fabric.cpp talks to UCX")
            if foreign == "mpi" and relative != Path("src/route/mpi_plugin/plugin.cpp"):
                found.append(f"{relative}: <{name}>: only src/route/mpi_plugin/plugin.cpp talks to MPI")
            if foreign and layer == "public":
                found.append(f"{relative}: <{name}>: no foreign type in the public headers")
            if foreign == "arrow" and not test and "client" in relative.parts:
                found.append(f"{relative}: <{name}>: the client half does not need Arrow")
            if layer == "apps" and not test and top in {*MAY_INCLUDE}:
                found.append(f'{relative}: "{name}": the applications use the public headers')
            if kind == '"' and layer in MAY_INCLUDE and top in {*MAY_INCLUDE} and top not in MAY_INCLUDE[layer]:
                found.append(f'{relative}: "{name}": {layer} must not include {top}')
            if kind == '"' and relative.parts[0] == "src":
                found += folder_violations(relative.relative_to("src"), name)
    return found


if __name__ == "__main__":
    lines = violations()
    print("\n".join(lines) or "includes: the layers hold")
    sys.exit(1 if lines else 0)
