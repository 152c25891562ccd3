"""The audit: seals, the keys that sign them, exports, and their verification."""

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import RenderableType
from rich.text import Text

from cli import views
from cli.command import NOWHERE, ExitCode, Invocation, command
from cli.connection import JsonObject
from cli.table import add_row, new_table
from tallystick.edwards import has_prime_order
from tallystick.errors import InvalidRequest
from tallystick.plain import plain

app = typer.Typer(no_args_is_help=True, help="Prove afterwards what happened.")

_DIGEST_FORM = r"sha256:[0-9a-f]{64}"


@app.command()
@command()
async def seals(
    invocation: Invocation,
    before: Annotated[int | None, typer.Option(min=1, help="Those before this number.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many at most.")] = 20,
) -> None:
    """List the seals, newest first: keep the newest digest elsewhere, for `verify --head`."""
    async with invocation.connect() as api:
        answer = await api.get("audit", "seals", before=before, limit=limit)
    invocation.show(answer, _seals)


@app.command()
@command()
async def keys(invocation: Invocation) -> None:
    """List the public keys that sign the seals: keep them elsewhere, for `verify --key`."""
    async with invocation.connect() as api:
        answer = await api.get("audit", "keys")
    invocation.show(answer, _keys)


@app.command()
@command()
async def export(
    invocation: Invocation,
    file: Annotated[
        Path | None,
        typer.Argument(dir_okay=False, help="Where to write it; standard output otherwise."),
    ] = None,
) -> None:
    """Write every seal and every record to a file that `verify` checks."""
    async with invocation.connect() as api:
        if file is None:
            await api.download("audit", "export", into=sys.stdout.buffer)
            return
        with _written_whole(file) as target:
            await api.download("audit", "export", into=target)
    invocation.show({"file": str(file), "bytes": file.stat().st_size}, views.fields)


@app.command()
@command(NOWHERE)
def verify(
    invocation: Invocation,
    file: Annotated[
        typer.FileBinaryRead, typer.Argument(help="The export; - reads it from stdin.")
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(help="A public key to trust, as `keys` tells it; may be given again."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(help="The digest of a seal that was kept elsewhere, as `seals` tells it."),
    ] = None,
) -> ExitCode:
    """Check an export, without the service: 0 verified, 1 not, 2 no export."""
    from audit.export import UnreadableExport, read_lines
    from audit.verification import verify

    trusted = [_public_key(text) for text in key or ()]
    try:
        report = verify(read_lines(file), trusted=trusted, head=_digest(head))
    except UnreadableExport as fault:
        invocation.output.fail(
            InvalidRequest(f"This is no whole export: {fault}", facts={"line": fault.line})
        )
        return ExitCode.USAGE
    invocation.show(report.to_json(), _report)
    return ExitCode.DONE if report.is_verified else ExitCode.REFUSED


def _public_key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:  # noqa: PLR2004 - RFC 8032
        raise typer.BadParameter("A public key has 64 hexadecimal digits.", param_hint="--key")
    if not has_prime_order(key):
        raise typer.BadParameter("No Ed25519 key pair has this public key.", param_hint="--key")
    return key


def _digest(text: str | None) -> str | None:
    import re

    if text is not None and not re.fullmatch(_DIGEST_FORM, text):
        raise typer.BadParameter(
            "A digest is sha256: and 64 hexadecimal digits.", param_hint="--head"
        )
    return text


@contextmanager
def _written_whole(file: Path) -> Generator[BinaryIO]:
    """Open a file for its owner alone; it takes its name when all of it is written."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            yield target
        draft.replace(file)
    except OSError as fault:
        raise typer.BadParameter(
            f"{file} cannot be written: {fault.strerror}.", param_hint="FILE"
        ) from fault
    finally:
        draft.unlink(missing_ok=True)


# --- what a person sees ---------------------------------------------------------------------------


def _seals(answer: JsonObject) -> Sequence[RenderableType]:
    if not answer["seals"]:
        return [Text("Nothing is sealed yet.")]
    table = new_table("Seal", "Sealed", "Records", "Digest")
    for seal in answer["seals"]:
        when = str(seal["sealed_at"])[:19].replace("T", " ") + "Z"
        add_row(table, seal["number"], when, seal["leaves"], seal["digest"])
    more = answer["next"]
    return [table, Text(f"There are more: --before {plain(more)}")] if more else [table]


def _keys(answer: JsonObject) -> Sequence[RenderableType]:
    table = new_table("Key", "Public key", "")
    for key in answer["keys"]:
        add_row(table, key["key_id"], key["public_key"], "current" if key["is_current"] else "")
    return [table]


def _report(answer: JsonObject) -> Sequence[RenderableType]:
    count = answer["faults_count"]
    verdict = (
        Text("Verified.", "green")
        if answer["is_verified"]
        else Text(f"Not verified: {count} {'fault' if count == 1 else 'faults'}.", "bold red")
    )
    said = {
        "tenant": answer["tenant"],
        "seals": answer["seals"],
        "sealed records": answer["sealed"],
        "not sealed yet": answer["unsealed"],
        "head": answer["head"],
    }
    parts: list[RenderableType] = [verdict, *views.fields(said)]
    if not answer["keys_were_given"]:
        parts.append(
            Text("The keys are the export's own word: give --key with one that was kept elsewhere.")
        )
    if answer["faults"]:
        table = new_table("Line", "Seal", "What", "Why")
        for fault in answer["faults"]:
            add_row(
                table, fault["line"], fault["seal"], fault["row"] or fault["code"], fault["detail"]
            )
        parts.append(table)
    if count > len(answer["faults"]):
        parts.append(Text(f"{count - len(answer['faults'])} more are not shown."))
    return parts
