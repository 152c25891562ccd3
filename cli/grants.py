"""Grants: who may use which capability."""

from typing import Annotated

import typer

from cli import views
from cli.command import Invocation, command

app = typer.Typer(no_args_is_help=True, help="Who may use which capability.")


@app.command()
@command()
async def add(
    invocation: Invocation,
    principal: Annotated[str, typer.Argument(help="Whose token carries it.")],
    capability: Annotated[
        str, typer.Argument(help="resource:action:scope, as in invoice:write:tenant-42.")
    ],
) -> None:
    """Grant a capability to a principal."""
    body = {"principal": principal, "capability": capability}
    async with invocation.connect() as api:
        answer = await api.post("grants", body=body)
    invocation.show(answer, views.fields)


@app.command()
@command()
async def remove(
    invocation: Invocation,
    principal: Annotated[str, typer.Argument(help="Who holds it.")],
    capability: Annotated[str, typer.Argument(help="As `registry grants list` shows it.")],
) -> None:
    """Take a capability back from a principal."""
    async with invocation.connect() as api:
        await api.delete("grants", principal=principal, capability=capability)
    answer = {"principal": principal, "capability": capability, "granted": False}
    invocation.show(answer, views.fields)


@app.command("list")
@command()
async def list_grants(
    invocation: Invocation,
    principal: Annotated[str | None, typer.Option(help="Only this principal's.")] = None,
) -> None:
    """List the grants."""
    async with invocation.connect() as api:
        answer = await api.get("grants", principal=principal)
    invocation.show(answer, views.grants)
