"""Runs: on whose behalf one acts, and its trace."""

from typing import Annotated

import typer

from cli import run_views
from cli.command import Invocation, command
from cli.effects import LIMIT_MAX

app = typer.Typer(no_args_is_help=True, help="On whose behalf a run acts, and its trace.")

RunArgument = Annotated[str, typer.Argument(help="The caller's name for the run.")]


@app.command()
@command()
async def begin(
    invocation: Invocation,
    run: RunArgument,
    subject: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="A fact about on whose behalf it acts, as customer_id=C-1; "
            "KEY:=NUMBER for a whole number. It may be given often.",
        ),
    ],
) -> None:
    """Say on whose behalf a run acts, once and for all."""
    body = {"subject": dict(_member(text) for text in subject)}
    async with invocation.connect() as api:
        answer = await api.put("runs", run, body=body)
    invocation.show(answer, run_views.begun)


@app.command()
@command()
async def show(
    invocation: Invocation,
    run: RunArgument,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="The most to show.")] = 100,
    after: Annotated[
        str | None, typer.Option(help="Go on where the last trace said that there is more.")
    ] = None,
) -> None:
    """Show every call of a run in order: what came of it, and why in truth it was refused."""
    async with invocation.connect() as api:
        answer = await api.get("runs", run, limit=limit, after=after)
    invocation.show(answer, run_views.trace)


def _member(text: str) -> tuple[str, str | int]:
    """Read `KEY=VALUE` or `KEY:=NUMBER`. Raises typer.BadParameter for another form."""
    key, equals, value = text.partition("=")
    is_number = key.endswith(":")
    name = key.removesuffix(":")
    if not (name and equals and value):
        raise typer.BadParameter(f"{text!r} is not of the form KEY=VALUE.")
    if not is_number:
        return name, value
    try:
        return name, int(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no whole number.") from None
