"""Effects: what was called, how it ended, and what a person decides where nobody knows."""

import time
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final

import typer

from cli import quarantine_views, views
from cli.command import Invocation, ReasonOption, command
from cli.connection import JsonObject
from cli.render import View
from ledger.state import State

app = typer.Typer(no_args_is_help=True, help="What was called, and how it ended.")

LIMIT_MAX: Final = 500

EffectArgument = Annotated[
    str, typer.Argument(metavar="EFFECT_ID", help="As `registry effects list` shows it.")
]


EvidenceOption = Annotated[str, typer.Option(help="What it rests on: a reference, a document.")]


class Decision(StrEnum):
    """What a person may decide of a quarantined effect."""

    SUCCEEDED = State.SUCCEEDED
    FAILED = State.FAILED
    ABANDONED = State.ABANDONED
    RETRYABLE = State.RETRYABLE


class Seen(StrEnum):
    """What a person may have seen at the provider."""

    APPLIED = "applied"
    ABSENT = "absent"
    REJECTED = "rejected"
    IN_PROGRESS = "in_progress"
    CONTRADICTS = "contradicts"


async def act(invocation: Invocation, effect: str, what: str, body: JsonObject, view: View) -> None:
    """Do something with an effect, and show what came of it."""
    async with invocation.connect() as api:
        answer = await api.post("effects", effect, what, body=body)
    invocation.show(answer, view)


@app.command("list")
@command()
async def list_effects(
    invocation: Invocation,
    state: Annotated[
        State | None,
        typer.Option(case_sensitive=False, help="Only effects in this state, open or closed."),
    ] = None,
    only_open: Annotated[
        bool, typer.Option("--open/--all", help="Only what is not closed, or everything.")
    ] = True,
    run: Annotated[str | None, typer.Option(help="Only this run's.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only calls of this tool.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="The most to list.")] = 50,
    after: Annotated[
        str | None, typer.Option(help="Go on where the last list said that there is more.")
    ] = None,
) -> None:
    """List effects, those that are open unless told otherwise."""
    async with invocation.connect() as api:
        answer = await api.get(
            "effects",
            state=state,
            open=(only_open and state is None) or None,
            run=run,
            tool=tool,
            limit=limit,
            after=after,
        )
    invocation.show(answer, views.effects)


@app.command()
@command()
async def show(invocation: Invocation, effect: EffectArgument) -> None:
    """Show one effect: its state and outcome, and how it came to them."""
    async with invocation.connect() as api:
        answer = await api.get("effects", effect)
    invocation.show(answer, views.effect)


@app.command()
@command()
async def resolve(
    invocation: Invocation,
    effect: EffectArgument,
    to: Annotated[Decision, typer.Option(case_sensitive=False, help="What is decided.")],
    reason: ReasonOption,
    evidence: EvidenceOption,
    by: Annotated[
        str | None,
        typer.Option(help="Who decides: the principal of your token. Another one is refused."),
    ] = None,
) -> None:
    """Decide a quarantined effect, on evidence. Where it takes two people, the first proposes."""
    body = {"to": to, "reason": reason, "evidence": evidence, "by": by}
    await act(invocation, effect, "resolve", body, quarantine_views.decided)


@app.command()
@command()
async def retry(
    invocation: Invocation,
    effect: EffectArgument,
    reason: ReasonOption,
    evidence: Annotated[
        str | None, typer.Option(help="What it rests on, where it rests on anything.")
    ] = None,
) -> None:
    """Let a worker send a quarantined effect again, on its recorded contract and no other."""
    body = {"reason": reason} | ({"evidence": evidence} if evidence is not None else {})
    await act(invocation, effect, "retry", body, quarantine_views.decided)


@app.command()
@command()
async def evidence(
    invocation: Invocation,
    effect: EffectArgument,
    answer: Annotated[Seen, typer.Option(help="What the provider says of it.")],
    detail: Annotated[str, typer.Option(help="What you looked at. It is kept for ever.")],
    observed_at: Annotated[
        str | None,
        typer.Option(help="When you saw it, as in 2026-01-02T03:04:05Z; now, if not said."),
    ] = None,
    provider_reference: Annotated[
        str | None, typer.Option(help="The provider's own name for what it has.")
    ] = None,
) -> None:
    """Say what the provider was seen to have. What that settles, the reconciler settles."""
    seen = observed_at or datetime.fromtimestamp(time.time(), UTC).isoformat()
    body = {"answer": answer, "observed_at": seen, "detail": detail}
    body |= {"provider_reference": provider_reference} if provider_reference is not None else {}
    await act(invocation, effect, "evidence", body, views.effect)


@app.command()
@command()
async def cancel(invocation: Invocation, effect: EffectArgument, reason: ReasonOption) -> None:
    """Cancel an effect that nobody has begun."""
    await act(invocation, effect, "cancel", {"reason": reason}, views.effect)
