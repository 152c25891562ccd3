"""Which items of a listing may be ours, and what an orphan is known by."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from kernel.ids import uuid7_time
from ledger.effect import OpenEffect
from ledger.identity import EffectId, provider_key
from ledger.listing import (
    Found,
    Item,
    KnownRun,
    first_of,
    orphan,
    read_item,
    told_arguments,
    version_of,
)
from ledger.quarantine import Cause, cause_of
from ledger.state import State
from tallystick.provider import EvidenceAnswer, ListingEvidence
from tallystick.schema import REDACTED
from tallystick.tool_contract import Contract
from tests.builders import a_contract, http_evidence, http_listing

TENANT = UUID(int=7)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = 2**47 - 1


def uuid7_at(milliseconds: int, version: int = 7, variant: int = 2) -> UUID:
    return UUID(int=milliseconds << 80 | version << 76 | variant << 62)


OURS = EffectId(uuid7_at(int(NOW.timestamp()) * 1000), 5)


def read(body: Any, **changes: Any) -> Item | Found:
    said = http_listing(80) | changes
    return read_item(
        ListingEvidence.of({name: value for name, value in said.items() if value is not None}),
        body,
        tenant_id=TENANT,
        now=NOW,
    )


def item(effect_id: Any = None, **changes: Any) -> dict[str, Any]:
    effect_id = str(OURS) if effect_id is None else effect_id
    key = provider_key(TENANT, OURS)
    return {"effect_id": effect_id, "idempotency_key": key, "kind": "invoices"} | changes


def test_what_names_an_effect_of_ours_is_read():
    assert read(item()) == Item(OURS, item())
    assert read(item(idempotency_key=None), bind=None) == Item(OURS, item(idempotency_key=None))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (None, Found.FOREIGN),
        ([], Found.FOREIGN),
        ("invoices", Found.FOREIGN),
        (item(kind="transfers"), Found.FOREIGN),
        (item(kind=True), Found.FOREIGN),
        ({"kind": "invoices"}, Found.UNNAMED),
        (item(""), Found.UNNAMED),
        (item(7), Found.UNNAMED),
        (item({"a": 1}), Found.UNNAMED),
        (item("invoice 7"), Found.MALFORMED),
        (item("9" * 100_000), Found.MALFORMED),
        (item(f"{OURS.run_id}.{'9' * 100_000}"), Found.MALFORMED),
        (item(f"{OURS.run_id}.{2**63}"), Found.MALFORMED),
        (item(f"{OURS.run_id}.0"), Found.MALFORMED),
        (item(f"{OURS.run_id}.-1"), Found.MALFORMED),
        (item(f"{OURS.run_id}.\u0665"), Found.MALFORMED),
        (item(f"{OURS.run_id}.5 "), Found.MALFORMED),
        (item(str(OURS).upper()), Found.MALFORMED),
        (item(f"{UUID(int=7 << 80, version=4)}.5"), Found.MALFORMED),
        (item(f"{UUID(int=0)}.5"), Found.MALFORMED),
        (item(f"{UUID(int=2**128 - 1)}.5"), Found.MALFORMED),
        (item(f"{uuid7_at(LATER)}.5"), Found.MALFORMED),
        (item(f"{uuid7_at(2**48 - 1)}.5"), Found.MALFORMED),
        (item(f"{uuid7_at(1000, variant=3)}.5"), Found.MALFORMED),
        (item(f"{OURS.run_id}.6"), Found.FOREIGN),
        (item(idempotency_key=provider_key(UUID(int=8), OURS)), Found.FOREIGN),
        (item(idempotency_key=None), Found.FOREIGN),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_names_none_is_passed_over(body: Any, found: Found):
    assert read(body) is found


# --- orphans --------------------------------------------------------------------------------------


def contract(**changes: Any) -> Contract:
    return Contract.parse(
        a_contract(evidence=http_evidence(80, listing=http_listing(80)), **changes)
    )


def test_what_is_not_known_of_an_orphan_is_empty():
    body = item(body={"amount_cents": 1250, "memo": "canary"}, status="booked")
    found = orphan(contract(), UUID(int=1), Item(OURS, body), KnownRun(None, None, None))
    assert found.is_orphan
    assert (found.run, found.identity, found.principal, found.key_id) == ("", "", "", "")
    assert (found.request_fingerprint, found.operation_fingerprint) == (b"", b"")
    assert (found.capabilities, found.credential_version) == (frozenset(), 0)
    assert found.arguments == {"amount_cents": 1250}, "only what the contract says how to read"
    assert found.planned_at == uuid7_time(OURS.run_id)


def test_an_orphan_begins_where_a_person_decides():
    step = first_of("the provider has it", actor="reconciler:test", now=NOW)
    assert (step.transition, step.to_state) == ("T10", State.QUARANTINED)
    assert isinstance(step.after, OpenEffect)
    assert step.after.due_at is None
    assert cause_of(step) is Cause.ORPHAN  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("match", "told"),
    [
        ({"/amount": "/amount_cents"}, {"amount_cents": 1250}),
        ({"/amount": "/order/total/cents"}, {"order": {"total": {"cents": 1250}}}),
        ({"/amount": "/a/x", "/currency": "/a/y"}, {"a": {"x": 1250, "y": "EUR"}}),
        ({"/amount": "/a", "/currency": "/a/y"}, {"a": 1250}),
        # Of an array only one item is known, and of the whole arguments only a part.
        ({"/amount": "/lines/0/cents"}, {}),
        ({"/amount": ""}, {}),
        ({"/missing": "/amount_cents"}, {}),
        ({"/card": "/card"}, {"card": {REDACTED: True}}),
    ],
)
def test_the_arguments_are_those_that_an_item_tells(match: dict[str, str], told: Any):
    schema = {"type": "object", "properties": {"card": {"type": "string", "x-sensitive": True}}}
    form = EvidenceAnswer.of({"state": "/status", "applied": ["booked"], "match": match})
    body = {"amount": 1250, "currency": "EUR", "card": "canary"}
    assert told_arguments(contract(input_schema=schema), form, body) == told


def test_an_orphan_is_recorded_under_the_version_that_its_run_uses():
    newest, older, other = UUID(int=3), UUID(int=2), UUID(int=1)
    assert version_of(KnownRun(None, "run-1", older), [newest, older]) == older
    assert version_of(KnownRun(None, None, None), [newest, older]) == newest
    assert version_of(KnownRun(None, "run-1", other), [newest, older]) == newest
