"""Brings together what the code declares and what the lockfiles accept: the work of every command.

It reads code and lockfiles, and writes neither.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.canonical import Json
from tallystick.commands.context import Context
from tallystick.commands.modules import NOTEBOOK, Loaded, Scope, load
from tallystick.commands.report import Report, Row
from tallystick.commands.selection import select
from tallystick.commands.settings import read_settings
from tallystick.commands.wrong_usage import WrongUsage
from tallystick.errors import InvalidContract, ModuleFailed, TooLarge, ToolNotDeclared
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Lock
from tallystick.lockfile.storage import read
from tallystick.lockfile.text import check_hashes

if TYPE_CHECKING:
    from tallystick.declaring import Declaration

_FIRST_VERSION: Final = "1.0.0"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the code has it.

    Args:
        name: Its name.
        document: Its contract document, with a version only if the code states one.
        source: Where its code is, `module:qualname`.
        file: The absolute path of the file that declares it, where there is one.
        line: The line where its definition begins, from 1.
        lockfile: The lockfile that accepts it.
    """

    name: str
    document: Mapping[str, Json]
    source: str
    file: str | None
    line: int | None
    lockfile: Path


@dataclass(frozen=True, slots=True)
class Examination:
    """The two sides of every comparison.

    Args:
        scope: What was imported, and from where.
        gone: The modules that only a lockfile knows, and that cannot be found.
        tools: The code's tools, by lockfile and name.
        locks: What the lockfiles hold.
        unseen: The entries of which nobody knows whether there is code for them, by lockfile and
            name.
    """

    scope: Scope
    gone: frozenset[str]
    tools: Mapping[tuple[Path, str], Tool]
    locks: Mapping[Path, Lock]
    unseen: frozenset[tuple[Path, str]]

    def places(self) -> list[tuple[Path, str]]:
        """Return the lockfile and name of all tools of either side, by name."""
        entries = ((path, name) for path, lock in self.locks.items() for name in lock.entries)
        return sorted({*self.tools, *entries}, key=lambda place: (place[1], place[0]))

    def select(self, given: Iterable[str]) -> list[tuple[Path, str]]:
        """Return the lockfile and name of the tools that somebody means.

        Raises:
            ToolNotDeclared: One is not there, or its code was not imported.
        """
        known = self.places()
        names = {select(each, (name for _, name in known)) for each in given}
        places = [place for place in known if place[1] in names]
        for _, name in self.unseen.intersection(places):
            raise ToolNotDeclared(f"The code of {name} was not imported: name its module with -m")
        return places

    def report(self) -> Report:
        """Compare the two sides.

        Raises:
            LockfileInvalid: An entry is not what was accepted.
        """
        for path, lock in self.locks.items():
            check_hashes(lock, name=path.name)
        return Report(tuple(self._row(path, name) for path, name in self.places()))

    def _row(self, path: Path, name: str) -> Row:
        tool, entry = self.tools.get((path, name)), self.locks[path].entries.get(name)
        source = None if entry is None else entry.source
        if (path, name) in self.unseen:
            return Row(name, None, source, None, None, path, None)
        drift = drift_of(name, entry, None if tool is None else tool.document)
        if tool is None:
            return Row(name, drift.level, source, None, None, path, drift)
        return Row(name, drift.level, tool.source, tool.file, tool.line, path, drift)


def examine(arguments: argparse.Namespace, context: Context) -> Examination:
    """Import the modules that are meant, and read the lockfiles of what they declare.

    Raises:
        WrongUsage: There is no module to look at, or the settings are wrong.
        ModuleFailed: A module cannot be imported, or a declaration makes no contract.
        LockfileInvalid: A lockfile cannot be read.
    """
    lockfile = context.lockfile(arguments.lockfile)
    scope = _scope(arguments, context, lockfile, read(lockfile))
    loaded = load(scope)
    only = None if arguments.lockfile is None else lockfile
    tools = {(tool.lockfile, tool.name): tool for tool in _tools(loaded.declarations, only)}
    locks = {path: read(path) for path in (lockfile, *(path for path, _ in tools))}
    unseen = frozenset(
        (path, name)
        for path, lock in locks.items()
        for name, entry in lock.entries.items()
        if (path, name) not in tools and not _has_seen(loaded, entry.source)
    )
    return Examination(scope, loaded.gone, tools, locks, unseen)


def _scope(arguments: argparse.Namespace, context: Context, lockfile: Path, lock: Lock) -> Scope:
    settings = read_settings(lockfile.parent, context.cwd)
    given: tuple[str, ...] = tuple(arguments.modules or ())
    wanted = given or settings.modules
    remembered = () if given else tuple(sorted(_modules(lock) - set(wanted)))
    if not wanted and not remembered:
        raise WrongUsage(
            "There is no module to look at: name those that declare tools, such as shop.tools, or"
            ' list them in pyproject.toml: [tool.tallystick] modules = ["shop.tools"]'
        )
    given_folders = [context.cwd / folder for folder in arguments.path or ()]
    for folder in given_folders:
        if not folder.is_dir():
            raise WrongUsage(f"--path: there is no folder {folder}")
    folders = (*given_folders, *settings.path, *_usual(lockfile, context))
    return Scope(wanted, remembered, tuple(dict.fromkeys(each for each in folders)))


def _usual(lockfile: Path, context: Context) -> Iterator[Path]:
    for folder in (lockfile.parent, lockfile.parent / "src", context.cwd):
        if folder.is_dir():
            yield folder


def _modules(lock: Lock) -> set[str]:
    sources = (entry.source for entry in lock.entries.values() if entry.source is not None)
    return {_module(source) for source in sources} - {NOTEBOOK}


def _module(source: str) -> str:
    return source.partition(":")[0]


def _has_seen(loaded: Loaded, source: str | None) -> bool:
    return source is not None and loaded.has_imported(_module(source))


def _tools(declarations: "Iterable[Declaration]", only: Path | None) -> Iterator[Tool]:
    for declaration in declarations:
        _check(declaration)
        origin, lockfile = declaration.origin, declaration.lockfile
        yield Tool(
            name=declaration.name,
            document=declaration.document,
            source=origin.source,
            file=origin.file,
            line=origin.line,
            lockfile=only or lockfile.parent.resolve() / lockfile.name,
        )


def _check(declaration: "Declaration") -> None:
    """Refuse what makes no contract, whichever version it gets."""
    from tallystick.tool_contract import Contract

    try:
        Contract.parse({"version": _FIRST_VERSION, **declaration.document})
    except (InvalidContract, TooLarge) as error:
        origin = declaration.origin
        at = origin.source if origin.file is None else f"{origin.file}:{origin.line}"
        raise ModuleFailed(
            f"{declaration.name}, at {at}, makes no contract: {error.detail}",
            facts={"tool": declaration.name, "file": origin.file, "line": origin.line},
        ) from error
