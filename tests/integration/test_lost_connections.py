"""A lost connection is an outage, whatever the driver calls it; a wrong statement is a defect."""

import psycopg
import pytest

from kernel.scope import Connection
from tallystick.errors import RegistryUnavailable
from tests.api import Api

# What libpq and psycopg have been seen, or are documented, to end in.
LOST = [
    psycopg.OperationalError("server closed the connection unexpectedly"),
    psycopg.DatabaseError('lost synchronization with server: got message type "0"'),
    psycopg.InternalError("terminating connection"),
    psycopg.InterfaceError("cannot execute operations: the connection is in status 3"),
]


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
async def test_a_lost_connection_is_an_outage(api: Api, error: psycopg.Error):
    async def work(connection: Connection) -> None:
        await connection.execute("SELECT 1")
        connection.pgconn.finish()
        raise error

    with pytest.raises(RegistryUnavailable):
        await api.app.state.database.transact(None, work)
    assert (await api.ask("GET", "/v1/whoami")).status == 200, "the next one has a new connection"


async def test_a_wrong_statement_is_a_defect(api: Api):
    async def work(connection: Connection) -> None:
        await connection.execute("SELECT nothing FROM nowhere")

    with pytest.raises(psycopg.errors.UndefinedTable):
        await api.app.state.database.transact(None, work)
