"""`accept`: takes the code's contracts into the lockfile."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tallystick.canonical import Json
from tallystick.commands.context import Context
from tallystick.commands.examination import Examination, Tool, examine
from tallystick.commands.exit_code import ExitCode
from tallystick.commands.options import Subparsers, add_code_options, add_command
from tallystick.commands.terminal import columns, version_step
from tallystick.commands.wrong_usage import WrongUsage
from tallystick.errors import ModuleFailed
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Entry, Level, Lock
from tallystick.lockfile.storage import change
from tallystick.lockfile.text import find_faults

_DETAILS: Final = """\
Take the code's contract into the lockfile. Its version is the one that the code states, or else the
accepted one, raised as the change asks for. The entry of a tool whose code is gone is removed."""


def add_commands(subparsers: Subparsers, common: argparse.ArgumentParser) -> None:
    """Register `accept`."""
    parser = add_command(
        subparsers,
        common,
        "accept",
        run=_run,
        purpose="accept what has changed",
        details=_DETAILS,
        examples=[
            "accept shop.tools.search",
            "accept search summarize -m shop.tools",
            "accept --all",
        ],
    )
    parser.add_argument(
        "tools",
        metavar="TOOL",
        nargs="*",
        help="its name, or as much of the name's end as is unique",
    )
    parser.add_argument("--all", action="store_true", help="accept all that differ")
    add_code_options(parser)


@dataclass(frozen=True, slots=True)
class Step:
    """What acceptance did to one tool.

    Args:
        name: The tool's name.
        done: What was done: `added`, `accepted`, `removed`, `unchanged`, or `repaired` if the
            entry's hashes did not fit its contract.
        level: How grave the drift was.
        before: The version that the lockfile held, if it held one.
        after: The version that it holds now, if it holds one.
    """

    name: str
    done: str
    level: Level
    before: str | None
    after: str | None

    def to_json(self) -> dict[str, Json]:
        """Return the step as a JSON object."""
        return {
            "name": self.name,
            "done": self.done,
            "level": self.level.value,
            "before": self.before,
            "after": self.after,
        }


def _run(arguments: argparse.Namespace, context: Context) -> int:
    if bool(arguments.tools) == arguments.all:
        raise WrongUsage("Name the tools to accept, or give --all for all that differ")
    examination = examine(arguments, context)
    places = _everything(examination) if arguments.all else examination.select(arguments.tools)
    steps = _accept(places, examination.tools, accepted_at=context.now())
    if arguments.json:
        context.say_json({"accepted": [each.to_json() for each in steps]})
    else:
        context.say(*_told(steps))
    return ExitCode.DONE


def _everything(examination: Examination) -> list[tuple[Path, str]]:
    scope, gone = examination.scope, examination.gone
    if gone and not scope.wanted and gone == frozenset(scope.remembered):
        # This is more likely the wrong folder than the end of all tools.
        raise ModuleFailed(
            f"Of the modules that the lockfile names none can be found: {', '.join(sorted(gone))}."
            " Name their folder with --path, or name the tools whose entries are to go"
        )
    return [place for place in examination.places() if place not in examination.unseen]


def _accept(
    places: Iterable[tuple[Path, str]],
    tools: Mapping[tuple[Path, str], Tool],
    *,
    accepted_at: str,
) -> list[Step]:
    """Write what is accepted, each lockfile once, and return what was done."""
    by_lockfile: dict[Path, _Acceptance] = {}
    for path, name in places:
        acceptance = by_lockfile.setdefault(path, _Acceptance(accepted_at))
        acceptance.wanted[name] = tools.get((path, name))
    for path, acceptance in by_lockfile.items():
        change(path, acceptance.edit)
    return [step for acceptance in by_lockfile.values() for step in acceptance.steps]


@dataclass(slots=True)
class _Acceptance:
    """The edit of one lockfile.

    Args:
        accepted_at: The time to write.
        wanted: The tools that are accepted; None for one whose code is gone.
        steps: What the edit has done.
    """

    accepted_at: str
    wanted: dict[str, Tool | None] = field(default_factory=dict[str, Tool | None])
    steps: list[Step] = field(default_factory=list[Step])

    def edit(self, lock: Lock) -> Lock:
        # Somebody may have written since the examination, so the drift is taken afresh.
        for name, tool in self.wanted.items():
            lock, step = self._accept(lock, name, tool)
            self.steps.append(step)
        return lock

    def _accept(self, lock: Lock, name: str, tool: Tool | None) -> tuple[Lock, Step]:
        entry = lock.entries.get(name)
        before = None if entry is None else entry.version
        if tool is None:
            return lock.without(name), Step(name, "removed", Level.REMOVED, before, None)
        is_faulty = entry is not None and bool(find_faults(Lock({name: entry})))
        drift = drift_of(name, entry, tool.document)
        assert drift.document is not None, "the code has the tool"
        accepted = Entry(drift.document, self.accepted_at, tool.source)
        done = "added" if entry is None else "accepted"
        if entry is not None and drift.level is Level.UNCHANGED:
            done = "repaired" if is_faulty else "unchanged"
            if not is_faulty:
                # At most the code has moved, which is no new acceptance.
                accepted = replace(entry, source=tool.source)
        return lock.with_entry(accepted), Step(name, done, drift.level, before, accepted.version)


def _told(steps: Iterable[Step]) -> Iterator[str]:
    changed = [step for step in steps if step.done != "unchanged"]
    if changed:
        yield from columns(
            [(each.done, each.name, version_step(each.before, each.after)) for each in changed]
        )
    else:
        yield "Nothing to accept: the code matches the lockfile."
