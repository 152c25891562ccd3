"""The service on this machine: prepare it, serve it, reconcile, watch it recover."""

import sys
from contextlib import redirect_stdout
from typing import Annotated

import typer

from cli import views
from cli.command import NOWHERE, ON_THIS_MACHINE, Invocation, command

app = typer.Typer()


@app.command(rich_help_panel="Service")
@command(ON_THIS_MACHINE)
async def init(invocation: Invocation) -> None:
    """Prepare the database and the admin token; it is safe to do again."""
    from server.home import admin_token_file
    from server.service import opened

    settings = invocation.place.settings()
    async with opened(settings):
        token_file = admin_token_file(settings.home)
        answer = {
            "home": str(settings.home),
            "database": _address(settings.database_url),
            "token_file": str(token_file) if token_file.exists() else None,
        }
    invocation.show(answer, views.prepared)


@app.command(rich_help_panel="Service")
@command(ON_THIS_MACHINE)
def serve(
    invocation: Invocation,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="The port.")] = None,
    no_reconcile: Annotated[
        bool, typer.Option("--no-reconcile", help="Leave that to `registry reconcile`.")
    ] = False,
) -> None:
    """Serve the HTTP API, and reconcile, until stopped."""
    from server import app as server

    given = {name: value for name, value in {"host": host, "port": port}.items() if value}
    settings = invocation.place.settings().model_copy(update=given)
    invocation.show(
        {"host": settings.host, "port": settings.port, "reconcile": not no_reconcile},
        views.nothing,
    )
    with redirect_stdout(sys.stderr):
        server.serve(settings, reconcile=not no_reconcile)


@app.command(rich_help_panel="Service")
@command(ON_THIS_MACHINE)
def reconcile(invocation: Invocation) -> None:
    """Reconcile until stopped: expired leases, unknown outcomes, drained rollouts."""
    from server import worker

    settings = invocation.place.settings()
    invocation.show({"home": str(settings.home)}, views.reconciling)
    with redirect_stdout(sys.stderr):
        worker.run(settings)


@app.command(rich_help_panel="Service")
@command(NOWHERE)
def demo(
    invocation: Invocation,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the demo's data.")] = False,
) -> int:
    """Watch a worker crash in the middle of a call, and the ledger find out what happened."""
    from cli import demo

    return demo.run(json_output=invocation.output.as_json, keep=keep)


def _address(database_url: str | None) -> str:
    """Name the database without its password."""
    if database_url is None:
        return "embedded PostgreSQL, in the home folder"
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(database_url)
    return f"{parts.get('dbname', '')} on {parts.get('host', 'this machine')}"
