"""The law of the ledger, walked through: each step by the call that takes it, every other refused.

What the code refuses of itself, `tests/unit/ledger/test_transition.py` enumerates.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count, product
from typing import Any, Final

import psycopg
import pytest

from kernel.ids import new_uuid7
from ledger.identity import EffectId
from ledger.judgement import Judgement
from ledger.state import NEW
from ledger.transition import TRANSITIONS
from reconciler.sources import Asker
from tallystick.evidence_source import EvidenceQuestion
from tallystick.tool_contract import Contract
from tests.api import Answered, Api
from tests.builders import ARGUMENTS, a_contract, a_contract_of, http_evidence
from tests.fixtures import Owner, Sweep, sweeper_of
from tests.gated import Shop, a_budget
from tests.provider import Provider

Step = tuple[str, str, str]
Effect = dict[str, Any]

LEGAL: Final[set[Step]] = {(one.id, one.from_state, one.to_state) for one in TRANSITIONS}
AMOUNT: Final = ARGUMENTS["amount_cents"]


class Dead:
    """A source that takes its asker along: the claim is left as it is."""

    async def ask(
        self, contract: Contract, question: EvidenceQuestion, asker: Asker
    ) -> Judgement | None:
        raise ConnectionAbortedError


class Walk:
    """The calls that bring an effect to where a step can be taken."""

    def __init__(self, api: Api, owner: Owner, provider: Provider, sweep: Sweep) -> None:
        self.api, self.owner, self.provider, self.sweep = api, owner, provider, sweep
        self._runs = count()
        self._published: dict[str, dict[str, Any]] = {}

    @property
    def run(self) -> str:
        """A name for a run of its own."""
        return f"run-{next(self._runs)}"

    async def published(self, document: dict[str, Any]) -> dict[str, Any]:
        named = f"{document['name']}@{document['version']}"
        if named not in self._published:
            self._published[named] = await self.api.publish(document)
        return self._published[named]

    async def planned(self) -> Effect:
        reference = await self.published(a_contract())
        return (await self.api.plan(reference, run=self.run, deadline_seconds=3600)).body

    async def sent(self, effect_class: str = "IDEMPOTENT", **changes: Any) -> Effect:
        reference = await self.published(a_contract_of(effect_class, **changes))
        return await self.api.dispatched(reference, run=self.run)

    async def reported(self, outcome: str, effect_class: str = "IDEMPOTENT", **more: Any) -> Effect:
        effect = await self.sent(effect_class, **more)
        await self.api.report(effect, outcome)
        return effect

    async def doubted(self) -> Effect:
        """Have a provider that can be asked."""
        evidence = http_evidence(self.provider.port)
        return await self.reported("unknown", name="tools.asked", evidence=evidence)

    async def asked(self, **booked: Any) -> Effect:
        """Have the provider asked, with this in its books."""
        effect = await self.doubted()
        self.provider.book(effect["effect_id"], **booked)
        await self.sweep.once()
        return effect

    async def claimed(self) -> Effect:
        effect = await self.doubted()
        await sweeper_of(self.api, Dead()).once()
        return effect

    async def quarantined(self) -> Effect:
        """Have nobody to ask, of what may not happen twice."""
        effect = await self.reported("unknown")
        await self.sweep.once()
        return effect

    async def retryable(self, name: str = "tools.replayable") -> Effect:
        """Have nobody to ask, of what may happen twice."""
        effect = await self.reported("unknown", "REPLAYABLE", name=name, max_duplicates=1)
        await self.sweep.once()
        return effect

    async def late(self) -> Effect:
        """Have a queue bring work for a version that is retired."""
        self.api.app.state.lease_seconds_max = 0
        reference = await self.published(a_contract(name="tools.late"))
        assert (await self.api.retire(reference)).status == 200
        return (await self.api.plan(reference, run=self.run, origin="queue")).body

    async def migrated(self) -> Effect:
        effect = await self.late()
        await self.published(a_contract(name="tools.late", version="3.0"))
        body = {"version": "3.0", "reason": "still wanted"}
        await self.api.ask("POST", f"/v1/effects/{effect['effect_id']}/migrate", body)
        return effect

    async def refused(self) -> Effect:
        effect = await self.planned()
        await self.owner.pass_deadline(effect)
        await self.api.dispatch(effect)
        return effect

    async def cancelled(self) -> Effect:
        return await self.then(self.planned(), self.api.cancel)

    async def used_up(self) -> Effect:
        once = self.reported("unknown", "PURE", name="tools.once", attempts_max=1)
        return await self.then(once, self.api.dispatch)

    async def then(
        self, effect: Awaitable[Effect], call: Callable[..., Awaitable[Answered]], *given: str
    ) -> Effect:
        """Make one more call on an effect."""
        there = await effect
        await call(there, *given)
        return there


Way = Callable[[Walk], Awaitable[Effect]]

WAYS: Final[dict[Step, Way]] = {
    ("T1", NEW, "PLANNED"): lambda walk: walk.planned(),
    ("T2", "PLANNED", "DISPATCHED"): lambda walk: walk.sent(),
    ("T3", "DISPATCHED", "SUCCEEDED"): lambda walk: walk.reported("succeeded"),
    ("T3", "DISPATCHED", "FAILED"): lambda walk: walk.reported("failed"),
    ("T4", "DISPATCHED", "UNKNOWN"): lambda walk: walk.reported("unknown"),
    ("T4", "DISPATCHED", "RETRYABLE"): lambda walk: walk.reported("unknown", "PURE"),
    ("T5", "UNKNOWN", "RECONCILING"): lambda walk: walk.claimed(),
    ("T6", "RECONCILING", "SUCCEEDED"): lambda walk: walk.asked(amount_cents=AMOUNT),
    ("T6", "RECONCILING", "FAILED"): lambda walk: walk.asked(status="rejected"),
    ("T6", "RECONCILING", "UNKNOWN"): lambda walk: walk.asked(status="pending"),
    ("T6", "RECONCILING", "RETRYABLE"): lambda walk: walk.retryable(),
    ("T6", "RECONCILING", "QUARANTINED"): lambda walk: walk.quarantined(),
    ("T7", "RETRYABLE", "DISPATCHED"): lambda walk: walk.then(walk.retryable(), walk.api.dispatch),
    ("T8", "PLANNED", "CANCELLED"): lambda walk: walk.cancelled(),
    ("T8", "QUARANTINED", "CANCELLED"): lambda walk: walk.migrated(),
    ("T8", "RETRYABLE", "CANCELLED"): lambda walk: walk.then(
        walk.reported("unknown", "PURE"), walk.api.cancel
    ),
    ("T8", "RETRYABLE", "QUARANTINED"): lambda walk: walk.then(walk.retryable(), walk.api.cancel),
    ("T9", "PLANNED", "REFUSED"): lambda walk: walk.refused(),
    ("T10", NEW, "QUARANTINED"): lambda walk: walk.late(),
    ("T10", "RETRYABLE", "QUARANTINED"): lambda walk: walk.used_up(),
    **{
        ("T11", "QUARANTINED", to): lambda walk, to=to: walk.then(
            walk.quarantined(), walk.api.resolve, to
        )
        for to in ("SUCCEEDED", "FAILED", "ABANDONED", "RETRYABLE")
    },
    ("T12", "SUCCEEDED", "QUARANTINED"): lambda walk: walk.then(
        walk.reported("succeeded"), walk.api.tell, "rejected"
    ),
    ("T12", "FAILED", "QUARANTINED"): lambda walk: walk.then(
        walk.reported("failed"), walk.api.tell, "applied"
    ),
    ("T12", "REFUSED", "QUARANTINED"): lambda walk: walk.then(
        walk.refused(), walk.api.tell, "applied"
    ),
    ("T12", "CANCELLED", "QUARANTINED"): lambda walk: walk.then(
        walk.cancelled(), walk.api.tell, "applied"
    ),
    ("T12", "ABANDONED", "QUARANTINED"): lambda walk: walk.then(
        walk.then(walk.quarantined(), walk.api.resolve, "ABANDONED"), walk.api.tell, "applied"
    ),
    ("T13", "RETRYABLE", "UNKNOWN"): lambda walk: walk.then(
        walk.retryable(), walk.api.tell, "in_progress"
    ),
}
"""The call that takes each step; an effect's last event is then this step."""


@pytest.fixture
def walk(api: Api, owner: Owner, provider: Provider, sweep: Sweep) -> Walk:
    return Walk(api, owner, provider, sweep)


def test_there_is_a_way_for_each_step_and_no_other():
    assert set(WAYS) == LEGAL


async def test_each_step_is_taken_by_a_call(walk: Walk):
    for taken, way in WAYS.items():
        last = (await walk.api.show(await way(walk)))["events"][-1]
        assert (last["transition"], last["from_state"], last["to_state"]) == taken, last
    await walk.owner.check_ledger()


# --- by hand, in the database ---------------------------------------------------------------------

TRY: Final = """
CREATE FUNCTION refusal(run uuid, number bigint, fence bigint, step text, before text, after text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    broken text;
BEGIN
    INSERT INTO event (run_id, number, fence, previous_fence, tenant_id, transition, from_state,
                       to_state, attempt, actor, reason, at)
    VALUES (run, number, fence + 1, nullif(fence, -1), current_tenant(), step, before,
            after, 0, 'me', '', now());
    RAISE EXCEPTION 'It was taken.';
EXCEPTION
    WHEN raise_exception THEN
        RETURN NULL;
    WHEN integrity_constraint_violation THEN
        GET STACKED DIAGNOSTICS broken = CONSTRAINT_NAME;
        RETURN regexp_replace(broken, '_[0-9]{4}_[0-9]{2}(?=_)', '');
END $$
"""
"""Writes one event by hand, undoes it, and tells which constraint refused it, or nothing."""

Stand = tuple[EffectId, int]
"""An effect, and the number of its last event: -1 of one that is new."""


@contextmanager
def by_hand(database_url: str) -> Iterator[psycopg.Connection]:
    """Work as the service does for the tenant, in a transaction that is undone."""
    with psycopg.connect(database_url) as connection:
        connection.execute(TRY)
        connection.execute("SET ROLE tallystick_service")
        connection.execute(
            "SELECT set_config('tallystick.tenant', tenant_id::text, false)"
            " FROM tenant_named('default') AS named (tenant_id)"
        )
        yield connection
        connection.rollback()


def tried(connection: psycopg.Connection, steps: list[tuple[Stand, Step]]) -> list[str | None]:
    """Return what the database says of each step by hand."""
    columns = [(there.run_id, there.number, fence, *step) for (there, fence), step in steps]
    rows = connection.execute(
        "SELECT refusal(run, number, fence, step, before, after)"
        " FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[])"
        " AS one (run, number, fence, step, before, after)",
        [list(column) for column in zip(*columns, strict=True)],
    )
    return [refused for (refused,) in rows]


async def test_by_hand_no_other_step_is_taken(walk: Walk, database_url: str):
    """Whatever the step is called, wherever an effect is, and wherever it would lead."""
    ways = {to_state: way for (_, _, to_state), way in reversed(WAYS.items())}
    # The only quarantine that every step out of one may leave is that of a first step.
    ways["QUARANTINED"] = WAYS["T10", NEW, "QUARANTINED"]
    stands: dict[str, Stand] = {NEW: (EffectId(new_uuid7(), 1), -1)}
    for state, way in ways.items():
        shown = await walk.api.show(await way(walk))
        await walk.owner.put_off(shown)
        stands[state] = (EffectId.parse(shown["effect_id"]), shown["fence"])
    ids = sorted({one.id for one in TRANSITIONS})
    here = [
        (stands[before], (step, before, after))
        for step, before, after in product(ids, stands, stands)
    ]
    elsewhere = [
        (stand, step)
        for step, (state, stand) in product(sorted(LEGAL), stands.items())
        if step[1] != state
    ]
    assert len(here) == 13 * 12 * 12
    with by_hand(database_url) as connection:
        answers = zip(here, tried(connection, here), strict=True)
        assert {step: refused for (_, step), refused in answers} == {
            step: None if step in LEGAL else "event_is_legal_fkey" for _, step in here
        }
        assert None not in tried(connection, elsewhere)


# --- guards ---------------------------------------------------------------------------------------


async def test_a_lease_that_lasts_is_nobodys_to_end(walk: Walk):
    lasts, over = await walk.sent(), await walk.sent()
    await walk.owner.run_out(over)
    assert await walk.sweep.once() == 1
    assert [await walk.api.state(one) for one in (lasts, over)] == ["DISPATCHED", "UNKNOWN"]


async def test_a_further_attempt_is_held_to_what_holds_by_then(walk: Walk):
    """To all that a first one is held to; what passes changes no row, and what drains goes on."""
    api = walk.api
    names = ("suspended", "closed", "retired", "revoked", "governed")
    effects = {name: await walk.retryable(f"tools.{name}") for name in names}
    tools = {name: {"name": f"tools.{name}", "version": "2.1.0"} for name in names}
    await walk.owner.suspend(*tools["suspended"].values())
    await walk.owner.live(*tools["retired"].values(), lifecycle="RETIRED")
    assert (await api.retire(tools["closed"])).code == "contract_in_use"
    refused = {
        "suspended": ("contract_suspended", "RETRYABLE"),
        "closed": (None, "DISPATCHED"),
        "retired": ("contract_retired", "QUARANTINED"),
    }
    for name, expected in refused.items():
        assert (
            (await api.dispatch(effects[name])).code,
            await api.state(effects[name]),
        ) == expected
    await api.ask("DELETE", "/v1/grants?principal=admin&capability=invoice:write:default")
    assert (await api.dispatch(effects["revoked"])).code == "capability_not_granted"
    await api.grant("invoice:write:{tenant}")
    await Shop(api).govern(a_budget(max=5))
    assert (await api.dispatch(effects["governed"])).code == "credential_policy_changed"
    for name in ("revoked", "governed"):
        assert await api.state(effects[name]) == "QUARANTINED"
    for name in names:
        attempts = (await api.show(effects[name]))["attempts"]
        assert len(attempts) == 1 + (name == "closed")


async def test_nobody_decides_without_a_reason_and_evidence(walk: Walk):
    effect = await walk.quarantined()
    for missing in ("reason", "evidence"):
        for said in ("", None):
            answer = await walk.api.resolve(effect, "FAILED", **{missing: said})
            assert (answer.refusal, answer.body["pointer"]) == (
                (422, "invalid_request"),
                f"/{missing}",
            )
    assert await walk.api.state(effect) == "QUARANTINED"
