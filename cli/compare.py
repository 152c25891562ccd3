"""Compare: what a change does to those who stay with what it changes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import comparison
from cli.command import ExitCode, Invocation, command, tool_version
from tallystick.canonical import Json, MalformedJson
from tallystick.compatibility.verdict import Answer, Producer
from tallystick.document import DOCUMENT_BYTES_MAX, parse_document
from tallystick.errors import InvalidContract, Refusal

if TYPE_CHECKING:
    from tallystick.compatibility.contracts.documents import BareSchema
    from tallystick.tool_contract import Contract

app = typer.Typer()


@app.command(rich_help_panel="Contracts")
@command()
async def compare(
    invocation: Invocation,
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="A contract or schema file, or NAME@VERSION.")
    ],
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="The same, of what comes after it or beside it.")
    ],
    producer: Annotated[
        Producer,
        typer.Option(help="Who writes: one who sends only what the schema declares, or anyone."),
    ] = Producer.DECLARED,
) -> int:
    """Say whether old calls and new results stay good, with a proof or a counter-example.

    Ends with 0 if both are proven, else with 1. Two files are compared without a service.
    """
    first, second = _given(old), _given(new)
    if isinstance(first, _File) and isinstance(second, _File):
        from tallystick.compatibility.contracts.documents import compare_documents

        answer = compare_documents(first.content, second.content, producer)
    else:
        body = {"old": _sent(first), "new": _sent(second), "producer": producer.value}
        async with invocation.connect() as api:
            answer = await api.post("compare", body=body)
    invocation.show(answer, comparison.view)
    return ExitCode.DONE if answer["verdict"] == Answer.COMPATIBLE else ExitCode.REFUSED


@dataclass(frozen=True, slots=True)
class _File:
    """A file that was read: as it is written, and as what it is."""

    document: Json
    content: "Contract | BareSchema"


def _given(text: str) -> _File | str:
    """Read the file of that name, or else take the text for a NAME@VERSION."""
    file = Path(text)
    if file.is_file():
        return _read(file)
    if "@" not in text:
        raise typer.BadParameter(f"{text!r} is no file, and not of the form NAME@VERSION.")
    tool_version(text)
    return text


def _read(file: Path) -> _File:
    from tallystick.compatibility.contracts.documents import read_document

    written = "json" if file.suffix.lower() == ".json" else "yaml"
    try:
        with file.open("rb") as stream:
            text = stream.read(DOCUMENT_BYTES_MAX + 1).decode()
        document = parse_document(text, format=written)
        return _File(document, read_document(document))
    except (MalformedJson, UnicodeDecodeError) as fault:
        raise InvalidContract(f"{file}: {fault}") from fault
    except OSError as fault:
        raise typer.BadParameter(f"{file} cannot be read: {fault.strerror}.") from fault
    except Refusal as refusal:
        raise type(refusal)(
            f"{file}: {refusal.detail}", pointer=refusal.pointer, facts=refusal.facts
        ) from refusal


def _sent(given: _File | str) -> Json:
    return given.document if isinstance(given, _File) else given
