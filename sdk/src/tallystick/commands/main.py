"""The `tallystick` command: one parser for all sub-commands, and the exit code of each."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from tallystick.commands import accept, check, diff, exchange, importing, listing
from tallystick.commands.context import Connect, Context
from tallystick.commands.exit_code import ExitCode
from tallystick.errors import LocalRefusal, Outage, Refusal
from tallystick.lockfile.storage import utc_now
from tallystick.plain import plain

_DESCRIPTION: Final = """\
Contracts of Python tools, made from their signatures and accepted in a lockfile.

The author of a tool changes a signature, and learns of it before a deployed agent does."""
_EPILOG: Final = """\
examples:
  {prog} check shop.tools       does the code match tallystick.lock?
  {prog} diff search            what has changed, and which call fails now?
  {prog} accept search          take the code's contract into the lockfile

exit codes:
  0 done, everything matches   1 something differs
  2 it could not tell          3 the registry is unreachable"""


def main(
    argv: Sequence[str] | None = None, *, prog: str = "tallystick", connect: Connect | None = None
) -> int:
    """Run the command and return its `ExitCode`.

    Args:
        argv: The arguments, without the program's name; without them, those of the process.
        prog: How it was called, for messages.
        connect: Opens the way to a registry, where the caller has one of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        _write_anything(stream)
    context = Context(
        prog=prog,
        stdout=sys.stdout,
        stderr=sys.stderr,
        environment=os.environ,
        cwd=Path.cwd(),
        now=utc_now,
        connect=connect,
    )
    try:
        try:
            return _run(argv, context)
        finally:
            context.stdout.flush()
    except BrokenPipeError:
        # The reader has gone (`| head`). Python would flush once more at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), context.stdout.fileno())
        return ExitCode.DIFFERS
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _write_anything(stream: TextIO) -> None:
    """Let a stream escape what its encoding lacks, where it would fail."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _run(argv: Sequence[str] | None, context: Context) -> int:
    parser = _parser(context.prog)
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.UNKNOWN
    try:
        return arguments.run(arguments, context)
    except (LocalRefusal, Refusal, Outage) as error:
        if getattr(arguments, "traceback", False) and error.__cause__ is not None:
            traceback.print_exception(error.__cause__, file=context.stderr)
        is_json = arguments.json or vars(arguments).get("format") == "json"
        _tell(error, context, as_json=is_json)
        return exit_code(error)


def exit_code(error: LocalRefusal | Refusal | Outage) -> ExitCode:
    """Return how a command ends that met an error."""
    if isinstance(error, Outage):
        return ExitCode.UNREACHABLE
    return ExitCode.DIFFERS if isinstance(error, Refusal) else ExitCode.UNKNOWN


def _tell(error: LocalRefusal | Refusal | Outage, context: Context, *, as_json: bool) -> None:
    if as_json:
        context.say_json({"code": error.code, "detail": error.detail, "facts": error.facts})
    else:
        context.note(f"{context.prog}: {plain(error.detail)}")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description=_DESCRIPTION,
        epilog=_EPILOG.format(prog=prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say the version, and exit")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    common = _common()
    for each in (check, diff, accept, listing, importing, exchange):
        each.add_commands(subparsers, common)
    return parser


class _Version(argparse.Action):
    """Says the version; the package's metadata is read only for that."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"tallystick {version('tallystick')}\n")
        parser.exit()


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--lockfile",
        metavar="FILE",
        help="the lockfile (default: TALLYSTICK_LOCKFILE, else the nearest tallystick.lock above)",
    )
    common.add_argument("--json", action="store_true", help="write one JSON value, for programs")
    return common
