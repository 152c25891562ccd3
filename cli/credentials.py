"""Credentials: slots with a version, never a secret itself."""

from typing import Annotated

import typer

from cli import views
from cli.command import Invocation, command

app = typer.Typer(no_args_is_help=True, help="The credential slots that calls run under.")

NameArgument = Annotated[str, typer.Argument(help="The slot's name, as contracts write it.")]
ReasonOption = Annotated[str | None, typer.Option(help="Why. It is kept for ever.")]


@app.command()
@command()
async def create(invocation: Invocation, name: NameArgument) -> None:
    """Make a credential slot, at version 1."""
    async with invocation.connect() as api:
        answer = await api.post("credentials", body={"name": name})
    invocation.show(answer, views.fields)


@app.command()
@command()
async def rotate(
    invocation: Invocation,
    name: NameArgument,
    reason: ReasonOption = None,
) -> None:
    """Raise a credential's version: its contracts stop until each is attested.

    A revoked one is in force again under the new version; that needs a reason.
    """
    async with invocation.connect() as api:
        answer = await api.post("credentials", name, "rotate", body={"reason": reason})
    invocation.show(answer, views.fields)


@app.command()
@command()
async def revoke(invocation: Invocation, name: NameArgument, reason: ReasonOption = None) -> None:
    """Take a credential out of force: its contracts stop until it is rotated."""
    async with invocation.connect() as api:
        answer = await api.post("credentials", name, "revoke", body={"reason": reason})
    invocation.show(answer, views.fields)


@app.command("list")
@command()
async def list_credentials(invocation: Invocation) -> None:
    """List the credential slots and their versions."""
    async with invocation.connect() as api:
        answer = await api.get("credentials")
    invocation.show(answer, views.credentials)
