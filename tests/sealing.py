"""The sealer, run by hand."""

import asyncio

from audit.service import Sealer
from audit.store import AuditStore, Position
from kernel.scope import Connection
from tests.api import Api

_ROUNDS_MAX = 600


def sealer_of(api: Api) -> Sealer:
    """Return a sealer of the application's database."""
    return Sealer(api.app.state.database.transact, api.app.state.keys)


async def seal_all(api: Api, sealer: Sealer | None = None) -> int:
    """Seal all that is written by now; returns how many seals that took."""
    await all_ended(api)
    return await (sealer or sealer_of(api)).seal()


async def all_ended(api: Api) -> None:
    """Wait until all that is written by now can be sealed.

    Transactions of other databases of the server hold it back until they have ended: a test next
    to this one may have some.
    """
    transact = api.app.state.database.transact
    written = (await transact(None, _position)).upcoming
    for _ in range(_ROUNDS_MAX):
        if (await transact(None, _position)).horizon >= written:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("a transaction of another database does not end")


async def _position(connection: Connection) -> Position:
    return await AuditStore(connection).position()
