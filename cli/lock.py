"""Lock: the library's own command, on the way to the service that every `registry` command has."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cli.command import Invocation, command
from cli.connection import REQUEST_SECONDS_MAX

if TYPE_CHECKING:
    from tallystick import AsyncClient

app = typer.Typer()


@app.command(
    rich_help_panel="Contracts",
    # What comes after the name of a sub-command is not ours to read, and the help is not ours.
    context_settings={
        "allow_interspersed_args": False,
        "help_option_names": [],
        "ignore_unknown_options": True,
    },
)
@command()
def lock(
    invocation: Invocation, arguments: Annotated[list[str] | None, typer.Argument()] = None
) -> int:
    """Check and accept contracts of code in a lockfile; push and pull them."""
    from tallystick.commands.main import main

    given = [*(arguments or ()), *(["--json"] if invocation.output.as_json else ())]
    return main(given, prog="registry lock", connect=partial(_client, invocation))


@asynccontextmanager
async def _client(invocation: Invocation) -> "AsyncGenerator[AsyncClient]":
    """Open the library's client on the service; it asks once, as every `registry` command."""
    import httpx

    from tallystick import AsyncClient

    class Through(httpx.AsyncBaseTransport):
        """Sends by the way that is open already, which may be no network at all."""

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return await http.send(request, stream=True)

    async with invocation.connect() as api:
        http = api.http
        async with AsyncClient(
            str(http.base_url),
            http.headers["Authorization"].removeprefix("Bearer "),
            timeout_seconds=REQUEST_SECONDS_MAX,
            retry_seconds=0,
            transport=Through(),
        ) as client:
            yield client
