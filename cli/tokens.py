"""API tokens of the tenant: made and shown once, recognised by their prefix, rotated, revoked."""

import re
from typing import Annotated, Final

import typer

from cli import views
from cli.command import Invocation, command
from kernel.roles import Role

app = typer.Typer(no_args_is_help=True, help="Who may ask this tenant's service, and for what.")

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> int:
    """Read a time such as `90d`, `12h`, `30m` or `45s` as seconds. Raises typer.BadParameter."""
    found = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no time such as 90d, 12h, 30m or 45s.")
    return int(found[1]) * _SECONDS[found[2]]


TokenArgument = Annotated[str, typer.Argument(metavar="ID", help="As `tokens list` shows it.")]


@app.command()
@command()
async def create(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="What the token is called.")],
    roles: Annotated[list[Role], typer.Option("--role", help="What it may do; give several.")],
    principal: Annotated[
        str | None, typer.Option(help="Whom it speaks for: its name, if not said.")
    ] = None,
    expires_in: Annotated[
        int | None,
        typer.Option(parser=duration, metavar="TIME", help="When it ends, as 90d or 12h."),
    ] = None,
) -> None:
    """Make a token. It is shown once, and only its hash is kept."""
    body = {
        "name": name,
        "roles": list(map(str, roles)),
        "principal": principal,
        "expires_in_seconds": expires_in,
    }
    async with invocation.connect() as api:
        answer = await api.post("tokens", body=body)
    invocation.show(answer, views.token)


@app.command("list")
@command()
async def list_tokens(
    invocation: Invocation,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that are revoked or have expired.")
    ] = False,
) -> None:
    """List the tokens: whose they are, until when, and when they were last used."""
    async with invocation.connect() as api:
        answer = await api.get("tokens", all=everything)
    invocation.show(answer, views.tokens)


@app.command()
@command()
async def revoke(invocation: Invocation, token_id: TokenArgument) -> None:
    """End a token, everywhere within a few seconds."""
    async with invocation.connect() as api:
        answer = await api.post("tokens", token_id, "revoke", body={})
    invocation.show(answer, views.token)


@app.command()
@command()
async def rotate(
    invocation: Invocation,
    token_id: TokenArgument,
    overlap: Annotated[
        int,
        typer.Option(parser=duration, metavar="TIME", help="How long the old one still works."),
    ] = "1h",  # pyright: ignore[reportArgumentType] - Typer parses it
) -> None:
    """Make a token's successor, and let the old one expire."""
    async with invocation.connect() as api:
        answer = await api.post("tokens", token_id, "rotate", body={"overlap_seconds": overlap})
    invocation.show(answer, views.token)
