"""`import`: takes over what was accepted with another tool."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tallystick.canonical import Json
from tallystick.commands.context import Context
from tallystick.commands.examination import Examination, Tool, examine
from tallystick.commands.exit_code import ExitCode
from tallystick.commands.options import Subparsers, add_code_options, add_command
from tallystick.commands.terminal import columns
from tallystick.commands.wrong_usage import WrongUsage
from tallystick.lockfile.entry import Entry, Lock
from tallystick.lockfile.storage import BYTES_MAX, change
from tallystick.lockfile.toolpact import ToolpactEntry, adopt, read_toolpact

_DETAILS: Final = """\
Take over the functions of a toolpact lockfile, each for the one tool of the code that has its name.
Where toolpact has accepted other parameters than the code has now, these are kept as accepted, so
that the next `check` shows the difference. What the lockfile holds already is left as it is."""


def add_commands(subparsers: Subparsers, common: argparse.ArgumentParser) -> None:
    """Register `import`."""
    parser = add_command(
        subparsers,
        common,
        "import",
        run=_run,
        purpose="take over a toolpact lockfile",
        details=_DETAILS,
        examples=["import toolpact.lock -m shop.tools"],
    )
    parser.add_argument("file", metavar="FILE", help="the toolpact lockfile")
    add_code_options(parser)


@dataclass(frozen=True, slots=True)
class Match:
    """What becomes of one function of the other lockfile.

    Args:
        function: Its name there.
        tool: The tool of the code that it is; None if there is not exactly one.
        entry: What is accepted for it; None if it is left out.
        reason: Why it is left out; empty if it is not.
    """

    function: str
    tool: Tool | None = None
    entry: Entry | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the match as a JSON object."""
        return {
            "function": self.function,
            "name": None if self.tool is None else self.tool.name,
            "version": None if self.entry is None else self.entry.version,
            "reason": self.reason or None,
        }


def _run(arguments: argparse.Namespace, context: Context) -> int:
    functions = read_toolpact(_text(context.cwd / arguments.file), name=arguments.file)
    examination = examine(arguments, context)
    matches = [_match(each, examination) for each in functions.values()]
    additions: dict[Path, list[Entry]] = {}
    for match in matches:
        if match.tool is not None and match.entry is not None:
            additions.setdefault(match.tool.lockfile, []).append(match.entry)
    for path, entries in additions.items():
        change(path, partial(_with_entries, entries=entries))
    if arguments.json:
        context.say_json({"imported": [match.to_json() for match in matches]})
    else:
        context.say(*_told(matches))
    return ExitCode.DONE if all(match.entry for match in matches) else ExitCode.DIFFERS


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            # One byte more than allowed is enough to know, however large the file is.
            content = opened.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            raise WrongUsage(f"{file} is larger than {BYTES_MAX} bytes")
        return content.decode()
    except OSError as error:
        raise WrongUsage(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WrongUsage(f"{file} is not UTF-8 (byte {error.start})") from error


def _match(function: ToolpactEntry, examination: Examination) -> Match:
    """Find the one tool that a function is: toolpact knows it by its bare name alone."""
    fitting = [
        tool
        for tool in examination.tools.values()
        if function.name in (_last(tool.name), _last(tool.source.partition(":")[2]))
    ]
    if not fitting:
        return Match(function.name, reason="the code declares no tool of this name")
    if len(fitting) > 1:
        names = ", ".join(sorted(tool.name for tool in fitting))
        return Match(function.name, reason=f"the name may mean {names}")
    tool = fitting[0]
    if tool.name in examination.locks[tool.lockfile].entries:
        return Match(function.name, tool, reason=f"{tool.name} is accepted already")
    return Match(function.name, tool, adopt(function, tool.document, source=tool.source))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _with_entries(lock: Lock, *, entries: Iterable[Entry]) -> Lock:
    for entry in entries:
        # Somebody may have accepted it in the meantime.
        if entry.name not in lock.entries:
            lock = lock.with_entry(entry)
    return lock


def _told(matches: Sequence[Match]) -> Iterator[str]:
    rows = [
        (
            "imported" if match.entry else "left out",
            match.function,
            match.tool.name if match.tool and match.entry else match.reason,
        )
        for match in matches
    ]
    yield from columns(rows) if rows else ["The file holds no functions."]
