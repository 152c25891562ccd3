"""The use cases: seal what was written, list seals and keys, export.

Sealing stands outside of every other transaction. It covers what transactions wrote that have all
ended, so that nothing can come in later, and it locks no row that anyone else waits for.
"""

import logging
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from audit.export import (
    End,
    Header,
    end_line,
    header_line,
    seal_lines,
    sealed_line,
    unsealed_line,
)
from audit.merkle import HASH_BYTES, Tree
from audit.seal import (
    LEAVES_MAX,
    Seal,
    Statement,
    digest_text,
    next_bound,
    public_keys,
    sign,
    signing_key,
)
from audit.store import (
    AuditStore,
    Due,
    Placed,
    Position,
    Span,
    note_progress,
    tenants_to_seal,
)
from kernel.keys import KeyRing
from kernel.scope import Connection, Result, Transact, Work
from kernel.wire import time_text
from tallystick.errors import RegistryUnavailable

_log = logging.getLogger("tallystick.audit")


class TenantTransact(Protocol):
    """Runs work in one transaction of one tenant, as `Scope.transact` does."""

    async def __call__(self, work: Work[Result]) -> Result:
        """Run ``work`` and return its result."""
        ...


_TRANSACTIONS_AT_ONCE: Final = 65_536
PAGE_BYTES: Final = 1024 * 1024
_SEALS_AT_ONCE: Final = 200


class Outcome(Enum):
    """What came of one try to seal: LOST to another sealer, whose seal is as good."""

    SEALED = auto()
    LOST = auto()
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals every tenant's records. Any number may run at once: of two equal seals one is kept."""

    transact: Transact
    keys: KeyRing = field(repr=False)
    leaves_max: int = LEAVES_MAX

    async def seal(self) -> int:
        """Seal what has been written until now; returns how many seals were made."""
        made = 0
        due = await self.transact(None, tenants_to_seal)
        for each in due:
            try:
                made += await self._seal_tenant(each)
            except Exception:  # noqa: BLE001 - whatever is wrong here, the other tenants go on
                _log.exception("the records of tenant %s were not sealed", each.tenant)
        if due:
            await self.transact(None, note_progress)
        return made

    async def _seal_tenant(self, due: Due) -> int:
        made = 0
        while True:
            outcome = await self.transact(
                due.tenant_id,
                partial(seal_batch, due=due, keys=self.keys, leaves_max=self.leaves_max),
            )
            if outcome is Outcome.NOTHING:
                return made
            made += outcome is Outcome.SEALED


async def seal_batch(
    connection: Connection, *, due: Due, keys: KeyRing, leaves_max: int = LEAVES_MAX
) -> Outcome:
    """Make the next seal of a tenant, in its own transaction.

    Raises:
        RegistryUnavailable: The database counts its transactions lower than it did.
    """
    store = AuditStore(connection)
    position = await store.position()
    last = await store.last_seal()
    before = Statement.parse(last.text) if last else None
    since = before.upto if before else 0
    if position.horizon < since:
        raise RegistryUnavailable(
            "The database was restored into a server that counts transactions lower."
            " Restart the service: its start puts that right."
        )
    # Below what was sealed for all tenants nothing is to be found.
    upto = await _bound(store, max(since, due.since), position.horizon, leaves_max)
    if upto is None:
        return Outcome.NOTHING
    tree, hashes = Tree(), bytearray()
    async with aclosing(store.records([Span(0, since, upto)])) as records:
        async for placed in records:
            leaf = placed.record.leaf()
            tree.add(leaf)
            hashes += leaf
    statement = Statement(
        tenant=str(due.tenant_id),
        number=before.number + 1 if before else 1,
        previous=last.digest if last else None,
        since=since,
        upto=upto,
        leaves=len(hashes) // HASH_BYTES,
        root=digest_text(tree.root()),
        sealed_at=time_text(position.now),
        key_id=keys.current,
    )
    text = statement.to_text()
    signature = sign(signing_key(keys, keys.current, due.tenant_id), text)
    seal = Seal(text, signature, bytes(hashes))
    kept = await store.keep(due.tenant_id, statement, seal)
    return Outcome.SEALED if kept else Outcome.LOST


async def _bound(store: AuditStore, since: int, horizon: int, leaves_max: int) -> int | None:
    """Return where the next batch ends, looking through a bounded range of transactions at first.

    It grows while it is empty, so that neither a long backlog nor a long silence is slow.
    """
    width = _TRANSACTIONS_AT_ONCE
    while True:
        before = min(horizon, since + width)
        written = await store.written(since, before, leaves_max + 1)
        upto = next_bound(written, horizon=before, leaves_max=leaves_max)
        if upto is not None or before == horizon:
            return upto
        width *= 8


async def export(
    transact: TenantTransact,
    keys: KeyRing,
    tenant_id: UUID,
    *,
    page_bytes: int = PAGE_BYTES,
) -> AsyncGenerator[bytes]:
    """Give a tenant's export in pieces; `audit.export` has its form.

    Each piece is read in a short transaction of its own, so that a slow reader holds none. That is
    consistent: what is sealed never changes. A record that is committed meanwhile may be among
    those that are not sealed yet, or not.
    """
    began = await transact(_position)
    public = {key_id: key.hex() for key_id, key in public_keys(keys, tenant_id).items()}
    yield header_line(Header(tenant=str(tenant_id), exported_at=time_text(began.now), keys=public))
    last: Span | None = None
    seals = sealed = unsealed = 0
    while window := await transact(partial(_next_seals, after=last.number if last else 0)):
        waiting = deque(window)
        async with aclosing(_pages(transact, _spans(window), page_bytes)) as pages:
            async for page in pages:
                sealed += len(page)
                yield b"".join(_lines(page, waiting))
        yield b"".join(seal_lines(seal) for _, seal in waiting)
        last, seals = window[-1][0], seals + len(window)
    rest = Span(0, last.upto if last else None, None)
    async with aclosing(_pages(transact, [rest], page_bytes)) as pages:
        async for page in pages:
            unsealed += len(page)
            yield b"".join(unsealed_line(placed.record) for placed in page)
    ended = await transact(_position)
    yield end_line(End(seals=seals, sealed=sealed, unsealed=unsealed, position=ended.upcoming))


Window = list[tuple[Span, Seal]]


async def _position(connection: Connection) -> Position:
    return await AuditStore(connection).position()


async def _next_seals(connection: Connection, *, after: int) -> Window:
    store = AuditStore(connection)
    return await store.next_seals(after=after, leaves_max=LEAVES_MAX, limit=_SEALS_AT_ONCE)


def _spans(window: Window) -> list[Span]:
    # The first has no lower bound: a row that was slipped in below it is told, not passed over.
    return [each if each.number > 1 else replace(each, since=None) for each, _ in window]


async def _pages(
    transact: TenantTransact, spans: Sequence[Span], page_bytes: int
) -> AsyncGenerator[list[Placed]]:
    after: Placed | None = None
    while page := await transact(partial(_page, spans=spans, after=after, page_bytes=page_bytes)):
        yield page
        after = page[-1]


async def _page(
    connection: Connection, *, spans: Sequence[Span], after: Placed | None, page_bytes: int
) -> list[Placed]:
    page, size = list[Placed](), 0
    async with aclosing(AuditStore(connection).records(spans, after=after)) as records:
        async for placed in records:
            page.append(placed)
            size += sum(map(len, placed.record.row.values()))
            if size >= page_bytes:
                break
    return page


def _lines(page: list[Placed], waiting: deque[tuple[Span, Seal]]) -> list[bytes]:
    """Write records, each after the seal that covers it; those that are written stop waiting."""
    lines: list[bytes] = []
    for placed in page:
        while waiting and waiting[0][0].number <= placed.number:
            lines.append(seal_lines(waiting.popleft()[1]))
        lines.append(sealed_line(placed.record))
    return lines
