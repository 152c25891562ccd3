"""`list` and `show`: what the lockfile holds."""

import argparse
import json
from typing import Final

from tallystick.canonical import Json
from tallystick.commands.context import Context
from tallystick.commands.exit_code import ExitCode
from tallystick.commands.options import Subparsers, add_command
from tallystick.commands.selection import select
from tallystick.commands.terminal import columns
from tallystick.lockfile.entry import Entry
from tallystick.lockfile.storage import read
from tallystick.plain import plain

_HEADER: Final = ("TOOL", "VERSION", "EFFECT CLASS", "HASH", "ACCEPTED AT")
_HASH_DIGITS: Final = 12


def add_commands(subparsers: Subparsers, common: argparse.ArgumentParser) -> None:
    """Register `list` and `show`."""
    add_command(
        subparsers,
        common,
        "list",
        run=_list,
        purpose="list the accepted tools",
        details="List the tools that the lockfile holds. No code is imported.",
        examples=["list", "list --json"],
    )
    parser = add_command(
        subparsers,
        common,
        "show",
        run=_show,
        purpose="show an accepted contract",
        details="Write the contract that the lockfile accepts for one tool, as JSON.",
        examples=["show shop.tools.search", "show search"],
    )
    parser.add_argument(
        "tool", metavar="TOOL", help="its name, or as much of the name's end as is unique"
    )


def _list(arguments: argparse.Namespace, context: Context) -> int:
    lockfile = context.lockfile(arguments.lockfile)
    entries = sorted(read(lockfile).entries.values(), key=lambda entry: entry.name)
    if arguments.json:
        context.say_json({"lockfile": str(lockfile), "tools": [_summary(each) for each in entries]})
    elif entries:
        context.say(*columns([_HEADER, *map(_cells, entries)]))
    else:
        context.say(f"{plain(str(lockfile))} holds no tools.")
    return ExitCode.DONE


def _summary(entry: Entry) -> dict[str, Json]:
    return {
        "name": entry.name,
        "version": entry.version,
        "effect_class": _effect_class(entry),
        "contract_digest": entry.hashes.contract_digest,
        "schema_hash": entry.hashes.schema_hash,
        "prompt_hash": entry.hashes.prompt_hash,
        "accepted_at": entry.accepted_at,
        "source": entry.source,
    }


def _cells(entry: Entry) -> tuple[str, ...]:
    short = entry.hashes.contract_digest.removeprefix("sha256:")[:_HASH_DIGITS]
    return entry.name, entry.version, _effect_class(entry), short, entry.accepted_at


def _effect_class(entry: Entry) -> str:
    # The contract is not judged here, so that it may be one without.
    return str(entry.document.get("effect_class", ""))


def _show(arguments: argparse.Namespace, context: Context) -> int:
    entries = read(context.lockfile(arguments.lockfile)).entries
    name = select(arguments.tool, entries)
    context.say(json.dumps(entries[name].document, indent=2, sort_keys=True))
    return ExitCode.DONE
