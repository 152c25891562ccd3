"""The quarantine: what waits for a person's decision, what is known of it, and the decision."""

from typing import Annotated

import typer

from cli import quarantine_views, views
from cli.command import Invocation, ReasonOption, command
from cli.effects import LIMIT_MAX, EffectArgument, EvidenceOption, act, resolve

app = typer.Typer(no_args_is_help=True, help="What no machine may decide, and what people decide.")


@app.command("list")
@command()
async def list_quarantined(
    invocation: Invocation,
    tool: Annotated[str | None, typer.Option(help="Only calls of this tool.")] = None,
    version: Annotated[str | None, typer.Option(help="Only calls on this version.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="The most to list.")] = 50,
    after: Annotated[
        str | None, typer.Option(help="Go on where the last list said that there is more.")
    ] = None,
) -> None:
    """List what waits for a person, the longest waiting first, and why."""
    async with invocation.connect() as api:
        answer = await api.get("quarantine", tool=tool, version=version, limit=limit, after=after)
    invocation.show(answer, quarantine_views.effects)


@app.command()
@command()
async def show(invocation: Invocation, effect: EffectArgument) -> None:
    """Show what was sent, what is known, what may be decided, and what each choice means."""
    async with invocation.connect() as api:
        answer = await api.get("quarantine", effect)
    invocation.show(answer, quarantine_views.effect)


app.command()(resolve)


@app.command()
@command()
async def abandon(
    invocation: Invocation, effect: EffectArgument, reason: ReasonOption, evidence: EvidenceOption
) -> None:
    """Write an effect off: the record says for ever that nobody knows how it ended."""
    body = {"to": "ABANDONED", "reason": reason, "evidence": evidence}
    await act(invocation, effect, "resolve", body, quarantine_views.decided)


@app.command()
@command()
async def withdraw(invocation: Invocation, effect: EffectArgument, reason: ReasonOption) -> None:
    """Take back what was proposed for an effect that takes two people."""
    await act(invocation, effect, "withdraw", {"reason": reason}, quarantine_views.decided)


@app.command()
@command()
async def migrate(
    invocation: Invocation,
    effect: EffectArgument,
    to: Annotated[str, typer.Option(metavar="VERSION", help="The version to go on with.")],
    reason: ReasonOption,
) -> None:
    """Move work that was never sent to another version: a new effect takes its place."""
    body = {"version": to, "reason": reason}
    await act(invocation, effect, "migrate", body, views.effect)
