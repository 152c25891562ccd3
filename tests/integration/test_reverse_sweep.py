"""What the provider lists, held against the ledger: orphans, evidence, and what is neither."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from audit.service import Sealer
from kernel.ids import new_uuid7
from ledger.identity import EffectId, number_of, provider_key
from reconciler.schedule import scheduled
from reconciler.sources import Asker, Response
from server.bootstrap import DEFAULT_TENANT
from tallystick.provider import HttpEvidence
from tests.api import Api
from tests.bookings import PORT, Bookings, Reverse, keeping_books, listed
from tests.builders import ARGUMENTS, a_contract, a_contract_of, http_evidence, http_listing
from tests.fixtures import Owner, Sweep

pytestmark = pytest.mark.usefixtures("histories")


@pytest.fixture
async def bookings() -> AsyncGenerator[Bookings]:
    """The reference provider, with empty books."""
    async with keeping_books() as bookings:
        yield bookings


@pytest.fixture
def reverse(api: Api, owner: Owner, bookings: Bookings) -> Reverse:
    return Reverse(api, owner, bookings.source)


class Pages:
    """A provider that lists what a test puts on its pages; the cursor is the number of the page."""

    def __init__(self, *pages: list[Any]) -> None:
        self.pages = list(pages)
        self.asked: list[str] = []
        self.status = 200

    async def fetch(self, url: str, http: HttpEvidence, asker: Asker) -> Response | str:
        self.asked.append(url)
        number = int(httpx.URL(url).params.get("after", 0))
        is_last = number + 1 >= len(self.pages)
        told = {"bookings": self.pages[number], "next": None if is_last else number + 1}
        return Response(self.status, json.dumps(told).encode())


async def tenant_of(owner: Owner, slug: str = DEFAULT_TENANT) -> UUID:
    return await owner.one("SELECT tenant_id FROM tenant WHERE slug = %s", slug)


async def lost(bookings: Bookings, owner: Owner, **how: Any) -> dict[str, Any]:
    """Book an effect of which no record is left; return what names it."""
    effect_id = EffectId(new_uuid7(), 5)
    key = provider_key(await tenant_of(owner), effect_id)
    await bookings.order(str(effect_id), key, **how)
    return {"effect_id": str(effect_id)}


def item(effect_id: object, key: str | None = None, **changes: Any) -> dict[str, Any]:
    """Return an item as the reference provider lists it."""
    told = {"effect_id": str(effect_id), "idempotency_key": key, "kind": "invoices"}
    return told | {"status": "booked", "reference": "invoice-1", "body": ARGUMENTS} | changes


# --- orphans --------------------------------------------------------------------------------------


async def test_what_only_the_provider_has_is_quarantined(
    api: Api, owner: Owner, bookings: Bookings, reverse: Reverse, caplog: pytest.LogCaptureFixture
):
    await api.publish(listed())
    orphan = await lost(bookings, owner)
    await bookings.order("not-ours", "another")
    assert await reverse.again() == 2
    (found,) = (await api.ask("GET", "/v1/quarantine")).body["effects"]
    assert (found["effect_id"], found["cause"]) == (orphan["effect_id"], "orphan")
    assert (found["tool"], found["origin"]) == ("billing.send_invoice", "listing")
    for unknown in ("run", "effect", "key", "principal", "credential_version", "capabilities"):
        assert found[unknown] is None, unknown
    assert found["arguments"] == {"amount_cents": ARGUMENTS["amount_cents"]}
    shown = (await api.ask("GET", f"/v1/quarantine/{orphan['effect_id']}")).body
    (evidence,) = shown["evidence"]
    assert (evidence["source"], evidence["answer"]) == ("listing", "applied")
    assert evidence["provider_reference"] == "invoice-0001"
    (event,) = shown["events"]
    assert (event["transition"], event["actor"]) == ("T10", "reconciler:test")
    choices = {one["choice"]: one["allowed"] for one in shown["choices"]}
    assert choices == {
        "SUCCEEDED": True,
        "FAILED": True,
        "RETRYABLE": False,
        "migrate": False,
        "ABANDONED": True,
    }
    (told,) = [one.message for one in caplog.records if one.levelno == logging.WARNING]
    assert orphan["effect_id"] in told
    text = (await api.http.get("/metrics")).text
    for what, many in (("listed", 2), ("orphans", 1), ("ignored", 1)):
        assert f'tallystick_listed_items{{what="{what}"}} {many}.0' in text
    assert "tallystick_listings_read_until_seconds 1." in text
    # Found again, it is no other one, and says nothing new.
    before = await owner.effects_count()
    await reverse.again()
    assert await owner.effects_count() == before


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "ABANDONED"])
async def test_people_decide_of_an_orphan_and_it_is_never_sent(
    api: Api, owner: Owner, bookings: Bookings, reverse: Reverse, status: str
):
    reference = await api.publish(listed())
    orphan = await lost(bookings, owner)
    await reverse.again()
    assert (await api.resolve(orphan, "RETRYABLE")).code == "effect_not_retryable"
    assert (await api.cancel(orphan)).code == "illegal_transition"
    move = {"version": reference["version"], "reason": "moved"}
    path = f"/v1/effects/{orphan['effect_id']}"
    assert (await api.ask("POST", f"{path}/migrate", move)).status == 409
    assert not (await api.dispatch(orphan)).body["dispatch"]["owned"]
    assert (await api.resolve(orphan, status)).body["state"] == status
    await reverse.again()
    # The listing says what was known when they decided, and does not ask them once more.
    assert await api.state(orphan) == status


async def test_an_orphan_of_a_class_that_runs_once_takes_two_people(
    api: Api, owner: Owner, bookings: Bookings, reverse: Reverse
):
    listing = http_listing(PORT) | {"where": {"/kind": "transfers"}}
    del listing["bind"]
    evidence = http_evidence(PORT, listing=listing)
    await api.publish(a_contract_of("NON_RETRYABLE", evidence=evidence))
    orphan = await lost(bookings, owner, kind="transfers")
    await reverse.again()
    answer = await api.resolve(orphan, "SUCCEEDED")
    assert (answer.body["state"], answer.body["proposal"]["by"]) == ("QUARANTINED", "admin")


async def test_whoever_plans_a_lost_effect_again_is_not_let_send_it(
    api: Api, owner: Owner, bookings: Bookings, reverse: Reverse
):
    reference = await api.publish(listed())
    first = (await api.plan(reference)).body
    # What the service would call it: its run is known, and its record is lost.
    run_id = EffectId.parse(first["effect_id"]).run_id
    missing = EffectId(run_id, number_of("effect:effect-2"))
    await bookings.order(str(missing), provider_key(await tenant_of(owner), missing))
    await reverse.again()
    again = await api.plan(reference, effect="effect-2", dispatch=api.asking())
    assert again.body["effect_id"] == str(missing)
    assert (again.body["state"], again.body["dispatch"]["owned"]) == ("QUARANTINED", False)
    assert again.body["run"] == first["run"], "that much is known by what is left of the run"
    assert (await api.plan(reference, effect="effect-2")).status == 200
    assert await bookings.booked() == [str(missing)]


async def test_reconcilers_that_find_an_orphan_at_once_record_one(
    api: Api, owner: Owner, bookings: Bookings
):
    """The lease of the first runs out while it waits for the page, and it comes back late."""
    await api.publish(listed())
    orphan = await lost(bookings, owner)
    arrived, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        async def fetch(self, url: str, http: HttpEvidence, asker: Asker) -> Response | str:
            answer = await bookings.source.fetch(url, http, asker)
            arrived.set()
            await go_on.wait()
            return answer

    late = asyncio.create_task(Reverse(api, owner, Slow(), name="late").once())
    await arrived.wait()
    others = [Reverse(api, owner, bookings.source, name=str(each)) for each in range(3)]
    assert sum(await asyncio.gather(*(each.once() for each in others))) == 0, "it has the lease"
    await owner.rows("UPDATE listing_progress SET due_at = clock_timestamp()")
    assert sum(await asyncio.gather(*(each.once() for each in others))) == 1, "and one after it"
    before = await owner.rows("SELECT fence, since, cursor, due_at, listed FROM listing_progress")
    go_on.set()
    await late
    shown = await api.show(orphan)
    assert [one["transition"] for one in shown["events"]] == ["T10"]
    assert len(shown["evidence"]) == 1
    after = await owner.rows("SELECT fence, since, cursor, due_at, listed FROM listing_progress")
    assert after == before


# --- evidence -------------------------------------------------------------------------------------


async def test_what_is_listed_is_evidence_on_what_is_recorded(
    api: Api, owner: Owner, bookings: Bookings, reverse: Reverse, sweep: Sweep
):
    reference = await api.publish(listed())
    states = {"succeeded": "SUCCEEDED", "failed": "FAILED", "unknown": "UNKNOWN"}
    effects = {name: await api.dispatched(reference, effect=name) for name in (*states, "silent")}
    for name, effect in effects.items():
        await bookings.send(effect)
        if name in states:
            assert (await api.report(effect, name)).body["state"] == states[name]
    await owner.put_off(effects["unknown"])
    await reverse.again()
    shown = {name: await api.show(effect) for name, effect in effects.items()}
    assert {name: one["state"] for name, one in shown.items()} == {
        "succeeded": "SUCCEEDED",
        "failed": "QUARANTINED",
        "unknown": "UNKNOWN",
        "silent": "DISPATCHED",
    }
    kept = {name: len(one["evidence"]) for name, one in shown.items()}
    assert kept == {"succeeded": 0, "failed": 1, "unknown": 1, "silent": 1}
    assert shown["failed"]["events"][-1]["transition"] == "T12"
    before = await owner.effects_count()
    await reverse.again()
    assert await owner.effects_count() == before, "what says nothing new leaves no row"
    # The one in doubt was woken, though it was put off.
    await sweep.once()
    assert await api.state(effects["unknown"]) == "SUCCEEDED"
    # A person who saw what the listing says is not asked again by the same item.
    assert (await api.resolve(effects["failed"], "FAILED")).status == 200
    await reverse.again()
    assert await api.state(effects["failed"]) == "FAILED"


async def test_an_item_with_another_amount_contradicts(
    api: Api, bookings: Bookings, reverse: Reverse
):
    effect = await api.dispatched(await api.publish(listed()))
    key = effect["dispatch"]["idempotency_key"]
    await bookings.order(effect["effect_id"], key, {"amount_cents": 1})
    assert (await api.report(effect, "succeeded")).body["state"] == "SUCCEEDED"
    await reverse.again()
    shown = await api.show(effect)
    assert (shown["state"], shown["evidence"][0]["answer"]) == ("QUARANTINED", "contradicts")


@pytest.mark.parametrize("answer", ["applied", "in_progress", "rejected", "contradicts"])
async def test_what_was_sent_unseen_is_not_sent_from_its_plan(api: Api, owner: Owner, answer: str):
    """Whoever says so: a plan of which the provider knows was sent, and its record was lost."""
    planned = (await api.plan(await api.publish(a_contract()))).body
    assert (await api.tell(planned, answer)).body["state"] == "QUARANTINED"
    shown = await api.show(planned)
    assert [one["transition"] for one in shown["events"]] == ["T1", "T9", "T12"]
    assert not (await api.dispatch(planned)).body["dispatch"]["owned"]
    assert (await api.resolve(planned, "RETRYABLE")).code == "effect_not_retryable"


async def test_an_approval_ends_with_the_plan_that_was_sent_unseen(api: Api, owner: Owner):
    planned = (await api.plan(await api.publish(a_contract(approval="always")))).body
    await api.tell(planned, "applied")
    shown = await api.show(planned)
    assert (shown["state"], shown["approval"]["status"]) == ("QUARANTINED", "stale")


# --- what is not ours -----------------------------------------------------------------------------


async def test_what_is_not_ours_is_counted_and_passed_over(
    api: Api, other: Api, owner: Owner, caplog: pytest.LogCaptureFixture
):
    await api.publish(listed(listing={"bind": None, "where": {}}))
    theirs = await other.dispatched(await other.publish(a_contract()))
    their_run = EffectId.parse(theirs["effect_id"]).run_id
    unlisted = await api.dispatched(await api.publish(a_contract(name="billing.other")))
    day, good = timedelta(days=1), EffectId(new_uuid7(), 7)
    provider = Pages(
        [
            None,
            item("invoice 7"),
            item("9" * 5000),
            item(EffectId(uuid4(), 5)),
            item(EffectId(run_at(datetime.now(UTC) + day), 5)),
            item(EffectId(run_at(datetime.now(UTC) + 3650 * day), 5)),
            item(EffectId(UUID(int=(2**48 - 1) << 80 | 7 << 76 | 2 << 62), 5)),
            item(EffectId(run_at(datetime.now(UTC) - 400 * day), 5)),
        ],
        [
            item(theirs["effect_id"]),
            item(EffectId(their_run, 5)),
            item(unlisted["effect_id"]),
            item(good, reference="x" * 10_000, body={"amount_cents": ["\u202e" * 1000]}),
        ],
    )
    before, dump = await owner.effects_count(), await other.show(theirs)
    await Reverse(api, owner, provider).again()
    assert [one["effect_id"] for one in await api.effects("state=QUARANTINED")] == [str(good)]
    after = await owner.effects_count()
    changed = {table for table in after if after[table] != before[table]}
    assert changed == {"effect", "effect_open", "event", "effect_evidence", "listing_progress"}
    assert await other.show(theirs) == dump
    counts = await owner.rows("SELECT listed, orphans, ignored FROM listing_progress")
    assert counts == [(12, 1, 11)]
    assert theirs["effect_id"] not in caplog.text
    assert "Traceback" not in caplog.text


def run_at(moment: datetime) -> UUID:
    return UUID(int=int(moment.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62 | 99)


async def test_a_shared_account_gives_each_tenant_its_own(
    api: Api, other: Api, owner: Owner, bookings: Bookings, reverse: Reverse
):
    """Only the key tells whose a lost effect was, and no tenant takes another's."""
    for each in (api, other):
        await each.publish(listed())
    orphans: dict[str, str] = {}
    for slug in (DEFAULT_TENANT, "other"):
        effect_id = EffectId(new_uuid7(), 5)
        orphans[slug] = str(effect_id)
        await bookings.order(str(effect_id), provider_key(await tenant_of(owner, slug), effect_id))
    await reverse.again()
    for each, slug in ((api, DEFAULT_TENANT), (other, "other")):
        assert [one["effect_id"] for one in await each.effects()] == [orphans[slug]]


# --- reading --------------------------------------------------------------------------------------


async def test_a_pass_goes_on_where_it_was_and_the_next_reaches_back(api: Api, owner: Owner):
    await api.publish(listed())
    provider = Pages([], [], [])
    reverse = Reverse(api, owner, provider)
    assert await reverse.once() == 3
    assert await reverse.once() == 0, "the next pass is not due"
    firsts = [httpx.URL(url).params["since"] for url in provider.asked]
    ages = [datetime.now(UTC).timestamp() - int(since) for since in firsts]
    assert all(86400 <= age < 2 * 86400 for age in ages), "a day before the contract's publication"
    # It fails on the way: it goes on from there, each time later, and the third time begins anew.
    await owner.rows(
        "UPDATE listing_progress SET due_at = clock_timestamp(), cursor = '1', began_at = now()"
    )
    provider.status, provider.asked = 503, []
    for _ in range(4):
        await owner.rows("UPDATE listing_progress SET due_at = clock_timestamp()")
        await reverse.once()
        assert await reverse.once() == 0
    assert [httpx.URL(url).params.get("after") for url in provider.asked] == ["1", "1", "1", None]
    provider.status, provider.asked = 200, []
    assert await reverse.again() == 3
    age = datetime.now(UTC).timestamp() - int(httpx.URL(provider.asked[0]).params["since"])
    assert 300 <= age < 3600, "what appears late behind the last pass is still seen"


async def test_what_appears_late_is_found_by_the_next_pass(
    api: Api, owner: Owner, bookings: Bookings, reverse: Reverse
):
    await api.publish(listed())
    await bookings.http.put("/plan", json={"lag_seconds": 60})
    orphan = await lost(bookings, owner)
    await reverse.again()
    assert await api.effects() == []
    await bookings.http.put("/plan", json={})
    await reverse.again()
    assert [one["effect_id"] for one in await api.effects()] == [orphan["effect_id"]]


async def test_one_that_is_slow_starves_no_other(api: Api, other: Api, owner: Owner):
    for each in (api, other):
        await each.publish(listed())
    was_read, tenants = asyncio.Event(), list[str]()

    class Slow:
        async def fetch(self, url: str, http: HttpEvidence, asker: Asker) -> Response | str:
            tenants.append(asker.tenant)
            if len(tenants) == 1:
                await was_read.wait()  # until the other one has been read
            was_read.set()
            return Response(200, b'{"bookings": []}')

    async with asyncio.timeout(30):
        assert await Reverse(api, owner, Slow()).once() == 2
    assert sorted(tenants) == sorted((DEFAULT_TENANT, "other"))


async def test_it_runs_on_its_own_schedule(api: Api, owner: Owner, sweep: Sweep):
    await api.publish(listed())
    was_asked = asyncio.Event()

    class Heard(Pages):
        async def fetch(self, url: str, http: HttpEvidence, asker: Asker) -> Response | str:
            was_asked.set()
            return await super().fetch(url, http, asker)

    often = replace(Reverse(api, owner, Heard([])).sweeper, interval_seconds=0.05)
    sealer = Sealer(often.transact, often.keys)
    async with (
        asyncio.timeout(30),
        scheduled(sweep.sweeper, often, sealer, sweep_seconds=60, seal_seconds=60),
    ):
        await was_asked.wait()


async def test_versions_that_say_the_same_are_read_once(api: Api, owner: Owner):
    await api.publish(listed())
    await api.publish(listed(version="2.2", description="The same."))
    await api.publish(listed(version="2.3", listing={"where": {"/kind": "notes"}}))
    provider = Pages([])
    assert await Reverse(api, owner, provider).once() == 2


async def test_a_flood_of_orphans_waits_for_people(
    api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("reconciler.reverse.ORPHANS_MAX", 2)
    await api.publish(listed(listing={"bind": None}))
    made = [EffectId(new_uuid7(), 5) for _ in range(5)]
    provider = Pages(*([item(one)] for one in made))
    reverse = Reverse(api, owner, provider)
    await reverse.again()
    assert len(await api.effects()) == 2
    assert "2 orphans wait for people's decisions" in caplog.text
    for one in made[:2]:
        assert (await api.resolve({"effect_id": str(one)}, "SUCCEEDED")).status == 200
    await reverse.again()
    assert len(await api.effects()) == 4, "it goes on where it was"
