"""The migration of access: tokens open what they opened, and no more on the way back."""

from uuid import uuid4

import psycopg

from server.migration import downgrade, upgrade
from tests.databases import NewDatabase

ADD_FORMER = """
    INSERT INTO api_token (tenant_id, token_id, token_hash, principal, role)
    SELECT tenant_id, %s, %s, 'ada', 'admin' FROM tenant
"""
ADD = """
    INSERT INTO api_token (tenant_id, token_id, token_hash, name, prefix, principal, roles,
                           created_by, expires_at, replaces)
    SELECT tenant_id, %s, %s, 'x', '', 'grace', %s, 'ada', now() + %s::interval, %s FROM tenant
"""


def test_no_token_opens_more_than_before(new_database: NewDatabase):
    url, first, rotated = new_database(), uuid4(), uuid4()
    upgrade(url, "0003")
    with psycopg.connect(url) as connection:
        connection.execute(ADD_FORMER, (first, b"a" * 32))
        connection.execute(ADD_FORMER, (uuid4(), b"r" * 32))
        connection.execute("UPDATE api_token SET revoked_at = now() WHERE token_id <> %s", [first])
    upgrade(url, "0004")
    with psycopg.connect(url) as connection:
        ask = "SELECT principal, roles, seconds_left FROM authenticate(%s)"
        found = connection.execute(ask, (b"a" * 32,)).fetchall()
        assert found == [("ada", ["admin"], float("inf"))]
        assert connection.execute(ask, (b"r" * 32,)).fetchall() == []
        for token in (
            (rotated, b"b" * 32, ["admin", "runtime"], None, first),
            (uuid4(), b"c" * 32, ["runtime"], None, None),
            (uuid4(), b"d" * 32, ["admin"], "1 hour", rotated),
        ):
            connection.execute(ADD, token)
    downgrade(url, "0003")
    with psycopg.connect(url) as connection:
        opens = "SELECT principal, role FROM authenticate(%s)"
        for byte, expected in (
            (b"a", [("ada", "admin")]),
            (b"b", [("grace", "admin")]),
            (b"c", []),
            (b"d", []),
            (b"r", []),
        ):
            assert connection.execute(opens, (byte * 32,)).fetchall() == expected, byte
