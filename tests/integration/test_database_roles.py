"""No test and no request works as a superuser: row-level security holds for whoever asks."""

from typing import Any, LiteralString

import psycopg

from kernel.scope import Connection
from tests.api import Api

POWERS: LiteralString = """
    SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication, rolcanlogin
      FROM pg_roles
     WHERE rolname = %s
"""
ABOVE: LiteralString = """
    SELECT count(*) FROM pg_auth_members
     WHERE member = to_regrole(%s) AND roleid <> to_regrole('tallystick_service')
"""
OWNED: LiteralString = "SELECT count(*) FROM pg_class WHERE relowner = to_regrole(%s)"


def test_the_owner_of_a_database_has_no_power_beyond_it(database_url: str):
    with psycopg.connect(database_url) as connection:
        (owner,) = connection.execute("SELECT current_user").fetchone() or ("",)
        assert connection.execute(POWERS, [owner]).fetchone() == (False, True)
        assert connection.execute(ABOVE, [owner]).fetchone() == (0,)


def test_the_services_role_owns_nothing_and_is_nobody_else(database_url: str):
    with psycopg.connect(database_url) as connection:
        assert connection.execute(POWERS, ["tallystick_service"]).fetchone() == (False, False)
        assert connection.execute(ABOVE, ["tallystick_service"]).fetchone() == (0,)
        assert connection.execute(OWNED, ["tallystick_service"]).fetchone() == (0,)


async def test_requests_work_under_the_services_role(api: Api):
    async def ask(connection: Connection) -> Any:
        cursor = await connection.execute(
            "SELECT current_user, row_security_active('tenant'), session_user = current_user"
        )
        return await cursor.fetchone()

    found = await api.app.state.database.transact(None, ask)
    assert found == ("tallystick_service", True, False)
