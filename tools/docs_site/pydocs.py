# SPDX-License-Identifier: Apache-2.0
"""The Python reference: the public names, and their docstrings as reStructuredText.

A docstring has paragraphs. A line that begins with a parameter's name and a colon describes this parameter. Indented
paragraphs are code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ERRORS = "errors"
PAGES: dict[str, tuple[str, dict[str, Sequence[str]]]] = {
    "api-python-write": (
        "Python: sessions, streams, tickets",
        {"wherry": ("Session", "Stream", "Step", "Ticket", "schema_of")},
    ),
    "api-python-read": (
        "Python: readers and datasets",
        {
            "wherry": ("open", "streams", "flight_client", "flight_frames", "dataset"),
            "wherry.move": ("StreamReader", "Frame", "StreamStatus", "Dataset"),
        },
    ),
    "api-python-kv": ("Python: the replicated store", {"wherry.kv": ("Client",)}),
    "api-python-errors": ("Python: errors", {"wherry": (ERRORS,)}),
}
"""Page name to the page's title, and for each module the names that the page describes. For `errors`, every
exception."""
SOURCES = {
    "Session": "move/session.py",
    "Stream": "move/stream.py",
    "Step": "move/stream.py",
    "Ticket": "move/ticket.py",
    "schema_of": "move/columns.py",
    "open": "move/reader.py",
    "streams": "move/reader.py",
    "StreamReader": "move/reader.py",
    "Frame": "move/reader.py",
    "StreamStatus": "move/reader.py",
    "flight_client": "move/flight.py",
    "flight_frames": "move/flight.py",
    "dataset": "move/agents.py",
    "Dataset": "move/agents.py",
    "Client": "kv/client.py",
}
COMPILED = ("SessionInfo", "Region")
"""Classes of the compiled module that users see. python/wherry/_native/_core.pyi describes them."""
HOME = {"Session": "wherry", "Stream": "wherry", "Step": "wherry", "Ticket": "wherry", "Client": "wherry.kv"}
LITERAL = re.compile(r"`([^`]+)`")


@dataclass
class Found:
    """The pages of the reference, and the faults of the docstrings."""

    pages: dict[str, str]
    faults: list[str]


def read(root: Path) -> Found:
    """The pages as reStructuredText, by name, with the faults."""
    package = root / "python" / "wherry"
    faults = [*_missing(package), *_faults(package)]
    pages = {}
    for name, (title, modules) in PAGES.items():
        lines = [title, "=" * len(title), ""]
        for module, names in modules.items():
            for one in names:
                lines += _errors(package) if one == ERRORS else [f".. {_directive(one)}:: {module}.{one}", ""]
        if name == "api-python-write":
            lines += _compiled(package, faults)
        pages[name] = "\n".join(lines) + "\n"
    return Found(pages, faults)


def _directive(name: str) -> str:
    return "autoclass" if name[0].isupper() else "autofunction"


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _errors(package: Path) -> list[str]:
    lines = []
    for node in _tree(package / "errors.py").body:
        if isinstance(node, ast.ClassDef):
            lines += [f".. autoexception:: wherry.errors.{node.name}", "   :show-inheritance:", ""]
    return lines


def _compiled(package: Path, faults: list[str]) -> list[str]:
    file = package / "_native" / "_core.pyi"
    lines = [".. py:currentmodule:: _core", ""]
    for node in _tree(file).body:
        if not (isinstance(node, ast.ClassDef) and node.name in COMPILED):
            continue
        lines += [f".. py:class:: {node.name}", "", f"   {ast.get_docstring(node)}", ""]
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef):
                text = ast.get_docstring(inner)
                if not text:
                    faults.append(
                        f"python/wherry/_native/_core.pyi:{inner.lineno}: {node.name}.{inner.name} has no docstring"
                    )
                is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in inner.decorator_list)
                kind, end = ("attribute", "") if is_property else ("method", "()")
                lines += [f"   .. py:{kind}:: {inner.name}{end}", ""]
                lines += [f"      {line}" if line else "" for line in rst((text or "").splitlines(), ())] + [""]
    return lines


# ---- what is wrong


def _missing(package: Path) -> Iterator[str]:
    """The names in `__all__` that are on no page."""
    listed = next(
        [str(one.value) for one in node.value.elts if isinstance(one, ast.Constant)]
        for node in _tree(package / "__init__.py").body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "__all__"
        and isinstance(node.value, ast.List)
    )
    errors = {node.name for node in _tree(package / "errors.py").body if isinstance(node, ast.ClassDef)}
    shown = {name for _, modules in PAGES.values() for names in modules.values() for name in names} | errors
    yield from (
        f"python/wherry/__init__.py: {name} is on no page of the reference" for name in listed if name not in shown
    )


def _faults(package: Path) -> Iterator[str]:
    for name, path in SOURCES.items():
        file = package / path
        node = next(
            one for one in _tree(file).body if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name == name
        )
        where = f"python/wherry/{path}"
        if isinstance(node, ast.FunctionDef):
            yield from _function(node, name, where, ast.get_docstring(node) or "")
            continue
        text = ast.get_docstring(node) or ""
        body = node.body
        for number, one in enumerate(body):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                after = body[number + 1] if number + 1 < len(body) else None
                if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)):
                    yield f"{where}:{one.lineno}: {name}.{one.target.id} is not described"
            if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                if any("dataclass" in ast.dump(decorator) for decorator in node.decorator_list):
                    continue
                if all(
                    not argument.arg.startswith("core") for argument in one.args.args
                ):  # otherwise only the library constructs it
                    yield from _function(one, name, where, text)
            elif isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
                yield from _function(one, f"{name}.{one.name}", where, ast.get_docstring(one) or "")


def _function(node: ast.FunctionDef, name: str, where: str, text: str) -> Iterator[str]:
    """Faults of a function: a missing docstring, and parameters that its docstring does not name."""
    if not text:
        yield f"{where}:{node.lineno}: {name} has no docstring"
    arguments = [*node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.kwarg])]
    for one in arguments:
        if one.arg not in ("self", "cls") and not re.search(rf"\b{one.arg}\b", text):
            yield f"{where}:{node.lineno}: {name} does not describe its parameter {one.arg}"


# ---- docstrings


def on_docstring(_app: Any, what: str, name: str, about: Any, _options: Any, lines: list[str]) -> None:
    """Called by Sphinx: converts the docstring in `lines` in place."""
    lines[:] = rst(lines, _parameters(about if what != "class" else getattr(about, "__init__", about)))


def on_signature(
    _app: Any, what: str, name: str, _about: Any, _options: Any, signature: str | None, result: str | None
) -> tuple[str, str | None] | None:
    """Called by Sphinx: hides the constructors of classes that only the library constructs."""
    if what == "class" and signature and signature.startswith("(core:"):
        return "", result
    return None


def _parameters(about: Any) -> tuple[str, ...]:
    code = getattr(getattr(about, "__func__", about), "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def rst(lines: Sequence[str], parameters: Sequence[str]) -> list[str]:
    """A docstring's lines as reStructuredText."""
    out: list[str] = []
    for paragraph in _paragraphs(lines):
        if all(line.startswith("    ") for line in paragraph):
            out += ["::", "", *paragraph, ""]
            continue
        described = _described(paragraph, parameters)
        if described:
            out += [*described, ""]
        else:
            out += [*(_marked(line.strip()) for line in paragraph), ""]
    return out


def _paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line.rstrip())
        elif paragraph:
            yield paragraph
            paragraph = []


def _described(paragraph: Sequence[str], parameters: Sequence[str]) -> list[str]:
    """The paragraph as a list; empty if its first line does not describe a parameter. Other lines that are not indented
    are text."""
    out: list[str] = []
    for line in paragraph:
        match = re.match(r"^((?:\w+, )*\w+): (.*)$", line)
        if match and set(match[1].split(", ")) <= set(parameters):
            names = ", ".join(f"``{name}``" for name in match[1].split(", "))
            out.append(f"- {names}: {_marked(match[2])}")
        elif not out:
            return []
        elif line.startswith(" "):
            out.append("  " + _marked(line.strip()))
        else:
            if out[-1].startswith(("- ", "  ")):
                out.append("")
            out.append(_marked(line))
    return out


def _marked(line: str) -> str:
    """Turns names in backticks into links if the reference has them, otherwise into literals."""
    parts = re.split(r"(`[^`]+`|docs/[a-z/-]+\.md)", line)
    return "".join(_part(part) for part in parts)


def _part(text: str) -> str:
    if text.startswith("`") and len(text) > 2:
        return _name(text[1:-1])
    if text.startswith("docs/") and text.endswith(".md"):
        return f":doc:`/{text.removesuffix('.md')}`"
    return _escaped(text)


def _name(text: str) -> str:
    target = text.removesuffix("()")
    first = target.split(".")[0]
    if first in HOME and re.fullmatch(r"[\w.]+", target):
        return f":py:obj:`{text} <{HOME[first]}.{target}>`"
    if target.startswith("wherry.") and re.fullmatch(r"[\w.]+", target):
        return f":py:obj:`{text} <{target}>`"
    return f"``{text}``"


def _escaped(text: str) -> str:
    return re.sub(r"([\\*|]|_(?=\W|$))", r"\\\1", text)
