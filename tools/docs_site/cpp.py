# SPDX-License-Identifier: Apache-2.0
"""Writes a page for each public header. Doxygen reads the headers, and this file converts its XML to reStructuredText.

A page begins with the comment at the head of its header. A comment between declarations (`// ...`) introduces the
declarations after it. `undocumented` lists the members without a describing comment.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

Element = ElementTree.Element

HEADERS = {
    "C++": {
        "status.hpp": "Status and Result",
        "session.hpp": "Sessions and memory",
        "transport.hpp": "Transports",
        "schema.hpp": "Schemas",
        "column.hpp": "Columns",
        "move.hpp": "move: streams",
        "route.hpp": "route: messages between ranks",
        "route_message.hpp": "route: the form of a message",
        "route_codec.hpp": "route: messages of strings and containers",
        "kv.hpp": "kv: the replicated store",
    },
    "C": {
        "wherry.h": "Sessions and streams",
        "route.h": "route: messages between ranks",
        "convey.h": "Conveyors on route",
        "kv.h": "kv: the replicated store",
    },
}
"""The public headers of each language in reading order, with the titles of their pages."""
INSTALLED_ONLY = {"route_detail.hpp", "route_codec_detail.hpp"}
"""Installed headers that other headers include, and whose names are internal."""
NOT_SHOWN = re.compile(r"^(WHERRY_API|WHERRY_NODISCARD|WHERRY_\w*_H)$")
"""Macros that are not for users."""
SELF_EVIDENT = re.compile(r"^operator(=|==|\+=)$")


ELSEWHERE = {"fork"}
"""Functions of other libraries that comments mention."""


class Broken(Exception):
    """The headers' comments have faults. The message names one fault per line."""


def read_headers(root: Path, out: Path) -> None:
    """Runs Doxygen, which writes XML to `out`/xml. Raises Broken with Doxygen's warnings."""
    settings = (root / "tools" / "docs_site" / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {out}\n"
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["doxygen", "-"], cwd=root, input=settings, capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stderr.strip():
        raise Broken(done.stderr.strip() or f"doxygen ended with {done.returncode}")


@dataclass
class Member:
    """A declaration that a page shows, with the declarations inside it."""

    element: Element
    kind: str
    name: str
    """Qualified."""
    line: int
    text: str = ""
    inside: list[Member] = field(default_factory=list)


@dataclass
class Note:
    """A comment between declarations."""

    line: int
    end: int
    depth: int
    title: str
    text: list[str]


class Headers:
    """All declarations that Doxygen found, by header."""

    def __init__(self, root: Path, xml: Path) -> None:
        self.root = root
        self.targets: dict[str, tuple[str, str]] = {}
        self.members: dict[str, list[Member]] = {name: [] for group in HEADERS.values() for name in group}
        self.undocumented: list[str] = []
        self.unknown: list[str] = []
        compounds = [
            ElementTree.parse(file).getroot()[0]
            for file in sorted(xml.glob("*.xml"))
            if file.stem != "index" and "Doxyfile" not in file.stem
        ]
        self._compounds = {one.get("id", ""): one for one in compounds if one.tag == "compounddef"}
        nested = {
            inner.get("refid", "")
            for one in self._compounds.values()
            if one.get("kind") in ("struct", "class")
            for inner in one.iter("innerclass")
        }
        for identity, one in self._compounds.items():
            kind = one.get("kind", "")
            if kind in ("struct", "class", "concept") and identity not in nested:
                self._add(self._compound(one))
            elif kind in ("namespace", "file"):
                for member in one.iter("memberdef"):
                    self._add(self._member(member))
        for found in self.members.values():
            found.sort(key=lambda member: member.line)

    def _add(self, member: Member | None) -> None:
        if member is None or "detail" in member.name or "<" in member.name or NOT_SHOWN.match(member.name):
            return
        header = Path(_location(member.element).get("file", "")).name
        if header in self.members and all(
            member.element.get("id") != other.element.get("id") for other in self.members[header]
        ):
            self.members[header].append(member)

    def _compound(self, one: Element) -> Member:
        name = one.findtext("compoundname", "")
        found = Member(one, one.get("kind", ""), name, int(_location(one).get("line", "0")), _words(one))
        self.targets[one.get("id", "")] = (found.kind, name)
        inside = [self._member(member) for member in one.iter("memberdef")]
        inside += [
            self._compound(self._compounds[inner.get("refid", "")])
            for inner in one.iter("innerclass")
            if inner.get("prot") == "public"
        ]
        found.inside = sorted((member for member in inside if member is not None), key=lambda member: member.line)
        return found

    def _member(self, one: Element) -> Member | None:
        """The member for a page; None if it is not for users."""
        arguments = one.findtext("argsstring", "") or ""
        if one.get("prot") != "public" or one.get("kind") == "friend" or "=delete" in arguments.replace(" ", ""):
            return None
        name = one.findtext("qualifiedname", "") or one.findtext("name", "")
        kind = one.get("kind", "")
        self.targets[one.get("id", "")] = (kind, name)
        for value in one.iter("enumvalue"):
            self.targets[value.get("id", "")] = ("enumerator", f"{name}::{value.findtext('name')}")
        return Member(one, kind, name, int(_location(one).get("line", "0")), _words(one))

    def called(self, name: str, scope: str, domain: str) -> tuple[str, str]:
        """Kind and qualified name of the declaration that a comment in `scope` calls `name`; empty if there is none."""
        around = scope.split("::")
        every = {found: kind for kind, found in self.targets.values()}
        for depth in range(len(around), -1, -1):
            full = "::".join([*around[:depth], name])
            if full in every:
                return every[full], full
        ends = sorted({found for found in every if found.endswith("::" + name)} if domain == "cpp" else set())
        return (every[ends[0]], ends[0]) if ends else ("", "")

    def has_function(self, name: str) -> bool:
        """Whether a function has this name, too."""
        return ("function", name) in self.targets.values()

    # ---- a page

    def page(self, header: str) -> str:
        """The page of a header. Adds to `undocumented`."""
        language = next(language for language, group in HEADERS.items() if header in group)
        source = (self.root / "include" / "wherry" / header).read_text().splitlines()
        intro, rest = head_comment(source)
        title = (
            f"{header}: {HEADERS[language][header].removeprefix('move: ').removeprefix('route: ').removeprefix('kv: ')}"
        )
        lines = [f".. _{page_name(header)}:", "", title, "=" * len(title), "", f"``#include <wherry/{header}>``", ""]
        lines += [*self._prose(intro), ""]
        pages = _Page(self, language, header, notes(source, rest))
        lines += pages.members(self.members[header], "", 0)
        return "\n".join(lines) + "\n"

    def _prose(self, text: list[str]) -> list[str]:
        return prose(text)


def page_name(header: str) -> str:
    """The name of the header's page in the folder api/, which is also its label."""
    return "api-" + header.replace(".", "-").replace("_", "-")


class _Page:
    """Writes the declarations of one header."""

    def __init__(self, headers: Headers, language: str, header: str, between: list[Note]) -> None:
        self.headers = headers
        self.domain = "cpp" if language == "C++" else "c"
        self.header = header
        self.notes = between
        self.scope = ""

    def members(self, members: list[Member], scope: str, depth: int) -> list[str]:
        """The lines for the declarations and the notes before them."""
        lines: list[str] = []
        pad = "   " * depth
        covered = 0
        space = ""
        shown: dict[int, str] = {}
        for member in members:
            shown.setdefault(member.line, "")
            shown[member.line] = shown[member.line] or member.text
        for member in members:
            for note in [note for note in self.notes if note.depth == depth and note.line < member.line]:
                self.notes.remove(note)
                if depth and member.line - note.end > 12:  # the note belongs to a part that is not shown
                    continue
                if note.title:
                    lines += [f"{pad}.. rubric:: {note.title}", ""]
                lines += [pad + line if line else "" for line in prose(note.text)] + [""]
                covered = note.end if note.text else covered
            if self.domain == "c" and self._same_name(member, members):
                continue
            if self.domain == "cpp" and not depth and member.name.rpartition("::")[0] != space:
                space = member.name.rpartition("::")[0]
                lines += [f".. cpp:namespace:: {space}", ""]
            text = member.text or shown[member.line]
            grouped = covered and self._group_reaches(covered, member.line)
            if not text and not grouped and not self._self_evident(member):
                self.headers.undocumented.append(
                    f"{_location(member.element).get('file')}:{member.line}: {member.name}"
                )
            lines += [pad + line if line else "" for line in self._declared(member, scope or space, text, depth)] + [""]
        return lines

    def _same_name(self, member: Member, members: list[Member]) -> bool:
        """For `typedef struct x x;`, whether another declaration already shows x."""
        return member.kind == "typedef" and any(other is not member and other.name == member.name for other in members)

    def _group_reaches(self, start: int, line: int) -> bool:
        """Whether no empty line separates the comment from the declaration."""
        source = (self.headers.root / "include" / "wherry" / self.header).read_text().splitlines()
        return all(text.strip() for text in source[start:line])

    def _self_evident(self, member: Member) -> bool:
        """Whether a declaration needs no description: copy, move, destructor, default constructor and comparison."""
        name = member.name.rpartition("::")[2]
        arguments = (member.element.findtext("argsstring", "") or "").replace(" ", "")
        same = member.name.split("::")[-2:] == [name, name]
        return (
            name.startswith("~")
            or SELF_EVIDENT.match(name) is not None
            or arguments.endswith("=default")
            or (same and arguments.startswith((f"({name}&&", f"(const{name}&")))
        )

    def _declared(self, member: Member, scope: str, text: str, depth: int) -> list[str]:
        one = member.element
        self.scope = member.name
        name = member.name.removeprefix(scope + "::") if scope else member.name
        kind = member.kind
        lines: list[str]
        body: list[str] = []
        if kind in ("struct", "class", "concept"):
            directive = kind if self.domain == "cpp" else "struct"
            lines = [f".. {self.domain}:{directive}:: {_template(one, kind)}{name}"]
            body = self.members(member.inside, member.name, depth + 1)
            self.scope = member.name
            body = [line[3 * depth :] if line else "" for line in body]
        elif kind == "enum":
            scoped = "enum-class" if one.get("strong") == "yes" else "enum"
            below = f" : {one.findtext('type')}" if one.get("strong") == "yes" and one.findtext("type") else ""
            lines = [f".. {self.domain}:{scoped}:: {name}{below}"]
            bare = name.startswith("@") or self.headers.has_function(member.name)
            if bare:  # no name, or also a function's name: C separates tags from functions, but Sphinx does not
                lines = [] if name.startswith("@") else [f"``enum {name}``:"]
            for value in one.iter("enumvalue"):
                number = value.findtext("initializer", "")
                body += [f"   .. {self.domain}:enumerator:: {value.findtext('name')} {number}".rstrip(), ""]
                body += ["      " + line if line else "" for line in self._rst(value)] + [""]
            if bare:
                words = self._rst(one)
                return [*lines, "", *words, "", *(line[3:] for line in body)]
        elif kind == "define":
            arguments = (
                f"({', '.join(param.findtext('defname', '') for param in one.iter('param'))})"
                if one.find("param") is not None
                else ""
            )
            lines = [f".. c:macro:: {name}{arguments}"]
        elif kind == "typedef":
            lines = [self._alias(one, name)]
        else:
            directive = (
                "function"
                if kind == "function"
                else "member"
                if self.domain == "cpp"
                else "var"
                if depth == 0
                else "member"
            )
            lines = [f".. {self.domain}:{directive}:: {_template(one, kind)}{_signature(one, name)}"]
        words = self._rst(one) if member.text else prose([text]) if text else []
        return [*lines, "", *("   " + line if line else "" for line in words), "", *body]

    def _alias(self, one: Element, name: str) -> str:
        definition = one.findtext("definition", "")
        if self.domain == "cpp":
            return f".. cpp:type:: {name} = {_plain(one.find('type'))}"
        return f".. c:type:: {definition.removeprefix('typedef ')}"

    def _rst(self, one: Element) -> list[str]:
        """The descriptions as reStructuredText."""
        brief, *others = [part for tag in ("briefdescription", "detaileddescription") for part in one.findall(tag)]
        text = merged([line for para in brief for line in self._paragraph(para)])
        for number, para in enumerate(para for part in others for para in part):
            lines = self._paragraph(para)
            if number == 0 and text and lines[0]:  # Doxygen made the first sentence the brief description
                text[-1] += " " + lines.pop(0)
            else:
                text.append("")
            text += lines
        return merged(text)

    def _paragraph(self, para: Element) -> list[str]:
        if para.tag != "para":
            return [_escaped("".join(para.itertext()).strip())]
        lines: list[str] = []
        running = self._text(para.text or "")
        for child in para:
            if child.tag in ("verbatim", "programlisting", "itemizedlist", "orderedlist", "blockquote"):
                lines += [running.strip(), ""]
                running = ""
                lines += self._block(child)
            else:
                running += self._inline(child)
            running += self._text(child.tail or "")
        return [*lines, running.strip()]

    def _text(self, text: str) -> str:
        """Running text, with links to the functions and pages that the text names."""
        out = []
        for part in re.split(r"((?:\w+::)*~?\w+\(\)|docs/[a-z/-]+\.md)", text):
            if part.startswith("docs/") and part.endswith(".md"):
                out.append(f":doc:`/{part.removesuffix('.md')}`")
            elif part.endswith("()"):
                out.append(self._call(part))
            else:
                out.append(_escaped(part))
        return "".join(out)

    def _call(self, text: str) -> str:
        name = text.removesuffix("()")
        kind, found = self.headers.called(name, self.scope, self.domain)
        if not found and name in ELSEWHERE:
            return _escaped(text)
        if not found:
            where = f"include/wherry/{self.header}: {self.scope}"
            self.headers.unknown.append(f"{where}: its comment names {text}, which is not a function of the headers")
            return _escaped(text)
        if self.domain == "c":
            return f":c:func:`{found}`"
        return f":cpp:any:`{text} <{found}>`" if kind != "variable" else _escaped(text)

    def _block(self, child: Element) -> list[str]:
        if child.tag in ("verbatim", "programlisting"):
            if child.tag == "programlisting":
                code = [_code_line(line) for line in child.iter("codeline")]
            else:
                code = (child.text or "").splitlines()
            return [".. code-block:: text", "", *("   " + line for line in code), ""]
        lines = []
        for item in child.iter("listitem"):
            first, *others = merged([line for para in item for line in self._paragraph(para)])
            lines += [f"- {first}", *("  " + line for line in others)]
        return [*lines, ""]

    def _inline(self, child: Element) -> str:
        text = "".join(child.itertext())
        if child.tag == "ref":
            return self._link(child.get("refid", ""), text)
        if child.tag == "computeroutput":
            return f"``{text}``" if text.strip() else ""
        if child.tag in ("emphasis", "bold"):
            mark = "*" if child.tag == "emphasis" else "**"
            return f"{mark}{_escaped(text)}{mark}"
        if child.tag == "ulink":
            return f"`{_escaped(text)} <{child.get('url')}>`__"
        return _escaped(text)

    def _link(self, identity: str, text: str) -> str:
        if identity in self.headers.targets:
            kind, name = self.headers.targets[identity]
            if "<" in name or (kind == "function" and "operator" in name):
                return f"``{text}``"
            if name.startswith(("wherry_", "WHERRY_", "convey_")) or kind == "define":
                return f":c:{_C_ROLES.get(kind, 'type')}:`{name}`"
            return f":cpp:any:`{text} <{name}>`"
        for header in self.headers.members:
            if text == header:
                return f":ref:`{header} <{page_name(header)}>`"
        return _escaped(text)


_C_ROLES = {
    "function": "func",
    "define": "macro",
    "struct": "struct",
    "enum": "enum",
    "enumerator": "enumerator",
    "typedef": "type",
    "variable": "data",
}


# ---- text


def head_comment(source: list[str]) -> tuple[list[str], int]:
    """The comment at the head of a header without comment marks and licence, and the number of its last line."""
    lines: list[str] = []
    for number, line in enumerate(source):
        if not line.startswith("//"):
            return lines, number
        text = line[2:].removeprefix(" ")
        text = text.removeprefix("SPDX-License-Identifier: Apache-2.0").removeprefix(" ") if number == 0 else text
        if text or number:
            lines.append(text)
    return lines, len(source)


def notes(source: list[str], start: int) -> list[Note]:
    """The comments between declarations of a file and its classes, after line `start`."""
    found: list[Note] = []
    open_note: Note | None = None
    for number, line in enumerate(source[start:], start + 1):
        match = re.match(r"^( {0,2})//(?!/) ?(.*)$", line)
        rule = re.match(r"^ *// -{4,} ?(.*)$", line)
        if match is None or len(match[1]) == 1:
            open_note = None
            continue
        if rule or open_note is None:
            open_note = Note(number, number, len(match[1]) // 2, rule[1] if rule else "", [])
            found.append(open_note)
        if not rule:
            open_note.text.append(match[2])
        open_note.end = number
    return found


def prose(text: list[str]) -> list[str]:
    """Comment lines as reStructuredText. Indented lines are code or tables; others are paragraphs."""
    out: list[str] = []
    code: list[str] = []
    for line in [*text, ""]:
        if line.startswith("  ") or (code and not line):
            code.append(line)
            continue
        if code:
            out += ["", *_code(code), ""]
            code = []
        out.append(_marked(line))
    if code:
        out += ["", *_code(code), ""]
    return merged(out)


def _code(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line)
    language = "c++" if any(line.rstrip().endswith((";", "{", "}")) for line in lines) else "text"
    return [f".. code-block:: {language}", "", *("   " + line[indent:] if line else "" for line in lines)]


def _marked(line: str) -> str:
    """The line with `x` as a literal, and the rest escaped."""
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(f"``{part[1:-1]}``" if part.startswith("`") and len(part) > 2 else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    """Escapes the characters that reStructuredText would read as markup."""
    return re.sub(r"([\\*`|]|_(?=\W|$))", r"\\\1", text)


def merged(lines: list[str]) -> list[str]:
    """The lines without empty lines at both ends, and with at most one empty line in a row."""
    out: list[str] = []
    for line in lines:
        if line.strip() or (out and out[-1]):
            out.append(line.rstrip())
    while out and not out[-1]:
        out.pop()
    return out


def _code_line(line: Element) -> str:
    def text(part: Element) -> Iterator[str]:
        yield part.text or ""
        for child in part:
            yield " " if child.tag == "sp" else "".join(text(child))
            yield child.tail or ""

    return "".join(text(line)).rstrip()


# ---- declarations


def _location(one: Element) -> Element:
    found = one.find("location")
    assert found is not None
    return found


def _words(one: Element) -> str:
    """The whole description as plain text; empty if there is none."""
    return " ".join(
        "".join(part.itertext()).strip()
        for tag in ("briefdescription", "detaileddescription")
        for part in one.findall(tag)
    ).strip()


def _plain(part: Element | None) -> str:
    return "" if part is None else re.sub(r"\s+", " ", "".join(part.itertext())).strip()


def _template(one: Element, kind: str) -> str:
    """`template <...> requires ...` and a space; empty if it is not a template."""
    found = one.find("templateparamlist")
    if found is None:
        return ""
    params = []
    for param in found.iter("param"):
        text = _plain(param.find("type"))
        name = param.findtext("declname", "")
        default = _plain(param.find("defval"))
        text += f" {name}" if name and not text.endswith(f" {name}") else ""
        params.append(text + (f" = {default}" if default else ""))
    requires = _plain(one.find("requiresclause"))
    return f"template<{', '.join(params)}> " + (f"requires {requires} " if requires else "")


def _signature(one: Element, name: str) -> str:
    kind = one.get("kind")
    result = _plain(one.find("type"))
    arguments = one.findtext("argsstring", "") or ""
    before = [word for word in ("static", "explicit") if one.get(word) == "yes" and kind == "function"]
    if one.get("constexpr") == "yes" and "constexpr" not in result and "consteval" not in result:
        before.append("constexpr")
    arguments = re.sub(r"\s*=\s*(default|0)$", "", arguments) if kind == "function" else arguments
    result = result.removeprefix("enum ")
    value = (one.findtext("initializer", "") or "").strip()
    text = f"{' '.join(before)} {result} {name}{arguments}"
    if result.endswith("(*"):  # a pointer to a function
        text = f"{' '.join(before)} {result}{name}{arguments}"
    if kind == "variable" and value and value != "=" and len(value) < 60:
        text += " " + value
    return re.sub(r"\s+", " ", text.replace("&&noexcept", "&& noexcept").replace("&noexcept", "& noexcept")).strip()
