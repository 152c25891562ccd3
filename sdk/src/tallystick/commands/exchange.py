"""`push` and `pull`: the accepted contracts to a registry, and a registry's into the lockfile.

No code is imported: what the lockfile holds is what goes over the wire, and what comes over it is
what the lockfile holds afterwards.
"""

import argparse
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tallystick.canonical import Json
from tallystick.commands.context import Context
from tallystick.commands.exit_code import ExitCode
from tallystick.commands.options import Subparsers, add_command
from tallystick.commands.selection import select
from tallystick.commands.terminal import columns, count, version_step
from tallystick.commands.wrong_usage import WrongUsage
from tallystick.errors import (
    InvalidContract,
    InvalidRequest,
    Outage,
    Refusal,
    ToolContractNotFound,
    ToolSchemaDrift,
    Unauthenticated,
)
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Entry, Level, Lock
from tallystick.lockfile.storage import change, read
from tallystick.lockfile.text import check_hashes
from tallystick.plain import plain

if TYPE_CHECKING:
    from tallystick.client import AsyncClient, Publication, PublishedVersion
    from tallystick.tool_contract import Version

T = TypeVar("T")

REQUEST_SECONDS_MAX: Final = 60.0
"""Comparing a hostile contract takes the registry a while."""
RETRY_SECONDS: Final = 5.0

# What a refused publication may have as its facts.
_COUNTER_EXAMPLES: Final = {"old_calls": "Such a call", "new_results": "Such a result"}

_PUSH_DETAILS: Final = """\
Publish the contracts that the lockfile holds, all or those named, in the registry at
TALLYSTICK_URL, with the token in TALLYSTICK_TOKEN. One that is refused does not stop the others.
No code is imported."""
_PULL_DETAILS: Final = """\
Bring each tool of the lockfile to the newest published version that new work may use, or take in
those that are named, from the registry at TALLYSTICK_URL, with the token in TALLYSTICK_TOKEN. A
newer accepted version that is not published yet stays. Nothing is written if any of it fails. No
code is imported."""


def add_commands(subparsers: Subparsers, common: argparse.ArgumentParser) -> None:
    """Register `push` and `pull`."""
    parser = add_command(
        subparsers,
        common,
        "push",
        run=_push,
        purpose="publish the accepted contracts",
        details=_PUSH_DETAILS,
        examples=["push", 'push search --reviewer grace --reason "callers were asked"'],
    )
    parser.add_argument(
        "tools", metavar="TOOL", nargs="*", help="a name, or as much of its end as is unique"
    )
    parser.add_argument(
        "--reviewer", metavar="NAME", help="who signs off changes that need a review"
    )
    parser.add_argument("--reason", metavar="TEXT", help="why the reviewer signs them off")
    parser = add_command(
        subparsers,
        common,
        "pull",
        run=_pull,
        purpose="take published contracts into the lockfile",
        details=_PULL_DETAILS,
        examples=["pull", "pull shop.tools.search", "pull shop.tools.search@1.2.0"],
    )
    parser.add_argument(
        "tools",
        metavar="NAME[@VERSION]",
        nargs="*",
        type=_wanted,
        help="a tool's full name, and its version if not the newest",
    )


# --- push -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of one entry; without a publication and an error, it was not sent."""

    entry: Entry
    publication: "Publication | None" = None
    error: Refusal | Outage | None = None

    @property
    def outcome(self) -> str:
        """Say it in a word."""
        if self.publication is not None:
            return "published" if self.publication.is_new else "already there"
        if self.error is None:
            return "not sent"
        return "refused" if isinstance(self.error, Refusal) else "unreachable"

    def to_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        told: dict[str, Json] = {
            "name": self.entry.name,
            "version": self.entry.version,
            "outcome": self.outcome.replace(" ", "_"),
            "contract_digest": self.entry.hashes.contract_digest,
        }
        if self.publication is not None:
            told["equivalent_to"] = [*self.publication.equivalent_to]
            told["warnings"] = [dict(each) for each in self.publication.warnings]
        if self.error is not None:
            told |= {"code": self.error.code, "detail": self.error.detail}
            told |= {"pointer": self.error.pointer, "facts": self.error.facts}
        return told


async def push(
    client: "AsyncClient",
    entries: Sequence[Entry],
    *,
    reviewer: str | None = None,
    reason: str | None = None,
) -> list[Pushed]:
    """Publish each entry; only a registry that cannot be reached ends it early."""
    done: list[Pushed] = []
    for entry in entries:
        try:
            found = await client.publish(entry.document, reviewer=reviewer, reason=reason)
        except Refusal as refusal:
            done.append(Pushed(entry, error=refusal))
        except Outage as outage:
            done.append(Pushed(entry, error=outage))
            break
        else:
            done.append(Pushed(entry, found))
    return done + [Pushed(entry) for entry in entries[len(done) :]]


def _push(arguments: argparse.Namespace, context: Context) -> int:
    if (arguments.reviewer is None) != (arguments.reason is None):
        raise WrongUsage("A review is --reviewer and --reason together")
    lockfile = context.lockfile(arguments.lockfile)
    entries = _checked(lockfile).entries
    names = {select(given, entries) for given in arguments.tools} or entries.keys()
    if not names:
        raise WrongUsage(f"{plain(str(lockfile))} holds no tools: there is nothing to publish")
    chosen = [entries[name] for name in sorted(names)]

    review = {"reviewer": arguments.reviewer, "reason": arguments.reason}
    found = _conversed(context, lambda client: push(client, chosen, **review))
    if arguments.json:
        context.say_json({"lockfile": str(lockfile), "tools": [each.to_json() for each in found]})
    else:
        context.say(*_pushed_lines(found))
    return _exit_code(found)


def _exit_code(found: Iterable[Pushed]) -> ExitCode:
    errors = [each.error for each in found if each.error is not None]
    if any(isinstance(error, Outage) for error in errors):
        return ExitCode.UNREACHABLE
    return ExitCode.DIFFERS if errors else ExitCode.DONE


def _pushed_lines(found: Sequence[Pushed]) -> Iterator[str]:
    rows = [(each.outcome, f"{each.entry.name}@{each.entry.version}") for each in found]
    for line, each in zip(columns(rows), found, strict=True):
        yield line
        yield from (f"    {plain(remark)}" for remark in _remarks(each))


def _remarks(pushed: Pushed) -> Iterator[str]:
    if pushed.publication is not None:
        if pushed.publication.equivalent_to:
            yield f"It is proven to mean the same as {', '.join(pushed.publication.equivalent_to)}."
        for warning in pushed.publication.warnings:
            yield f"Warning: {warning.get('detail')}"
    if pushed.error is not None:
        yield f"{pushed.error.detail} [{pushed.error.code}]"
        for flow, told in _COUNTER_EXAMPLES.items():
            match pushed.error.facts.get(flow):
                case {"witness": {"value": value}}:
                    yield f"{told}: {plain(value)}"
                case _:
                    pass


# --- pull -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool that is named; without a version, the newest that new work may use is meant."""

    name: str
    version: "Version | None" = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """What becomes of one tool of the lockfile.

    Args:
        name: The tool's name.
        before: What the lockfile holds.
        after: What it is to hold; None where it is left as it is.
        level: How grave the change is; None where the tool is left as it is.
        note: Why it is left, or what else a person should know.
    """

    name: str
    before: Entry | None
    after: Entry | None = None
    level: Level | None = None
    note: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        return {
            "name": self.name,
            "level": "left" if self.level is None else self.level.value,
            "accepted_version": None if self.before is None else self.before.version,
            "version": None if self.after is None else self.after.version,
            "contract_digest": None if self.after is None else self.after.hashes.contract_digest,
            "note": self.note or None,
        }


async def pull(
    client: "AsyncClient", lock: Lock, wanted: Sequence[Wanted], *, now: str
) -> list[Pulled]:
    """Return what each tool wanted becomes, or each of the lock's where none is named.

    Args:
        client: The way to the registry.
        lock: What is accepted so far.
        wanted: The tools.
        now: The time of acceptance, as `2026-11-30T10:00:00Z`.

    Raises:
        ToolContractNotFound: A tool is named that the registry does not have to give.
        ToolSchemaDrift: What came back is not what the registry lists.
    """
    published = await _published(client, [each.name for each in wanted])
    found: list[Pulled] = []
    for each in wanted or [Wanted(name) for name in sorted(lock.entries)]:
        before = lock.entries.get(each.name)
        try:
            chosen = choose(each, before, published.get(each.name, []))
        except ToolContractNotFound as refusal:
            if wanted:
                raise
            found.append(Pulled(each.name, before, note=refusal.detail))
        else:
            found.append(await _pulled(client, each.name, before, chosen, now))
    return found


def choose(
    wanted: Wanted, before: Entry | None, published: Sequence["PublishedVersion"]
) -> "PublishedVersion | None":
    """Return the published version that a tool becomes; None where the lockfile is ahead of it.

    An accepted version that is higher and not published yet would be lost, so it has to be given up
    by naming another one.

    Raises:
        ToolContractNotFound: The version wanted is not there, or none that new work may use is.
    """
    from tallystick.tool_contract import Version

    if wanted.version is not None:
        for each in published:
            if each.version == wanted.version:
                return each
        raise ToolContractNotFound(f"There is no contract {wanted.name}@{wanted.version}.")
    newest = max(filter(_is_open, published), key=attrgetter("version"), default=None)
    if newest is None:
        had = "no version that new work may use" if published else "no such tool"
        raise ToolContractNotFound(f"The registry has {had}: {wanted.name}.")
    accepted = newest.version if before is None else Version.parse(before.version)
    is_ahead = accepted > newest.version and accepted not in {each.version for each in published}
    return None if is_ahead else newest


async def _published(
    client: "AsyncClient", names: Sequence[str]
) -> Mapping[str, list["PublishedVersion"]]:
    """Return the published versions of the tools named, or of all, by name."""
    lists = [await client.contracts(name) for name in names or [None]]
    versions: dict[str, list[PublishedVersion]] = {}
    for each in chain.from_iterable(lists):
        versions.setdefault(each.name, []).append(each)
    return versions


async def _pulled(
    client: "AsyncClient",
    name: str,
    before: Entry | None,
    chosen: "PublishedVersion | None",
    now: str,
) -> Pulled:
    if chosen is None:
        return Pulled(name, before, note="Its accepted version is not published yet.")
    if before is not None and before.hashes.contract_digest == chosen.contract_digest:
        return Pulled(name, before, before, Level.UNCHANGED, _standing(chosen))
    contract = (await client.contract(name, str(chosen.version))).contract
    if contract.name != name or contract.contract_digest != chosen.contract_digest:
        raise ToolSchemaDrift(
            f"What came for {name}@{chosen.version} has not the digest that the registry lists.",
            facts={"listed": chosen.contract_digest, "received": contract.contract_digest},
        )
    after = Entry(contract.document, now, None if before is None else before.source)
    level = drift_of(name, before, contract.document).level
    return Pulled(name, before, after, level, _standing(chosen))


def _is_open(version: "PublishedVersion") -> bool:
    from tallystick.resolution import Lifecycle

    return version.state in (Lifecycle.ACTIVE, Lifecycle.DEPRECATED) and not version.suspended


def _standing(version: "PublishedVersion") -> str:
    """Say what keeps new work from a version, or soon will; nothing of one that is active."""
    from tallystick.resolution import Lifecycle

    if version.suspended:
        return "It is suspended."
    return "" if version.state == Lifecycle.ACTIVE else f"It is {version.state.lower()}."


def _pull(arguments: argparse.Namespace, context: Context) -> int:
    wanted: list[Wanted] = arguments.tools
    if len({each.name for each in wanted}) < len(wanted):
        raise WrongUsage("A tool is named twice")
    lockfile = context.lockfile(arguments.lockfile)
    lock = _checked(lockfile)
    if not wanted and not lock.entries:
        raise WrongUsage(f"{plain(str(lockfile))} holds no tools: name those to pull")

    found = _conversed(context, lambda client: pull(client, lock, wanted, now=context.now()))
    taken = [each.after for each in found if each.after not in (None, each.before)]
    if taken:
        change(lockfile, lambda latest: reduce(Lock.with_entry, taken, latest))
    if arguments.json:
        context.say_json({"lockfile": str(lockfile), "tools": [each.to_json() for each in found]})
    else:
        context.say(*columns([_pulled_cells(each) for each in found]))
        context.say(f"{count(len(taken), 'contract')} taken into {plain(str(lockfile))}.")
    return ExitCode.DONE


def _pulled_cells(pulled: Pulled) -> tuple[str, str, str, str]:
    before, after = (each and each.version for each in (pulled.before, pulled.after))
    step = version_step(before, after)
    return pulled.level or "left", pulled.name, step, pulled.note


def _wanted(text: str) -> Wanted:
    from tallystick.tool_contract import Version

    name, at, version = text.partition("@")
    if not name:
        raise argparse.ArgumentTypeError(f"{plain(text)!r} is not of the form NAME[@VERSION].")
    try:
        return Wanted(name, Version.parse(version) if at else None)
    except InvalidContract as fault:
        raise argparse.ArgumentTypeError(f"{plain(text)!r}: {fault.detail}") from None


# --- both -----------------------------------------------------------------------------------------


def _checked(lockfile: Path) -> Lock:
    """Return what the lockfile holds, if every entry is what was accepted."""
    lock = read(lockfile)
    check_hashes(lock, name=str(lockfile))
    return lock


def _conversed(context: Context, talk: "Callable[[AsyncClient], Coroutine[Any, Any, T]]") -> T:
    """Open the way to the registry, and return what came of talking to it."""
    import asyncio

    async def converse() -> T:
        async with _connection(context) as client:
            return await talk(client)

    return asyncio.run(converse())


def _connection(context: Context) -> "AbstractAsyncContextManager[AsyncClient]":
    if context.connect is not None:
        return context.connect()
    from tallystick.client import AsyncClient

    try:
        return AsyncClient(timeout_seconds=REQUEST_SECONDS_MAX, retry_seconds=RETRY_SECONDS)
    except (InvalidRequest, Unauthenticated) as refusal:
        raise WrongUsage(
            "Set TALLYSTICK_URL to the registry, as http(s)://host[:port], and TALLYSTICK_TOKEN to"
            " a token for it"
        ) from refusal
