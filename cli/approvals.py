"""Approvals: what waits for a person, and the person's word."""

import time
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from cli import approval_views
from cli.command import Invocation, ReasonOption, command
from cli.effects import LIMIT_MAX
from ledger.approval import Status

app = typer.Typer(no_args_is_help=True, help="What waits for a person, and the person's word.")

ApprovalArgument = Annotated[
    str, typer.Argument(metavar="APPROVAL_ID", help="As `registry approvals list` shows it.")
]


@app.command("list")
@command()
async def list_approvals(
    invocation: Invocation,
    status: Annotated[
        Status | None,
        typer.Option(case_sensitive=False, help="Only those that stand so; pending unless told."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are decided.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="The most to list.")] = 50,
    after: Annotated[
        str | None, typer.Option(help="Go on where the last list said that there is more.")
    ] = None,
) -> None:
    """List what waits for a person, the longest waiting first."""
    if everything and status is not None:
        raise typer.BadParameter("Say --status STATUS or --all, not both.")
    wanted = None if everything else status or Status.PENDING
    async with invocation.connect() as api:
        answer = await api.get("approvals", status=wanted, limit=limit, after=after)
    invocation.show(answer, partial(approval_views.approvals, now=_now()))


@app.command()
@command()
async def show(invocation: Invocation, approval: ApprovalArgument) -> None:
    """Show what a person is asked to approve, why, and how it stands."""
    async with invocation.connect() as api:
        answer = await api.get("approvals", approval)
    invocation.show(answer, partial(approval_views.approval, now=_now()))


@app.command()
@command()
async def approve(
    invocation: Invocation,
    approval: ApprovalArgument,
    reason: Annotated[str | None, typer.Option(help="Why. It is kept for ever.")] = None,
) -> None:
    """Let a call run, once, just as it is shown. Not your own: two people have to agree."""
    async with invocation.connect() as api:
        answer = await api.post("approvals", approval, "approve", body={"reason": reason})
    invocation.show(answer, partial(approval_views.decided, now=_now()))


@app.command()
@command()
async def reject(invocation: Invocation, approval: ApprovalArgument, reason: ReasonOption) -> None:
    """Refuse a call for good. Not your own: you would cancel that."""
    async with invocation.connect() as api:
        answer = await api.post("approvals", approval, "reject", body={"reason": reason})
    invocation.show(answer, partial(approval_views.decided, now=_now()))


def _now() -> datetime:
    """Return this machine's time, which only says how long there is left."""
    return datetime.fromtimestamp(time.time(), UTC)
