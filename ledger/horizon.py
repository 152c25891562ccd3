"""How long a new attempt is safe, and how many there may be. Pure."""

from datetime import datetime, timedelta

from ledger.effect import OpenEffect
from tallystick.effect_class import TRAITS, EffectClass
from tallystick.tool_contract import Contract


def last_start(contract: Contract, before: OpenEffect) -> datetime | None:
    """Return the last moment at which an attempt may begin, or None where time sets no bound.

    A provider forgets an idempotency key when its retention is over, counted from the first
    dispatch; the same key is a new effect from then on. A whole lease must fit before that, and
    another one as a margin for a worker that pauses.
    """
    if contract.effect_class is not EffectClass.IDEMPOTENT or before.first_dispatched_at is None:
        return None
    assert contract.idempotency is not None, (
        "an IDEMPOTENT contract says how long its key is honoured"
    )
    retention_seconds = contract.idempotency.retention_seconds
    return before.first_dispatched_at + timedelta(
        seconds=retention_seconds - 2 * contract.lease_seconds
    )


def why_no_attempt(contract: Contract, before: OpenEffect, now: datetime) -> str | None:
    """Return why no further attempt may begin now, or None where one may."""
    if before.attempt and not TRAITS[contract.effect_class].automatic_retry:
        return f"An effect of class {contract.effect_class} is attempted once."
    if before.attempt >= contract.attempts_max:
        return f"All {contract.attempts_max} attempts are used."
    limit = last_start(contract, before)
    if limit is not None and now > limit:
        return "The provider's idempotency key is no longer sure to be honoured."
    return None
