"""How sub-commands and their options are declared."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from tallystick.commands.context import Context

Run: TypeAlias = Callable[[argparse.Namespace, Context], int]


class Subparsers(Protocol):
    """What `argparse.ArgumentParser.add_subparsers` returns, which has no public name."""

    def add_parser(self, name: str, /, **options: Any) -> argparse.ArgumentParser:  # noqa: ANN401
        """Add a sub-command's parser."""
        ...


def add_command(
    subparsers: Subparsers,
    common: argparse.ArgumentParser,
    name: str,
    *,
    run: Run,
    purpose: str,
    details: str,
    examples: Sequence[str],
) -> argparse.ArgumentParser:
    """Add a sub-command, and return its parser.

    Args:
        subparsers: Where it is added.
        common: The options that all sub-commands have.
        name: Its name.
        run: What it does; it returns the exit code.
        purpose: One line for the list of commands.
        details: What its own help says.
        examples: Complete arguments, which begin with the command's name.
    """
    parser = subparsers.add_parser(
        name,
        parents=[common],
        help=purpose,
        description=details,
        epilog="\n".join(
            ["examples:", *(f"  %(prog)s{each.removeprefix(name)}" for each in examples)]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_code_options(parser: argparse.ArgumentParser, *, module_option: bool = True) -> None:
    """Add the options of a command that imports code.

    Args:
        parser: The command's parser.
        module_option: Whether modules are named by `-m`, as the arguments are something else.
    """
    told = "a module that declares tools (default: those in pyproject.toml and in the lockfile)"
    if module_option:
        parser.add_argument(
            "-m", "--module", metavar="MODULE", dest="modules", action="append", help=told
        )
    else:
        parser.add_argument("modules", metavar="MODULE", nargs="*", help=told)
    parser.add_argument(
        "--path",
        metavar="DIR",
        action="append",
        help="search DIR for modules first (default: the lockfile's folder, its src, and this one)",
    )
    parser.add_argument(
        "--traceback", action="store_true", help="if a module fails to import, show all of why"
    )
