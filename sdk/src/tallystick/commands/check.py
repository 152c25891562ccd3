"""`check`: does the code match what the lockfile accepts?"""

import argparse
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tallystick.commands.context import Context
from tallystick.commands.examination import Examination, examine
from tallystick.commands.options import Subparsers, add_code_options, add_command
from tallystick.commands.report import Report, Row, exit_code
from tallystick.commands.terminal import LEVEL_COLOURS, Painter, columns, count, version_step
from tallystick.commands.wrong_usage import WrongUsage
from tallystick.lockfile.entry import Level
from tallystick.plain import plain

_DETAILS: Final = """\
Import the modules, and hold what they declare against the lockfile. Nothing is written. Text that
changes is told and fails no check. Every other difference ends with exit code 1: also a tool that
is not accepted yet, and an accepted tool whose code is gone."""
_FORMATS: Final = ("text", "json", "github", "sarif")


def add_commands(subparsers: Subparsers, common: argparse.ArgumentParser) -> None:
    """Register `check`."""
    parser = add_command(
        subparsers,
        common,
        "check",
        run=_run,
        purpose="does the code match the lockfile?",
        details=_DETAILS,
        examples=[
            "check",
            "check shop.tools --strict",
            "check --format sarif --output tallystick.sarif",
        ],
    )
    add_code_options(parser, module_option=False)
    parser.add_argument("--strict", action="store_true", help="let changed text fail the check too")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="how the answer is written (default: text); github: annotations, and a job summary",
    )
    parser.add_argument("--output", metavar="FILE", help="write the answer to FILE, not to stdout")


def _run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.json and arguments.format not in (None, "json"):
        raise WrongUsage(f"--json and --format {arguments.format} exclude one another")
    examination = examine(arguments, context)
    report = examination.report()
    if not any(row.level for row in report.rows):
        modules = ", ".join(examination.scope.wanted + examination.scope.remembered)
        raise WrongUsage(
            f"There is nothing to check: no tool is declared in {modules}."
            " Declare one with @contract, or name the module that does"
        )
    written = "json" if arguments.json else arguments.format or "text"
    if written == "text":
        is_shown = arguments.output is None
        paint = context.painter() if is_shown else Painter(is_on=False)
        lines = [*_told(report, examination, arguments, context, paint)]
    else:
        lines = [*_for_programs(written, report, context, strict=arguments.strict)]
    if arguments.output is None:
        context.say(*lines)
    else:
        _write(context.cwd / arguments.output, lines)
    return exit_code(report, strict=arguments.strict)


def _write(file: Path, lines: list[str], mode: str = "w") -> None:
    try:
        with file.open(mode, encoding="utf-8") as output:
            output.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise WrongUsage(f"{file} cannot be written: {error.strerror}") from error


# --- for programs ---------------------------------------------------------------------------------


def _for_programs(written: str, report: Report, context: Context, *, strict: bool) -> Iterator[str]:
    from tallystick.commands import github, sarif

    root = _root(context)
    match written:
        case "json":
            yield json.dumps(report.to_json(strict=strict), indent=2)
        case "sarif":
            from importlib.metadata import version

            yield json.dumps(sarif.log(report, root, version("tallystick")), indent=2)
        case _:
            yield from github.annotations(report, root)
            summary = context.environment.get("GITHUB_STEP_SUMMARY")
            if summary:
                _write(Path(summary), [github.summary(report)], "a")


def _root(context: Context) -> Path:
    """Return the root of the repository, to which paths in annotations are relative."""
    workspace = context.environment.get("GITHUB_WORKSPACE")
    if workspace:
        return Path(workspace).resolve()
    cwd = context.cwd.resolve()
    return next((each for each in (cwd, *cwd.parents) if (each / ".git").exists()), cwd)


# --- for people -----------------------------------------------------------------------------------


def _told(
    report: Report,
    examination: Examination,
    arguments: argparse.Namespace,
    context: Context,
    paint: Painter,
) -> Iterator[str]:
    lines = columns(
        [
            (
                row.name,
                _verdict(row),
                version_step(row.accepted_version, row.version),
                _place(row, context),
            )
            for row in report.rows
        ]
    )
    for row, line in zip(report.rows, lines, strict=True):
        yield paint(LEVEL_COLOURS[row.level], line)
    differing = [row for row in report.rows if row.level not in (None, Level.UNCHANGED)]
    for row in differing:
        yield from _explained(row)
    yield ""
    yield _conclusion(report, strict=arguments.strict)
    yield from _unknown(report, examination)
    if differing:
        yield from _steps(differing, context.prog, options_again(arguments))


def _verdict(row: Row) -> str:
    from tallystick.lockfile.wording import verdict

    return "was not checked" if row.drift is None else verdict(row.drift)


def _place(row: Row, context: Context) -> str:
    if row.file is None or row.level is Level.UNCHANGED:
        return ""
    file = Path(row.file)
    shown = file.relative_to(context.cwd) if file.is_relative_to(context.cwd) else file
    return f"{shown}:{row.line}" if row.line else str(shown)


def _explained(row: Row) -> Iterator[str]:
    from tallystick.lockfile.wording import headline, summary

    assert row.drift is not None, "what differs was compared"
    lines = summary(row.drift)
    if lines:
        yield ""
        yield headline(row.drift, row.lockfile.name)
        yield ""
        yield from (f"  {line}".rstrip() for line in lines)


def _conclusion(report: Report, *, strict: bool) -> str:
    failing = [row for row in report.rows if row.level and exit_code(Report((row,)), strict=strict)]
    checked = [row for row in report.rows if row.level]
    where = " and ".join(dict.fromkeys(plain(row.lockfile.name) for row in report.rows))
    if not failing:
        verb = "is" if len(checked) == 1 else "are"
        return f"{count(len(checked), 'tool')} {verb} what {where} accepts."
    verb = "is" if len(failing) == 1 else "are"
    return f"{len(failing)} of {count(len(checked), 'tool')} {verb} not what {where} accepts."


def _unknown(report: Report, examination: Examination) -> Iterator[str]:
    unseen = sum(row.level is None for row in report.rows)
    if unseen:
        verb = "was" if unseen == 1 else "were"
        yield f"{count(unseen, 'tool')} {verb} not checked: the modules were not imported."
    if examination.gone:
        folders = ", ".join(plain(str(folder)) for folder in examination.scope.path)
        modules = ", ".join(map(plain, sorted(examination.gone)))
        yield f"Not found: {modules} (in {folders}). A folder elsewhere is named with --path."


def _steps(differing: list[Row], prog: str, options: str) -> Iterator[str]:
    from tallystick.lockfile.wording import commands

    yield ""
    if len(differing) == 1:
        yield from commands(differing[0].name, prog=prog, options=options)
    else:
        yield f"See all of it:  {prog} diff{options}"
        yield f"Accept it all:  {prog} accept --all{options}"


def options_again(arguments: argparse.Namespace) -> str:
    """Return the options by which another command sees the same code and lockfile."""
    options = [] if arguments.lockfile is None else ["--lockfile", arguments.lockfile]
    for option, values in (("--path", arguments.path), ("-m", arguments.modules)):
        for value in values or ():
            options += [option, value]
    return "".join(f" {plain(shlex.quote(each))}" for each in options)
