"""Sharing: let other tenants use a version, accept what they share, and take either back."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from cli import views
from cli.command import Invocation, ToolVersion, ToolVersionArgument, command
from cli.connection import JsonObject

app = typer.Typer()

_PANEL: Final = "Access"
_COLUMNS: Final = {
    "tenant": "Shared with",
    "shared_at": "Since",
    "shared_by": "By",
    "revoked_at": "Until",
}

_OFFERED: Final = {
    "owner": "Shared by",
    "name": "Tool",
    "version": "Version",
    "accepted_at": "Accepted",
    "revoked_at": "Taken back",
}

TenantArgument = Annotated[str, typer.Argument(help="The other tenant's name.")]
OwnerArgument = Annotated[str, typer.Argument(help="The name of the tenant that shares it.")]


@app.command(rich_help_panel=_PANEL)
@command()
async def share(invocation: Invocation, tool: ToolVersionArgument, tenant: TenantArgument) -> None:
    """Offer a version to another tenant, to use under a credential of its own once it accepts."""
    async with invocation.connect() as api:
        answer = await api.post("contracts", *tool, "shares", body={"tenant": tenant})
    invocation.show(answer, views.fields)


@app.command(rich_help_panel=_PANEL)
@command()
async def unshare(
    invocation: Invocation,
    tool: ToolVersionArgument,
    tenant: TenantArgument,
    reason: Annotated[str | None, typer.Option(help="Why. It is kept for ever.")] = None,
) -> None:
    """Let another tenant plan nothing new on a version; what it has open there drains."""
    async with invocation.connect() as api:
        path = ("contracts", *tool, "shares", tenant, "revoke")
        answer = await api.post(*path, body={"reason": reason})
    invocation.show(answer, views.fields)


@app.command(rich_help_panel=_PANEL)
@command()
async def shares(invocation: Invocation, tool: ToolVersionArgument) -> None:
    """List the tenants that a version is shared with, or was."""
    async with invocation.connect() as api:
        answer = await api.get("contracts", *tool, "shares")
    invocation.show(answer, _shares)


@app.command(rich_help_panel=_PANEL)
@command()
async def offers(
    invocation: Invocation,
    owner: Annotated[str | None, typer.Option(help="Those of one tenant.")] = None,
) -> None:
    """List the versions that other tenants offer, and what of them is accepted."""
    async with invocation.connect() as api:
        answer = await api.get("shares", owner=owner)
    invocation.show(answer, _offers)


@app.command(rich_help_panel=_PANEL)
@command()
async def accept(invocation: Invocation, tool: ToolVersionArgument, owner: OwnerArgument) -> None:
    """Accept a version that another tenant offers: before that, nothing here leads to it."""
    async with invocation.connect() as api:
        answer = await api.post("shares", "accept", body=_offer(tool, owner))
    invocation.show(answer, views.fields)


@app.command(rich_help_panel=_PANEL)
@command()
async def withdraw(
    invocation: Invocation,
    tool: ToolVersionArgument,
    owner: OwnerArgument,
    reason: Annotated[str | None, typer.Option(help="Why. It is kept for ever.")] = None,
) -> None:
    """Accept a version of another tenant's no longer; what is open on it drains."""
    async with invocation.connect() as api:
        body = {**_offer(tool, owner), "reason": reason}
        answer = await api.post("shares", "withdraw", body=body)
    invocation.show(answer, views.fields)


def _offer(tool: ToolVersion, owner: str) -> JsonObject:
    return {"owner": owner, "name": tool.name, "version": tool.version}


def _offers(answer: JsonObject) -> Sequence[RenderableType]:
    found = views.listing(answer["offers"], _OFFERED)
    return found or [Text("Nobody shares anything with this tenant.")]


def _shares(answer: JsonObject) -> Sequence[RenderableType]:
    found = views.listing(answer["shares"], _COLUMNS)
    return found or [Text("It is shared with nobody.")]
