# SPDX-License-Identifier: Apache-2.0
"""Checks the layers: which folders a folder under src/ may include, and where headers of other projects may appear.

The layers are base < {fabric, pci} < {session, dma} < {move, route, kv, bypass, probe} < agent. sim/ may include base,
pci, kv, bypass and dma. Of the services, only src/probe/simulated may include sim/. Services never include one another.
Only src/fabric includes <ucp/...>, and only MPI's plugin includes MPI. The public headers do not include Arrow, UCX or
MPI, and the client half does not include Arrow. apps/ includes only the public headers. Includes must not form circles,
neither of files nor of components (x.hpp with x.cpp). INSIDE has the order of the folders of a service.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVICES = {"move", "route", "kv", "bypass", "probe"}
FLOOR = {"base", "fabric", "session"}
MAY_INCLUDE = {"base": {"base"}, "fabric": {"base", "fabric"}, "pci": {"base", "pci"}, "session": FLOOR}
MAY_INCLUDE["dma"] = {"base", "pci", "dma"}
MAY_INCLUDE["agent"] = {"agent", *FLOOR, *SERVICES}
MAY_INCLUDE["sim"] = {"base", "pci", "kv", "bypass", "dma", "sim"}
MAY_INCLUDE |= {service: {service, "pci", "dma", *FLOOR} for service in SERVICES}
ON_SIM = Path("src/probe/simulated")
"""The folder of probe's paths whose far end is simulated."""
FOLDERS = ("src", "include", "apps", "bench", "sim", "python/src")
SUFFIXES = {".h", ".hpp", ".c", ".cpp"}
INCLUDE_PATHS = (ROOT / "src", ROOT / "include", ROOT / "bench", ROOT)
INSIDE: dict[str, dict[str, set[str]]] = {
    "kv": {
        ".": {"generated"},
        "generated": set(),
        "net": {".", "generated"},
        "control": {".", "generated", "net"},
        "node": {".", "generated"},
        "node/driver": {".", "generated", "net", "control"},
        "client": {".", "generated", "net", "control"},
        "keeper": {".", "generated", "net", "control"},
        "snapshot": {".", "generated"},
        "resp": set(),
        "process": {".", "generated", "net", "control", "node", "node/driver", "client", "keeper", "snapshot", "resp"},
        "sim": {".", "generated", "net", "control", "node", "node/driver", "client", "keeper"},
    },
    "bypass": {
        ".": {"generated"},
        "generated": set(),
        "nic": {".", "generated"},
        "process": {".", "generated", "nic"},
    },
    "probe": {
        ".": set(),
        "host": {"."},
        "device": {"."},
        "simulated": {".", "host"},
        "process": {".", "host", "device", "simulated"},
    },
}
"""For each folder of a service, the other folders of the service that its files may include. "." is the service's own
folder, and "node/driver" counts as a separate folder. Tests may include all folders."""
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_violations(path: Path, name: str) -> list[str]:
    """The violations when the file `path` includes `name` from another folder of its service. Both begin with the
    service's name."""
    service = path.parts[0]
    rules = INSIDE.get(service)
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
                if top == "sim" and relative.is_relative_to(ON_SIM):
                    continue
                found.append(f'{relative}: "{name}": {layer} must not include {top}')
            if kind == '"' and relative.parts[0] == "src":
                found += folder_violations(relative.relative_to("src"), name)
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components with more than one node (Tarjan), each sorted."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        path.append(node)
        for other in sorted(graph.get(node, set())):
            if other not in number:
                visit(other)
            if other in path:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            at = path.index(node)
            if len(path) - at > 1:
                found.append(sorted(path[at:]))
            del path[at:]

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def included_files() -> dict[str, set[str]]:
    """For each of our files, our files that it includes."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]
    files = {}
    for path in paths:
        names = [name for kind, name in INCLUDE.findall(path.read_text()) if kind == '"']
        found = [
            [place / name for place in (path.parent, *INCLUDE_PATHS) if (place / name).is_file()] for name in names
        ]
        files[str(path.relative_to(ROOT))] = {str(some[0].resolve().relative_to(ROOT)) for some in found if some}
    return files


def circles_of_files_and_components() -> list[str]:
    """One line for every circle.

    A component is x.hpp with x.cpp. A header without a .cpp belongs to the files that include it, so a circle has at
    least two components with a .cpp.
    """
    files = included_files()
    lines = [f"files include one another: {', '.join(circle)}" for circle in circles(files)]
    components: dict[str, set[str]] = {}
    for file, included in files.items():
        name = str(Path(file).with_suffix(""))
        components.setdefault(name, set()).update(
            other for one in included if (other := str(Path(one).with_suffix(""))) != name
        )
    for circle in circles(components):
        whole = [name for name in circle if {f"{name}.hpp", f"{name}.cpp"} <= files.keys()]
        if len(whole) > 1:
            lines.append(f"components include one another: {', '.join(whole)}")
    return lines


if __name__ == "__main__":
    rounds = circles_of_files_and_components()
    lines = violations() + rounds
    state = "broken" if lines else "the layers hold"
    print("\n".join([*lines, f"includes: {state}; {len(rounds)} circles"]))
    sys.exit(1 if lines else 0)
