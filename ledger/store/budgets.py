"""Budgets: what a run has used of its own, and of what all runs of the tenant share.

The run is held while one of its slices changes. Whoever takes more from a pool holds the pool, and
takes back from other runs what lies idle there only where nobody is at it: so none waits for
another in a circle, and no order of events spends a unit twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from kernel.scope import Connection
from ledger.budget import slice_of
from registry.policy import PolicyInForce
from tallystick.policy import Charge, Limit, window_start

FOREVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When the window of a limit began that is never whole again."""


@dataclass(frozen=True, slots=True)
class Account:
    """One limit of a policy in the window that counts now, as a revision of the policy has it."""

    policy: str
    revision: int
    limit: Limit
    window_start: datetime

    @classmethod
    def of(cls, policy: PolicyInForce, limit: Limit, now: datetime) -> "Account":
        """Return the account of a limit at a time."""
        return cls(policy.name, policy.revision, limit, window_start(limit, now) or FOREVER)


class BudgetStore:
    """The budgets' tables, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def spent(
        self, run_id: UUID, policy: PolicyInForce, charges: Sequence[Charge], now: datetime
    ) -> dict[str, Decimal]:
        """Return how much is used of each limit that a call is charged to, in its window.

        Of what all runs share it is exact only where it matters: as long as the pool has enough
        for the call, it is what was given out before this run asks, and else what was used.
        """
        found: dict[str, Decimal] = {}
        for charge in charges:
            account = Account.of(policy, charge.limit, now)
            if charge.limit.per == "run":
                found[charge.limit.name] = await self._used_by(run_id, account)
            else:
                found[charge.limit.name] = await self._used_of_pool(account, charge.units)
        return found

    async def take(
        self, run_id: UUID, policy: PolicyInForce, charges: Sequence[Charge], now: datetime
    ) -> Limit | None:
        """Charge a call, or return the limit that has too little left for it.

        Then nothing is charged at all.
        """
        ordered = sorted(charges, key=lambda charge: charge.limit.name)
        accounts = [(Account.of(policy, each.limit, now), each.units) for each in ordered]
        for account, units in accounts:
            if not await self._provide(run_id, account, units):
                return account.limit
        for account, units in accounts:
            await self._use(run_id, account, units)
        return None

    async def _provide(self, run_id: UUID, account: Account, units: Decimal) -> bool:
        """Hold the run's slice with at least so many units left in it; False if they are not."""
        granted, used, revision = await self._held_slice(run_id, account)
        if account.limit.per == "run":
            if used + units > account.limit.max:
                return False
            wanted = max(account.limit.max - granted, Decimal(0))
        else:
            if revision != account.revision:
                # What another revision gave may be more than this one has.
                await self._give_back(run_id, account, granted - used)
                granted = used
            missing = used + units - granted
            if missing <= 0:
                return True
            wanted = await self._drawn(run_id, account, missing)
            if wanted == 0:
                return False
        await self._grant(run_id, account, wanted)
        return True

    async def _held_slice(self, run_id: UUID, account: Account) -> tuple[Decimal, Decimal, int]:
        cursor = await self._connection.execute(
            """
            SELECT granted, used, policy_revision
              FROM budget_slice
             WHERE run_id = %s AND policy = %s AND name = %s AND scope = %s AND window_start = %s
               FOR UPDATE
            """,
            _slice_key(run_id, account),
        )
        row: Any = await cursor.fetchone()
        return row or (Decimal(0), Decimal(0), account.revision)

    async def _grant(self, run_id: UUID, account: Account, units: Decimal) -> None:
        await self._connection.execute(
            """
            INSERT INTO budget_slice (run_id, policy, name, scope, window_start, tenant_id,
                                      policy_revision, granted)
            VALUES (%s, %s, %s, %s, %s, current_tenant(), %s, %s)
                ON CONFLICT (run_id, policy, name, scope, window_start) DO UPDATE
               SET granted = budget_slice.granted + excluded.granted,
                   policy_revision = excluded.policy_revision
            """,
            (*_slice_key(run_id, account), account.revision, units),
        )

    async def _use(self, run_id: UUID, account: Account, units: Decimal) -> None:
        await self._connection.execute(
            """
            UPDATE budget_slice
               SET used = used + %s
             WHERE run_id = %s AND policy = %s AND name = %s AND scope = %s AND window_start = %s
            """,
            (units, *_slice_key(run_id, account)),
        )

    # --- the pool of what all runs share --------------------------------------------------------

    async def _give_back(self, run_id: UUID, account: Account, units: Decimal) -> None:
        """Put what lies idle in the run's slice back into the pool."""
        await self._connection.execute(
            """
            UPDATE budget_slice
               SET granted = used, policy_revision = %s
             WHERE run_id = %s AND policy = %s AND name = %s AND scope = %s AND window_start = %s
            """,
            (account.revision, *_slice_key(run_id, account)),
        )
        await self._connection.execute(
            """
            UPDATE budget_pool
               SET granted = granted - %s
             WHERE tenant_id = current_tenant()
               AND policy = %s AND name = %s AND window_start = %s
            """,
            (units, *_pool_key(account)),
        )

    async def _drawn(self, run_id: UUID, account: Account, needed: Decimal) -> Decimal:
        """Take units out of the pool for a run, and return how many: 0 where it has too few."""
        most = account.limit.max
        granted = await self._held_pool(account)
        if granted + needed > most:
            granted -= await self._taken_back(run_id, account)
        drawn = slice_of(left=most - granted, needed=needed, most=account.limit.slice)
        if drawn > 0:
            await self._connection.execute(
                """
                UPDATE budget_pool
                   SET granted = granted + %s, most = %s
                 WHERE tenant_id = current_tenant()
                   AND policy = %s AND name = %s AND window_start = %s
                """,
                (drawn, most, *_pool_key(account)),
            )
        return drawn

    async def _held_pool(self, account: Account) -> Decimal:
        await self._connection.execute(
            """
            INSERT INTO budget_pool (tenant_id, policy, name, window_start, most)
            VALUES (current_tenant(), %s, %s, %s, %s)
                ON CONFLICT DO NOTHING
            """,
            (*_pool_key(account), account.limit.max),
        )
        cursor = await self._connection.execute(
            """
            SELECT granted
              FROM budget_pool
             WHERE tenant_id = current_tenant()
               AND policy = %s AND name = %s AND window_start = %s
               FOR UPDATE
            """,
            _pool_key(account),
        )
        row: Any = await cursor.fetchone()
        return row[0]

    async def _taken_back(self, run_id: UUID, account: Account) -> Decimal:
        """Take back what lies idle with other runs, where nobody is at it; return how much."""
        cursor = await self._connection.execute(
            """
            WITH idle AS (
                SELECT run_id, granted - used AS units
                  FROM budget_slice
                 WHERE tenant_id = current_tenant()
                   AND policy = %(policy)s AND name = %(name)s
                   AND window_start = %(window_start)s AND scope = 'tenant'
                   AND granted > used AND run_id <> %(run_id)s
                   FOR UPDATE SKIP LOCKED),
            emptied AS (
                UPDATE budget_slice AS slice
                   SET granted = slice.used
                  FROM idle
                 WHERE slice.run_id = idle.run_id AND slice.scope = 'tenant'
                   AND slice.policy = %(policy)s AND slice.name = %(name)s
                   AND slice.window_start = %(window_start)s
                RETURNING idle.units)
            UPDATE budget_pool
               SET granted = granted - (SELECT coalesce(sum(units), 0) FROM emptied)
             WHERE tenant_id = current_tenant()
               AND policy = %(policy)s AND name = %(name)s AND window_start = %(window_start)s
            RETURNING (SELECT coalesce(sum(units), 0) FROM emptied)
            """,
            {
                "policy": account.policy,
                "name": account.limit.name,
                "window_start": account.window_start,
                "run_id": run_id,
            },
        )
        row: Any = await cursor.fetchone()
        return row[0]

    # --- reading --------------------------------------------------------------------------------

    async def _used_by(self, run_id: UUID, account: Account) -> Decimal:
        cursor = await self._connection.execute(
            """
            SELECT used
              FROM budget_slice
             WHERE run_id = %s AND policy = %s AND name = %s AND scope = %s AND window_start = %s
            """,
            _slice_key(run_id, account),
        )
        row: Any = await cursor.fetchone()
        return row[0] if row else Decimal(0)

    async def _used_of_pool(self, account: Account, units: Decimal) -> Decimal:
        cursor = await self._connection.execute(
            """
            SELECT CASE WHEN pool.granted + %s <= %s THEN pool.granted
                        ELSE (SELECT coalesce(sum(slice.used), 0)
                                FROM budget_slice AS slice
                               WHERE slice.tenant_id = current_tenant()
                                 AND slice.policy = pool.policy AND slice.name = pool.name
                                 AND slice.window_start = pool.window_start
                                 AND slice.scope = 'tenant')
                    END
              FROM budget_pool AS pool
             WHERE tenant_id = current_tenant()
               AND policy = %s AND name = %s AND window_start = %s
            """,
            (units, account.limit.max, *_pool_key(account)),
        )
        row: Any = await cursor.fetchone()
        return row[0] if row else Decimal(0)


def _slice_key(run_id: UUID, account: Account) -> tuple[object, ...]:
    return run_id, account.policy, account.limit.name, account.limit.per, account.window_start


def _pool_key(account: Account) -> tuple[object, ...]:
    return account.policy, account.limit.name, account.window_start
