"""The values of the ledger, and the steps between them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from ledger.identity import EffectId
from ledger.state import NEW, State
from ledger.transition import check_step
from tallystick.canonical import Json
from tallystick.effect_class import EffectClass

LISTING: Final = "listing"
"""The origin of an orphan: the provider has it, and it was not recorded when it began.

What the provider does not tell of it is not known, and empty: the caller's names, who planned it,
what it might touch, its credential, and both fingerprints. Its arguments are those that the
contract says how to read, and it was planned no earlier than its id tells.
"""
LOOK_UP: Final = "look_up"
"""The origin of a read of the runtime's own, by which it learns who owns something.

No model asked for it or is shown its result: no policy is asked about it, and it is no prior call,
gives no facts and returns no identifiers.
"""


@dataclass(frozen=True, slots=True)
class Effect:
    """What an effect is. Written once, before anything else of it, and never changed.

    ``arguments`` have every x-sensitive value redacted. Both fingerprints were made under
    ``key_id``. ``policy`` and its revision are those that were in force, None where none was.
    ``supersedes`` is the effect of the same run whose place it took, on another version.
    """

    id: EffectId
    run: str
    identity: str
    idem_key: str | None
    tool: str
    version: str
    contract_id: UUID
    presented_contract_id: UUID
    contract_digest: str
    effect_class: EffectClass
    capabilities: frozenset[str]
    credential_version: int
    principal: str
    origin: str
    arguments: dict[str, Json]
    key_id: str
    request_fingerprint: bytes
    operation_fingerprint: bytes
    planned_at: datetime
    policy: str | None = None
    policy_revision: int | None = None
    supersedes: EffectId | None = None

    @property
    def is_orphan(self) -> bool:
        """Tell whether the provider's listing alone says that there is such an effect."""
        return self.origin == LISTING


@dataclass(frozen=True, slots=True)
class OpenEffect:
    """Where an open effect is.

    ``fence`` is the number of its last event. ``due_at`` is when something is to be done if nothing
    happens: the plan's deadline, the end of a lease, the next look at the provider, the last moment
    for an attempt. ``unaccounted`` counts earlier attempts of which nobody knows whether they took
    effect.
    """

    state: State
    fence: int
    attempt: int
    reason: str
    worker_id: UUID | None = None
    nonce: UUID | None = None
    due_at: datetime | None = None
    deadline_at: datetime | None = None
    first_dispatched_at: datetime | None = None
    unknown_since: datetime | None = None
    unaccounted: int = 0
    checks: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How an effect ended, as far as the step that ends it knows."""

    result: Json = None
    has_result: bool = False
    invalid_result: tuple[str, ...] = ()
    error_code: str | None = None
    error_message: str | None = None
    provider_reference: str | None = None
    evidence_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an effect ended, as it is recorded.

    A later revision takes the place of an earlier one.
    """

    revision: int
    status: State
    fence: int
    ending: Ending
    decided_by: str
    reason: str
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an effect: the event, and what stands after it.

    ``after`` is the open effect, or for a step that closes it the ending.
    """

    transition: str
    from_state: str
    to_state: State
    fence: int
    attempt: int
    actor: str
    reason: str
    at: datetime
    after: OpenEffect | Ending


def worker_actor(worker_id: UUID, principal: str) -> str:
    """Return the name under which a worker's steps are recorded: its own word, and whose token.

    >>> worker_actor(UUID(int=7), "billing")
    'worker:00000000-0000-0000-0000-000000000007 of billing'
    """
    return f"worker:{worker_id} of {principal}"


def first_step(
    transition: str,
    to_state: State,
    *,
    actor: str,
    reason: str,
    at: datetime,
    deadline_at: datetime | None = None,
) -> Step:
    """Return the step that begins an effect."""
    check_step(transition, NEW, to_state)
    due_at = deadline_at if to_state is State.PLANNED else None
    after = OpenEffect(to_state, 0, 0, reason, due_at=due_at, deadline_at=deadline_at)
    return Step(transition, NEW, to_state, 0, 0, actor, reason, at, after)


def step(
    before: OpenEffect,
    transition: str,
    to_state: State,
    *,
    actor: str,
    reason: str,
    at: datetime,
    **changes: Any,  # noqa: ANN401 - the fields of OpenEffect
) -> Step:
    """Return a step from one open state to another. The owner of the old state loses the effect.

    Raises:
        IllegalTransition: The table of transitions has no such step.
    """
    check_step(transition, before.state, to_state)
    cleared = replace(before, worker_id=None, nonce=None, due_at=None)
    fence = before.fence + 1
    after = replace(cleared, state=to_state, fence=fence, reason=reason, **changes)
    return Step(transition, before.state, to_state, fence, after.attempt, actor, reason, at, after)


def last_step(
    before: OpenEffect,
    transition: str,
    status: State,
    *,
    actor: str,
    reason: str,
    at: datetime,
    ending: Ending | None = None,
) -> Step:
    """Return a step that closes an effect. Raises IllegalTransition."""
    check_step(transition, before.state, status)
    assert not status.is_open, "an effect closes in a closed state"
    return Step(
        transition,
        before.state,
        status,
        before.fence + 1,
        before.attempt,
        actor,
        reason,
        at,
        ending or Ending(),
    )


def reopening(
    outcome: Outcome, attempts: Sequence["Attempt"], *, actor: str, reason: str, at: datetime
) -> Step:
    """Return the step that opens a closed effect again, for a person (T12).

    ``attempts`` are all that it has, oldest first. Raises IllegalTransition.
    """
    check_step("T12", outcome.status, State.QUARANTINED)
    after = OpenEffect(
        State.QUARANTINED,
        outcome.fence + 1,
        len(attempts),
        reason,
        first_dispatched_at=attempts[0].dispatched_at if attempts else None,
    )
    return Step(
        "T12",
        outcome.status,
        State.QUARANTINED,
        after.fence,
        after.attempt,
        actor,
        reason,
        at,
        after,
    )


@dataclass(frozen=True, slots=True)
class Event:
    """One line of an effect's history."""

    fence: int
    transition: str
    from_state: str
    to_state: str
    attempt: int
    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """One time that a worker was allowed to send."""

    attempt: int
    fence: int
    worker_id: UUID
    credential_version: int
    dispatched_at: datetime
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class Evidence:
    """One answer to the question what really happened. Every answer is kept."""

    evidence_id: UUID
    fence: int
    source: str
    answer: str
    provider_reference: str | None
    observed_at: datetime
    received_at: datetime
    detail: str


def replay(events: list[Event]) -> tuple[State, int, int]:
    """Return the state, fence and attempt that a whole history leads to.

    Raises:
        IllegalTransition: The history holds a step that the table has not.
        ValueError: The history has a gap, or does not hang together.
    """
    state, fence = NEW, -1
    attempt = 0
    for event in events:
        if event.fence != fence + 1 or event.from_state != state:
            raise ValueError(
                f"Event {event.fence} does not follow event {fence}, which led to {state}."
            )
        to_state = State(event.to_state)
        check_step(event.transition, state, to_state)
        state, fence, attempt = to_state, event.fence, event.attempt
    if fence < 0:
        raise ValueError("There is no event to replay.")
    return State(state), fence, attempt
