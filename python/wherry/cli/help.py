# SPDX-License-Identifier: Apache-2.0
"""Shows help texts as the source has them: brackets stay text, and paragraphs fill the terminal's width."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

import typer
import typer.core
from rich.markup import escape
from typer.models import OptionInfo, ParameterInfo

_Function = Callable[..., Any]


def paragraphs(text: str) -> str:
    """Joins each paragraph into one line, which wraps at the terminal's width. Does not change indented lines."""
    blocks = re.split(r"\n{2,}", inspect.cleandoc(text))
    return "\n\n".join(block if block.startswith(" ") else block.replace("\n", " ") for block in blocks)


def whole_number(text: str) -> int:
    """Parses an option's whole number (`parser=`): digits, or a form such as 1e6."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
        if number == int(number) and abs(number) <= 1 << 53:  # a float is exact up to this
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number, as 10000 or 1e4")


def _usage(piece: str) -> str:
    """Restores the source's form of an argument in a usage line. In "{-- PROGRAM [ARGS]...}..." typer repeats the
    dots."""
    match = re.fullmatch(r"(\{(?P<required>.*)\}|\[(?P<optional>.*)\])(?P<dots>\.\.\.)?", piece)
    if match is None:
        return piece
    required = match["required"] is not None
    inner = match["required"] if required else match["optional"]
    inner = inner.upper() if inner.islower() else inner
    dots = "" if inner.endswith("...") else match["dots"] or ""
    return inner + dots if required else f"[{inner}]{dots}"


class _Command(typer.core.TyperCommand):
    """A command whose help shows arguments as the source has them, and shows no value for flags."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_usage(piece) for piece in super().collect_usage_pieces(ctx)]

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar = ""
        return option


class _Group(typer.core.TyperGroup):
    """A group with the same help as _Command."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar = ""
        return option


class App(typer.Typer):
    """A Typer whose commands' help is plain text. Rich would take "[rank]" for markup and leave it out."""

    _escaped: typing.ClassVar[set[int]] = set()
    """Ids of options that were already escaped, because commands share options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def command(  # type: ignore[override]
        self, name: str | None = None, **options: Any
    ) -> Callable[[_Function], _Function]:
        """Like Typer's command(), with the function's docstring as the help."""

        def register(function: _Function) -> _Function:
            # Evaluates string annotations here. Typer would evaluate strings again, and create other option objects.
            function.__annotations__ = typing.get_type_hints(function, include_extras=True)
            for hint in function.__annotations__.values():
                for info in getattr(hint, "__metadata__", ()):
                    if isinstance(info, OptionInfo) and typing.get_args(hint)[0] is bool:
                        info.metavar = ""  # a flag takes no value, so the help shows none
                    if isinstance(info, ParameterInfo) and info.help and id(info) not in self._escaped:
                        self._escaped.add(id(info))
                        info.help = escape(info.help)
            text = escape(paragraphs(function.__doc__ or ""))
            return super(App, self).command(name, help=text, cls=_Command, **options)(function)

        return register
