"""What was dispatched before a standby took over: in doubt at once, whatever its lease."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL
from sqlalchemy import make_url

from server.migration import upgrade
from tests.api import Api, moment, running
from tests.builders import ARGUMENTS, a_contract, a_contract_of, http_evidence
from tests.conftest import NewDatabase, name_of
from tests.fixtures import Owner, Sweep, asking, sweeper_of
from tests.provider import Provider

pytestmark = pytest.mark.usefixtures("histories")

REASON = "the database's timeline changed"
CLASSES = ("IDEMPOTENT", "REPLAYABLE", "UNKNOWN", "NON_RETRYABLE", "PURE")


async def leave_behind(owner: Owner, *effects: dict[str, Any], by: int = -1) -> None:
    """Let effects have been dispatched in another timeline than the database is in."""
    for effect in effects:
        await owner.rows(
            "UPDATE effect_attempt SET timeline = timeline + %s"
            " WHERE run_id::text || '.' || number = %s",
            *(by, effect["effect_id"]),
        )


async def several(api: Api, count: int) -> list[dict[str, Any]]:
    reference = await api.publish(a_contract())
    return [await api.dispatched(reference, effect=f"effect-{n}") for n in range(count)]


def last(shown: dict[str, Any]) -> tuple[str, str, str]:
    event = shown["events"][-1]
    return event["transition"], event["to_state"], event["reason"]


async def test_what_another_timeline_dispatched_is_in_doubt(api: Api, owner: Owner, sweep: Sweep):
    behind = [
        await api.dispatched(await api.publish(a_contract_of(one)), effect=one) for one in CLASSES
    ]
    (own,) = await several(api, 1)
    assert await sweep.once() == 0
    # A dump that was restored elsewhere may be of a higher timeline.
    await leave_behind(owner, *behind[:3])
    await leave_behind(owner, *behind[3:], by=1)
    sweep.sweeper.timeline = None  # a reconciler that has just started
    assert await sweep.once() == len(CLASSES)
    for effect_class, effect in zip(CLASSES, behind, strict=True):
        state = "RETRYABLE" if effect_class == "PURE" else "UNKNOWN"
        assert last(await api.show(effect)) == ("T4", state, REASON)
    assert await api.state(own) == "DISPATCHED"
    assert await sweep.once() == 0
    assert (await api.report(own, "succeeded")).body["state"] == "SUCCEEDED"


async def test_its_worker_has_until_its_lease_ends_to_say_what_it_did(
    api: Api, owner: Owner, sweep: Sweep
):
    told, silent = await several(api, 2)
    await leave_behind(owner, told, silent)
    assert await sweep.once() == 2
    shown = await api.show(silent)
    assert shown["due_at"] == shown["attempts"][0]["lease_until"]
    assert (await api.report(told, "succeeded")).refusal == (409, "fence_stale")
    assert await sweep.once() == 1
    assert await api.state(told) == "SUCCEEDED"
    await owner.run_out(silent)
    assert await sweep.once() == 1
    assert await api.state(silent) == "QUARANTINED"


async def test_absent_says_nothing_while_its_worker_may_still_send(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    evidence = http_evidence(provider.port)
    reference = await api.publish(a_contract(evidence=evidence, settle_seconds=7))
    waiting, done = [await api.dispatched(reference, effect=name) for name in ("waiting", "done")]
    provider.book(done["effect_id"], amount_cents=ARGUMENTS["amount_cents"])
    await leave_behind(owner, waiting, done)
    assert [await sweep.once(), await sweep.once()] == [2, 2], "left behind, and then asked about"
    assert await api.state(done) == "SUCCEEDED"
    shown = await api.show(waiting)
    assert last(shown) == ("T6", "UNKNOWN", "absent, but not settled yet")
    lease_until = moment(shown["attempts"][0]["lease_until"])
    assert moment(shown["due_at"]) == lease_until + timedelta(seconds=7)


async def test_several_reconcilers_may_find_it_at_once(api: Api, owner: Owner, sweep: Sweep):
    behind = await several(api, 6)
    await leave_behind(owner, *behind)
    async with asking([]) as source:
        others = [sweeper_of(api, source, name=str(n)) for n in range(3)]
        assert sum(await asyncio.gather(*(one.once() for one in (sweep, *others)))) == 6
    for effect in behind:
        assert [one["transition"] for one in (await api.show(effect))["events"]] == [
            "T1",
            "T2",
            "T4",
        ]


async def test_what_somebody_else_holds_is_not_forgotten(
    api: Api, owner: Owner, sweep: Sweep, database_url: str
):
    (behind,) = await several(api, 1)
    await leave_behind(owner, behind)
    async with await psycopg.AsyncConnection.connect(database_url) as holder:
        await holder.execute("SELECT FROM effect_open FOR UPDATE")
        assert await sweep.once() == 0
    assert await sweep.once() == 1
    assert last(await api.show(behind)) == ("T4", "UNKNOWN", REASON)


async def test_a_database_that_tells_no_timeline_does_without(
    postgres_url: str, new_database: NewDatabase, tmp_path: Path
):
    url = new_database()
    above = make_url(postgres_url).set(database=name_of(url))
    with psycopg.connect(above.render_as_string(hide_password=False)) as connection:
        connection.execute(SQL("REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC"))
    upgrade(url)
    async with running(url, tmp_path / "closed") as api, asking([]) as source:
        (effect,) = await several(api, 1)
        assert await sweeper_of(api, source).once() == 0
        assert (await api.report(effect, "succeeded")).body["state"] == "SUCCEEDED"
