"""The database, and the one place that commits."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, LiteralString
from uuid import UUID

from psycopg import AsyncTransaction, Error, OperationalError, errors
from psycopg.errors import Diagnostic
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from kernel.scope import Connection, Result, Work
from tallystick.errors import RegistryUnavailable

_TRIES_MAX: Final = 4
_WAIT_SECONDS: Final = 10
# The pool doubles the pause between its attempts until it gives up, and a request begins anew. With
# its own 300 seconds, an outage would last almost twice as long here as at the database.
_RECONNECT_SECONDS: Final = 4
# A COMMIT that waits for a standby can answer "done" with this warning: committed here, but perhaps
# not there. Nothing may be built on such a commit.
_NOT_DURABLE: Final = "01000"

_CONFIGURE: Final[LiteralString] = """
    SELECT set_config('role', 'tallystick_service', false),
           set_config('TimeZone', 'UTC', false),
           set_config('statement_timeout', '30s', false),
           set_config('lock_timeout', '10s', false),
           set_config('idle_in_transaction_session_timeout', '60s', false)
"""
# Each transaction begins so, whatever the one before it left of its session: under the service's
# role, and with no table that is temporary in front of ours.
_BEGIN: Final[LiteralString] = """
    SELECT set_config('role', 'tallystick_service', true),
           set_config('search_path', 'public, pg_temp', true),
           set_config('tallystick.tenant', %s, true)
"""


class Database:
    """A pool of connections that work under the service's role.

    Row-level security holds for that role.
    """

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool

    @classmethod
    @asynccontextmanager
    async def opened(cls, database_url: str, *, pool_size: int) -> AsyncGenerator["Database"]:
        """Open a pool on a prepared database.

        Raises RegistryUnavailable when it cannot be reached.
        """
        pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            database_url,
            min_size=1,
            max_size=pool_size,
            open=False,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_RECONNECT_SECONDS,
            configure=_configure,
            check=AsyncConnectionPool.check_connection,
            kwargs={
                "autocommit": True,
                "connect_timeout": _WAIT_SECONDS,
                "application_name": "tallystick",
            },
        )
        try:
            await pool.open(wait=True, timeout=_WAIT_SECONDS)
        except PoolTimeout as fault:
            await pool.close()
            raise RegistryUnavailable("The database cannot be reached.") from fault
        try:
            yield cls(pool)
        finally:
            await pool.close()

    async def transact(self, tenant_id: UUID | None, work: Work[Result]) -> Result:
        """Run ``work`` in one READ COMMITTED transaction of a tenant, and commit it.

        Without a tenant no row of any is visible: only definer-rights functions answer. A deadlock
        or a serialisation failure runs the work again. See ``kernel.scope.Transact``.
        """
        for _ in range(_TRIES_MAX - 1):
            try:
                return await self._once(tenant_id, work)
            except (errors.DeadlockDetected, errors.SerializationFailure):
                continue
        return await self._once(tenant_id, work)

    async def _once(self, tenant_id: UUID | None, work: Work[Result]) -> Result:
        warnings: list[str | None] = []
        held: Connection | None = None

        def hear(notice: Diagnostic) -> None:
            if notice.sqlstate == _NOT_DURABLE:
                warnings.append(notice.message_primary)

        try:
            async with self._pool.connection() as connection:
                held = connection
                connection.add_notice_handler(hear)
                try:
                    async with connection.transaction() as transaction:
                        await connection.execute(_BEGIN, (str(tenant_id) if tenant_id else "",))
                        result = await work(connection)
                    if transaction.status is not AsyncTransaction.Status.COMMITTED:
                        # A connection that is lost before the COMMIT ends the block without a word.
                        raise OperationalError("the connection was lost before the commit")
                finally:
                    connection.remove_notice_handler(hear)
        except (errors.DeadlockDetected, errors.SerializationFailure):
            raise
        except Error as fault:
            # A connection that ends in the middle of an answer has no class of errors of its own.
            is_lost = held is None or held.closed
            if not is_lost and not isinstance(fault, OperationalError):
                raise
            # The commit may have happened: who asked must look again, and may not act on this.
            raise RegistryUnavailable("The database did not confirm the transaction.") from fault
        if warnings:
            raise RegistryUnavailable("The database warned that the commit may not be durable.")
        return result


async def _configure(connection: Connection) -> None:
    await connection.execute(_CONFIGURE)
