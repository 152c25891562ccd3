"""The reverse sweep: what the provider has, held against what the ledger has.

A ledger that lost its tail, as an asynchronous standby does that takes over, does not know what it
lost. The provider does: each thing that it lists and that names an effect of ours is evidence on
it, or an orphan. Listings are read in passes, page by page; claiming is one transaction, and so is
taking each item; none is open while a provider is asked.

Any number of reconcilers may sweep at once. A listing is claimed under a lease, and how far it was
read is written by compare-and-set, so that a page is read twice at worst, which changes nothing.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kernel.keys import KeyRing
from kernel.scope import Caller, Result, Transact
from ledger.listing import Found, read_item
from ledger.service import Ledger, take_listed
from reconciler.pages import Page, UnreadablePage, read_page, url_of_page
from reconciler.progress import Advance, Listing, Progress, after_failure, after_page
from reconciler.sources import Asker, Fetcher
from reconciler.store import advance, claim, listings_due, tenants_listing
from tallystick.canonical import Json
from tallystick.errors import Outage, TallystickError
from tallystick.provider import Evidence

_log = logging.getLogger("tallystick.reconciler")

READERS_MAX: Final = 8
"""How many listings a process reads at once."""
READ_SECONDS: Final = 10.0
"""How long one listing is read before the others have their turn."""
TAKE_SECONDS: Final = 300.0
"""How long the items of a page may take, once it is there."""
ORPHANS_MAX: Final = 1000
"""How many orphans of one listing may wait for people before it is read no further."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A listing that this reconciler reads, and how it is read."""

    listing: Listing
    declared: Evidence
    asker: Asker
    caller: Caller


@dataclass(frozen=True, slots=True)
class ReverseSweeper:
    """What a reverse sweep works with.

    ``actor`` names this process in the records; a pass begins ``interval_seconds`` after the last
    one ended.
    """

    transact: Transact
    keys: KeyRing
    source: Fetcher
    actor: str
    interval_seconds: float

    async def sweep(self) -> int:
        """Read every listing that is due for a while; returns how many pages were read."""
        turns = asyncio.Semaphore(READERS_MAX)

        async def read(caller: Caller, listing: Listing) -> int:
            try:
                async with turns:
                    return await self._read(caller, listing)
            except TallystickError as fault:
                # Its lease runs out, and the next sweep takes it up again.
                _log.warning("the listing of %s was not read: %s", listing.tool, fault)
            except Exception:  # noqa: BLE001 - as above, and the other listings go on
                _log.exception("the listing of %s was not read", listing.tool)
            return 0

        async def sweep_tenant(caller: Caller) -> int:
            try:
                async with turns:
                    due = await self.transact(caller.tenant_id, listings_due)
            except Exception:  # noqa: BLE001 - whatever is wrong here, the other tenants go on
                _log.exception("the reverse sweep of tenant %s stopped", caller.tenant)
                return 0
            return sum(await asyncio.gather(*(read(caller, listing) for listing in due)))

        callers = [
            Caller(tenant_id, tenant, self.actor, frozenset())
            for tenant_id, tenant in await self.transact(None, tenants_listing)
        ]
        return sum(await asyncio.gather(*map(sweep_tenant, callers)))

    async def _read(self, caller: Caller, listing: Listing) -> int:
        """Claim a listing, and read its pages until its pass or its turn ends."""
        newest = await self._in_ledger(
            caller, lambda ledger: ledger.registry.contract(listing.contract_ids[0])
        )
        declared = newest.evidence
        assert declared is not None
        assert declared.listing is not None
        asker = Asker(caller.tenant, is_publisher=listing.is_publisher)
        reading = Reading(listing, declared, asker, caller)
        lease_seconds = declared.listing.http.timeout_seconds + TAKE_SECONDS
        progress = await self.transact(
            caller.tenant_id, lambda connection: claim(connection, listing, lease_seconds)
        )
        interval_seconds = self.interval_seconds
        pages, loop = 0, asyncio.get_running_loop()
        turn_ends = loop.time() + READ_SECONDS
        while progress is not None:
            try:
                page = await self._ask(reading, progress)
            except UnreadablePage as fault:
                _log.warning("the listing of %s was not read: %s", listing.tool, fault)
                await self._advance(reading, progress, after_failure(progress, interval_seconds))
                break
            found = Counter[Found]()
            for body in page.items:
                found[await self._take(reading, body, progress.asked_at)] += 1
            pages += 1
            step = after_page(
                progress,
                page,
                found,
                lag_seconds=declared.lag_seconds,
                interval_seconds=interval_seconds,
            )
            if step.cursor is None or loop.time() > turn_ends:
                await self._advance(reading, progress, step)
                break
            step = replace(step, wait_seconds=lease_seconds)
            progress = await self._advance(reading, progress, step)
        return pages

    async def _advance(
        self, reading: Reading, progress: Progress, step: Advance
    ) -> Progress | None:
        """Note how far a listing was read; returns where it goes on, None if others read it."""
        asked_at = await self.transact(
            reading.caller.tenant_id,
            lambda connection: advance(connection, reading.listing, progress.fence, step),
        )
        if asked_at is None:
            return None
        return replace(progress, cursor=step.cursor, failures=0, asked_at=asked_at)

    async def _in_ledger(
        self, caller: Caller, work: Callable[[Ledger], Awaitable[Result]]
    ) -> Result:
        return await self.transact(
            caller.tenant_id,
            lambda connection: work(Ledger.over(connection, caller, self.keys)),
        )

    async def _ask(self, reading: Reading, progress: Progress) -> Page:
        """Ask for the page that a pass has come to. Raises UnreadablePage."""
        listing, ids = reading.declared.listing, reading.listing.contract_ids
        assert listing is not None
        waiting = await self._in_ledger(
            reading.caller, lambda ledger: ledger.store.orphans_waiting(ids, ORPHANS_MAX)
        )
        if waiting >= ORPHANS_MAX:
            raise UnreadablePage(f"{ORPHANS_MAX} orphans wait for people's decisions")
        url = url_of_page(listing, progress.since, progress.cursor)
        answer = await self.source.fetch(url, listing.http, reading.asker)
        if isinstance(answer, str):
            raise UnreadablePage(answer)
        return read_page(
            listing, answer.status, answer.body, link=answer.link, cursor=progress.cursor
        )

    async def _take(self, reading: Reading, body: Json, asked_at: datetime) -> Found:
        """Take one item: whatever is wrong with it, the others are taken. Raises Outage."""
        listing, caller = reading.declared.listing, reading.caller
        assert listing is not None
        item = read_item(listing, body, tenant_id=caller.tenant_id, now=asked_at)
        if isinstance(item, Found):
            return item
        ids = reading.listing.contract_ids
        try:
            found = await self._in_ledger(
                caller, lambda ledger: take_listed(ledger, item, listing.answer, ids, asked_at)
            )
        except Outage:
            raise
        except Exception:  # noqa: BLE001 - said in the log, and read again by the next pass
            _log.exception("effect %s was not held against the listing", item.effect_id)
            return Found.FAILED
        if found is Found.ORPHAN:
            _log.warning(
                "effect %s of %s is quarantined: the provider lists it, and it was not recorded",
                item.effect_id,
                reading.listing.tool,
            )
        return found
