"""`diff`: all that lies between the code and what the lockfile accepts."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Final

from tallystick.commands.context import Context
from tallystick.commands.examination import Examination, examine
from tallystick.commands.exit_code import ExitCode
from tallystick.commands.options import Subparsers, add_code_options, add_command
from tallystick.commands.report import Report, Row
from tallystick.commands.terminal import LEVEL_COLOURS, Painter
from tallystick.lockfile.entry import Level

_DETAILS: Final = """\
Show every change with its old and new values, a call that fails now, what becomes of callers and
readers, and what a person has to judge. Nothing is written."""


def add_commands(subparsers: Subparsers, common: argparse.ArgumentParser) -> None:
    """Register `diff`."""
    parser = add_command(
        subparsers,
        common,
        "diff",
        run=_run,
        purpose="show what has changed",
        details=_DETAILS,
        examples=["diff", "diff shop.tools.search", "diff search -m shop.tools"],
    )
    parser.add_argument(
        "tools",
        metavar="TOOL",
        nargs="*",
        help="its name, or as much of the name's end as is unique (default: all that differ)",
    )
    add_code_options(parser)


def _run(arguments: argparse.Namespace, context: Context) -> int:
    examination = examine(arguments, context)
    report = examination.report()
    rows = _rows(arguments.tools, examination, report)
    if arguments.json:
        context.say_json(Report(tuple(rows)).to_json())
    elif rows:
        context.say(*_painted(rows, context.painter()))
    else:
        context.say("Nothing differs: the code matches the lockfile.")
    return ExitCode.DONE


def _rows(given: Sequence[str], examination: Examination, report: Report) -> list[Row]:
    if given:
        meant = {*examination.select(given)}
        return [row for row in report.rows if (row.lockfile, row.name) in meant]
    return [row for row in report.rows if row.level not in (None, Level.UNCHANGED)]


def _painted(rows: Sequence[Row], paint: Painter) -> Iterator[str]:
    from tallystick.lockfile.wording import details

    for index, row in enumerate(rows):
        assert row.drift is not None, "only tools whose code is known are chosen"
        if index:
            yield ""
        headline, *lines = details(row.drift, row.lockfile.name)
        yield paint(LEVEL_COLOURS[row.level], headline)
        yield from lines
