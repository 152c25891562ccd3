"""What a provider lists, held against the ledger: whose it may be, and what an orphan is. Pure.

An item is somebody else's word. It names an effect of ours only if its id is one that we can have
made, and where the contract says so only with the key that no other tenant's effect has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import RFC_4122, UUID

from kernel.ids import uuid7_time
from ledger.effect import LISTING, Effect, Step, first_step
from ledger.identity import EffectId, provider_key
from ledger.judgement import is_bound, is_one_of
from ledger.state import State
from tallystick.canonical import MISSING, Json, pointer_split, resolve_pointer
from tallystick.errors import NotFound
from tallystick.provider import EvidenceAnswer, ListingEvidence
from tallystick.schema import redact
from tallystick.tool_contract import Contract

_OFF_SECONDS: Final = 300
"""How far ahead the clock may be that made the id of a run."""
_UUID7: Final = 7
ORPHANED: Final = "the provider lists it, and it was not recorded here"
"""How the reason begins for which an orphan is quarantined."""


class Found(StrEnum):
    """What an item of a listing is to the ledger."""

    ORPHAN = "orphan"
    """The provider has it, and the ledger had not: it is quarantined now."""
    NEWS = "news"
    """It says something of a recorded effect that was not known, and is kept."""
    KNOWN = "known"
    """It says nothing new."""
    UNNAMED = "unnamed"
    """It names no effect: others use the provider too."""
    MALFORMED = "malformed"
    """It names something that no effect of ours can be called."""
    FOREIGN = "foreign"
    """It is another tenant's, or another tool's."""
    GONE = "gone"
    """It is older than what the ledger keeps."""
    FAILED = "failed"
    """It could not be taken: the log says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a provider lists, and that names an effect which may be ours."""

    effect_id: EffectId
    body: Json


def read_item(
    listing: ListingEvidence, body: Json, *, tenant_id: UUID, now: datetime
) -> Item | Found:
    """Read an item of a page, or return why it is passed over."""
    for there, wanted in listing.where.items():
        stated = resolve_pointer(body, there)
        if stated is MISSING or not is_one_of(stated, (wanted,)):
            return Found.FOREIGN
    named = resolve_pointer(body, listing.id)
    if not isinstance(named, str) or not named:
        return Found.UNNAMED
    try:
        effect_id = EffectId.parse(named)
    except NotFound:
        return Found.MALFORMED
    if not _is_minted(effect_id.run_id, now):
        return Found.MALFORMED
    if not is_bound(listing.answer.bind, body, named, provider_key(tenant_id, effect_id)):
        return Found.FOREIGN
    return Item(effect_id, body)


def _is_minted(run_id: UUID, now: datetime) -> bool:
    """Tell whether a run's id is one of ours by its form, and was not made in the future."""
    if run_id.version != _UUID7 or run_id.variant != RFC_4122:
        return False
    return run_id.int >> 80 <= (now.timestamp() + _OFF_SECONDS) * 1000


@dataclass(frozen=True, slots=True)
class KnownRun:
    """What the ledger knows of the run of an effect that it does not know.

    ``standing`` is None for one of this tenant's, or of nobody's; else why the effect cannot be
    recorded. ``name`` is the caller's, and ``contract_id`` the version of the tool that it uses.
    """

    standing: Found | None
    name: str | None
    contract_id: UUID | None


def version_of(run: KnownRun, listed_by: Sequence[UUID]) -> UUID:
    """Return the version that an orphan is recorded under.

    That is the one that its run uses, else the newest of those by whose listing it was found, which
    come first.
    """
    return next((one for one in listed_by if one == run.contract_id), listed_by[0])


def orphan(contract: Contract, contract_id: UUID, item: Item, run: KnownRun) -> Effect:
    """Return what is known of an effect that only the provider has. The rest is empty."""
    assert contract.evidence is not None
    assert contract.evidence.listing is not None
    return Effect(
        id=item.effect_id,
        run=run.name or "",
        identity="",
        idem_key=None,
        tool=contract.name,
        version=str(contract.version),
        contract_id=contract_id,
        presented_contract_id=contract_id,
        contract_digest=contract.contract_digest,
        effect_class=contract.effect_class,
        capabilities=frozenset(),
        credential_version=0,
        principal="",
        origin=LISTING,
        arguments=told_arguments(contract, contract.evidence.listing.answer, item.body),
        key_id="",
        request_fingerprint=b"",
        operation_fingerprint=b"",
        planned_at=uuid7_time(item.effect_id.run_id),
    )


def first_of(detail: str, *, actor: str, now: datetime) -> Step:
    """Return the step that an orphan begins with (T10)."""
    reason = f"{ORPHANED}: {detail}"
    return first_step("T10", State.QUARANTINED, actor=actor, reason=reason, at=now)


def told_arguments(contract: Contract, form: EvidenceAnswer, body: Json) -> dict[str, Json]:
    """Return the arguments that an item tells, by `match`, with what is sensitive redacted.

    What would stand in an array is left out: the array's other items are not known.
    """
    arguments: dict[str, Json] = {}
    for there, here in form.match.items():
        value, names = resolve_pointer(body, there), pointer_split(here)
        if value is not MISSING and names and not any(name.isdigit() for name in names):
            _put(arguments, names, value)
    redacted = redact(arguments, contract.input_schema)
    return redacted if isinstance(redacted, dict) else {}


def _put(arguments: dict[str, Json], names: Sequence[str], value: Json) -> None:
    *outer, last = names
    for name in outer:
        inner = arguments.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        arguments = inner
    arguments.setdefault(last, value)


# --- which part of it is read --------------------------------------------------------------------

OVERLAP_SECONDS: Final = 300.0
"""How far a pass reaches back before the last one, beside the source's own lag.

For the provider's clock is not ours, and an item may be dated before it can be seen.
"""
PUBLISHED_SECONDS: Final = 86400.0
"""How long before its contract was published the first pass begins.

Nothing was sent under a contract before; but a publication may be what was lost.
"""


def first_since(published_at: datetime) -> datetime:
    """Return the time from which on the first pass asks."""
    return published_at - timedelta(seconds=PUBLISHED_SECONDS)


def next_since(since: datetime, began_at: datetime, lag_seconds: float) -> datetime:
    """Return the time from which on the next pass asks, given the one that has just ended."""
    return max(since, began_at - timedelta(seconds=lag_seconds + OVERLAP_SECONDS))
