"""Rollouts: take a version away when nothing refers to it, or open it again."""

import asyncio
import time
from typing import Annotated, Final

import typer

from cli import views
from cli.command import Invocation, ToolVersion, ToolVersionArgument, command
from cli.connection import Api, JsonObject
from tallystick.errors import ContractInUse

app = typer.Typer()

POLL_SECONDS_FIRST: Final = 0.1
POLL_SECONDS_MAX: Final = 2.0

ReasonOption = Annotated[str | None, typer.Option(help="Why. It is kept for ever.")]


@app.command(rich_help_panel="Rollouts")
@command()
async def retire(
    invocation: Invocation,
    tool: ToolVersionArgument,
    reason: ReasonOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is drained.")] = False,
    longest: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            min=0,
            metavar="SECONDS",
            help="The longest to wait; for ever if not given.",
        ),
    ] = None,
) -> None:
    """Retire a version, or say what still refers to it.

    Refused or not, the version takes no new work from now on; `registry rollback` reopens it.
    """
    if longest is not None and not wait:
        raise typer.BadParameter("--timeout says how long to --wait.")
    async with invocation.connect() as api:
        if wait:
            answer = await _drained(invocation, api, tool, reason, longest)
        else:
            answer = await _retire(api, tool, reason)
    invocation.show(answer, views.lifecycle)


@app.command(rich_help_panel="Rollouts")
@command()
async def rollback(
    invocation: Invocation, tool: ToolVersionArgument, reason: ReasonOption = None
) -> None:
    """Open a version again that was closed and is not yet retired."""
    async with invocation.connect() as api:
        answer = await api.post("rollouts", *tool, "rollback", body={"reason": reason})
    invocation.show(answer, views.lifecycle)


async def _retire(api: Api, tool: ToolVersion, reason: str | None) -> JsonObject:
    return await api.post("rollouts", *tool, "retire", body={"reason": reason})


async def _drained(
    invocation: Invocation, api: Api, tool: ToolVersion, reason: str | None, longest: float | None
) -> JsonObject:
    """Ask again until nothing refers to the version; the last refusal is the timeout's answer."""
    ends = None if longest is None else time.monotonic() + longest
    pause = POLL_SECONDS_FIRST
    with invocation.output.draining("@".join(tool)) as left:
        while True:
            try:
                return await _retire(api, tool, reason)
            except ContractInUse as refusal:
                if ends is not None and time.monotonic() + pause > ends:
                    raise
                left(views.references(refusal.facts))
            await asyncio.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS_MAX)
