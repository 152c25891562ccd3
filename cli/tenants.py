"""Tenants, on the service's own machine alone: no route makes one, whoever asks."""

import asyncio
from typing import Annotated

import typer

from cli import views
from cli.command import ON_THIS_MACHINE, Invocation, command
from kernel.roles import Role
from kernel.wire import time_text

app = typer.Typer(no_args_is_help=True, help="The tenants of the service on this machine.")

SlugArgument = Annotated[str, typer.Argument(metavar="TENANT", help="A label such as acme-eu.")]


@app.command()
@command(ON_THIS_MACHINE)
async def create(invocation: Invocation, slug: SlugArgument) -> None:
    """Make a tenant, and show its first admin token once."""
    from server.bootstrap import create_tenant
    from server.service import opened

    async with opened(invocation.place.settings()) as service:
        token = await asyncio.to_thread(create_tenant, service.owner_url, slug)
    invocation.show({"tenant": slug, "roles": [Role.ADMIN], "token": token}, views.token)


@app.command()
@command(ON_THIS_MACHINE)
async def recover(invocation: Invocation, slug: SlugArgument) -> None:
    """Make one more admin token, for a tenant that has lost its own, and show it once."""
    from server.bootstrap import recover_tenant
    from server.service import opened

    async with opened(invocation.place.settings()) as service:
        token = await asyncio.to_thread(recover_tenant, service.owner_url, slug)
    invocation.show({"tenant": slug, "roles": [Role.ADMIN], "token": token}, views.token)


@app.command("list")
@command(ON_THIS_MACHINE)
async def list_tenants(invocation: Invocation) -> None:
    """List the tenants."""
    from server.bootstrap import tenants
    from server.service import opened

    async with opened(invocation.place.settings()) as service:
        found = await asyncio.to_thread(tenants, service.owner_url)
    listed = [{"tenant": one.slug, "created_at": time_text(one.created_at)} for one in found]
    invocation.show({"tenants": listed}, views.tenants)
