# SPDX-License-Identifier: Apache-2.0
"""The command line: `wherry demo`, `agent`, `run`, `kv`, `bypass`, `streams`, `cat`, `top`, `bench`, `report`.

Results go to standard output, everything else to standard error. Exit status: 0 done, 1 failed, 2 wrong command line,
74 the result could not be written, 130 Ctrl-C. `wherry run` exits with the status of the job.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from wherry import services
from wherry.cli import agent
from wherry.cli.demo import demo
from wherry.cli.help import App
from wherry.cli.output import OUTPUT_LOST, OutputLost, out, progress, standard_streams
from wherry.cli.report import report
from wherry.cli.top import top
from wherry.errors import Error, NotFound
from wherry.system import RESOURCES, repository, system_error_at, wherryd
from wherry.system import prefix as installed_prefix
from wherry.version import VERSION

app = App(
    name="wherry",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Takes data off the host CPU: an agent pulls it out of the application's memory, straight into Apache Arrow."
    "\n\n[bold]A first look[/bold]\n\n"
    "  wherry demo                 does it work here, and what is it good for: ten seconds\n\n"
    "  wherry agent start          an agent of this machine, in the background\n\n"
    "  wherry agent status         what it does\n\n"
    "  wherry streams              what it holds\n\n"
    "  wherry cat particles        read a stream, here, without a copy\n\n"
    "  wherry top                  all of it, live, with rates\n\n"
    "  wherry agent stop\n\n"
    "  wherry run --nodes 2 --ranks-per-node 2 -- build/release/apps/histogram    ranks and their messages\n\n"
    "  wherry kv up                a replicated key-value store\n\n"
    "  wherry bypass probe         an FPGA card that drives a NIC: what is here\n\n"
    "Applications need no agent of their own: wherry.Session() finds the running one, or starts one for itself.",
)
bench_app = App(no_args_is_help=True, help="Measure. Claims are ratios of things measured in the same run.")
agent.add_to(app)
app.add_typer(bench_app, name="bench")
for part in services.parts("cli"):
    part.add_to(app, bench_app)
app.command()(demo)
app.command()(report)
app.command()(top)

OF_EXTRAS = ("jinja2", "markupsafe", "matplotlib", "msgspec")
"""Packages that only benchmarks and the report need."""
EXPECTED = (Error, FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
"""Errors that are shown as a message without a traceback. Other errors are faults of Wherry and keep their
traceback."""


@app.command()
def version() -> None:
    """Print the versions of Wherry and of its libraries.

    Example:

      wherry version
    """
    console = out()
    console.print(f"wherry    {VERSION}")
    try:
        console.print(f"wherryd   {wherryd()}")
    except NotFound:
        console.print("wherryd   not built")
    import pyarrow as pa

    console.print(f"pyarrow   {pa.__version__}")
    console.print(f"python    {sys.version.split()[0]}")


@app.command()
def prefix() -> None:
    """Print the folder for C and C++ in a Wherry wheel: headers, libwherry, CMake and pkg-config files.

    Examples:

      gcc program.c $(PKG_CONFIG_PATH=$(wherry prefix)/lib/pkgconfig pkg-config --cflags --libs wherry)

      cmake -B build -DCMAKE_PREFIX_PATH=$(wherry prefix)
    """
    place = installed_prefix()
    if place is None:
        raise NotFound("this Wherry is not from a wheel: `cmake --install` makes a prefix (docs/start/install.md)")
    print(place)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def _options_of_all(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Print the version, as `wherry version` does.",
        ),
    ] = False,
) -> None:
    """Options of `wherry` itself."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status. Expected errors become one red line on standard error."""
    with standard_streams():
        return _main(arguments)


def _main(arguments: list[str] | None) -> int:
    errors = progress()
    try:
        # standalone_mode=False: typer raises usage errors and aborts, and returns exit codes, instead of ending the
        # process.
        code = app(args=arguments, prog_name="wherry", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OutputLost as error:
        if error.closed_pipe:  # `wherry cat x | head`
            return 0
        errors.print(f"wherry: {error}", style="red", markup=False)
        return OUTPUT_LOST
    except BrokenPipeError:  # standard output of another program that called main() in its process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OF_EXTRAS:
            raise
        errors.print(f"wherry: {_missing(package)}", style="red", markup=False)
        return 1
    except EXPECTED as error:
        errors.print(f"wherry: {_message(error)}", style="red", markup=False)
        return 1
    except Exception as error:  # noqa: BLE001 - what is not expected is raised again
        if isinstance(error, OSError) and error.errno in RESOURCES:
            errors.print(f"wherry: {_message(error)}", style="red", markup=False)
            return 1
        return _usage(error, errors)
    return code if isinstance(code, int) else 0


def _missing(package: str) -> str:
    remedy = "`make setup` installs it" if repository() is not None else "pip install 'wherry[report]' installs it"
    return f"this command needs the Python package {package}, which is not installed: {remedy}"


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and not isinstance(error, TimeoutError):
        return system_error_at(error)
    return str(error)


def _usage(error: Exception, errors: Console) -> int:
    """Reports an exception of typer and returns its exit status. Raises other exceptions again."""
    exit_code = getattr(error, "exit_code", None)
    if exit_code is None:
        if type(error).__name__ == "Abort":
            return 130
        raise error
    show = getattr(error, "format_message", None)
    if show is not None and str(show()):
        errors.print(f"wherry: {show()}", style="red", markup=False)
    context = getattr(error, "ctx", None)
    if context is not None and show is not None:
        errors.print(f"try `{context.command_path} --help`")
    return int(exit_code)
