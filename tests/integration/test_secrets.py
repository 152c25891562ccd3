"""Secrets are in no answer and in no line of the log, whatever is refused and whatever fails."""

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from psycopg.sql import SQL, Identifier
from sqlalchemy import make_url

from access.token import new_token
from server.home import admin_token_file
from tallystick.errors import RegistryUnavailable
from tests.api import Api, running
from tests.builders import a_contract
from tests.databases import administer
from tests.fixtures import owning

CARD = "canary-4111111111111111"
KEY = b"canary-key-of-thirty-two-bytes-77"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "card": {"type": "string", "x-sensitive": True, "pattern": "^canary-[0-9]+$"},
        "count": {"type": "integer"},
    },
    "required": ["card"],
    "additionalProperties": False,
}


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Keep every line of every logger."""
    caplog.set_level(logging.DEBUG)
    return caplog


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with a key that can be recognised."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    keys = {"current": "k1", "keys": {"k1": base64.b64encode(KEY).decode()}}
    file = home / "keys.json"
    file.write_text(json.dumps(keys))
    file.chmod(0o600)
    return home


def spellings(secret: str | bytes) -> Iterator[str]:
    """Return a secret as it might be written."""
    text = secret if isinstance(secret, str) else secret.decode()
    yield from (text, text.encode().hex(), base64.b64encode(text.encode()).decode())
    yield repr(text.encode())[2:-1]


def check_nowhere(secrets: list[str | bytes], texts: list[str]) -> None:
    for secret in secrets:
        for spelling in spellings(secret):
            for text in texts:
                assert spelling not in text, text[:300]


async def refusals(api: Api, told: list[str]) -> None:
    """Provoke one refusal of each kind, with the secret in it; note what is answered."""

    async def ask(method: str, path: str, body: Any = None, **headers: str) -> int:
        response = await api.http.request(method, path, json=body, headers=headers)
        if response.is_error:  # who dispatches is told what to send
            told.append(f"{response.text} {response.headers}")
        return response.status_code

    tool = await api.publish(a_contract(input_schema=SCHEMA, output_schema=SCHEMA))
    plan: dict[str, Any] = {"run": "run-1", "effect": "e-1", "tool": tool}
    dispatch = api.asking()
    good = {"card": CARD}
    assert await ask("POST", "/v1/effects", plan | {"arguments": good, "dispatch": dispatch}) == 201
    shown = await api.effects()
    told.append(str([await api.show(effect) for effect in shown]))
    for arguments, status in (
        ({"card": CARD + "7"}, 409),
        ({"card": CARD + "x"}, 422),
        ({"card": [CARD]}, 422),
        ({"card": CARD, "count": CARD}, 422),
    ):
        plan["effect"] = "e-1" if status == 409 else "e-2"
        assert await ask("POST", "/v1/effects", plan | {"arguments": arguments}) == status
    (effect,) = shown
    path = f"/v1/effects/{effect['effect_id']}"
    outcome: dict[str, Any] = {"worker_id": api.worker_id, "fence": 1, "outcome": "succeeded"}
    for result in ({"card": [CARD]}, {"card": CARD}):
        await ask("POST", f"{path}/outcome", outcome | {"result": result})
        await ask("POST", f"{path}/outcome", outcome | {"result": result, "fence": 9})
    for body in (CARD, [CARD], {"document": CARD}, {"document": a_contract(version=CARD)}):
        assert await ask("POST", "/v1/contracts", body) == 422
    assert await ask("GET", "/v1/nowhere") == 404
    assert await ask("DELETE", "/v1/whoami") == 405
    for wrong in (f"Bearer {api.token}x", f"Basic {api.token}", api.token, f"Bearer {new_token()}"):
        assert await ask("GET", "/v1/whoami", Authorization=wrong) == 401
    told.append(str([await api.show(effect) for effect in await api.effects()]))
    told.append((await api.http.get("/metrics")).text)


async def test_refusals_tell_no_secret(
    database_url: str, home: Path, log: pytest.LogCaptureFixture
):
    told: list[str] = []
    async with running(database_url, home) as api, owning(database_url) as owner:
        await refusals(api, told)
        stored = await owner.dump()
        token = api.token
    password = make_url(database_url).password
    assert password
    told += [log.text, *(str(vars(record)) for record in log.records if is_ours(record))]
    check_nowhere([token, KEY, password, CARD], told)
    check_nowhere([token, KEY, password, CARD], [stored])


def is_ours(record: logging.LogRecord) -> bool:
    return record.name.startswith(("tallystick", "uvicorn", "psycopg", "asyncio"))


async def test_outages_tell_no_secret(
    database_url: str, postgres_url: str, home: Path, log: pytest.LogCaptureFixture
):
    told: list[str] = []
    url = make_url(database_url)
    assert url.password
    name = Identifier(url.database or "")
    async with running(database_url, home) as api:
        administer(postgres_url, SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        try:
            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}"
            administer(postgres_url, SQL(end).format(url.database))
            response = await api.http.get("/v1/whoami")
            assert response.status_code == 503
            told.append(f"{response.text} {response.headers}")
        finally:
            administer(postgres_url, SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
        token = api.token
    wrong = "canary-password"
    for broken in (
        url.set(password=wrong),
        url.set(password=wrong, host="127.0.0.1", port=1),
        url.set(password=wrong, database="nowhere"),
        url.set(password=f"{wrong}%zz", query={"sslmode": "never"}),
    ):
        text = broken.render_as_string(hide_password=False)
        with pytest.raises(RegistryUnavailable) as raised:
            async with running(text, home):
                raise AssertionError("it cannot start")
        told += [str(raised.value), repr(raised.value), str(raised.value.facts)]
    check_nowhere([token, KEY, url.password, wrong], [*told, log.text])


async def test_a_key_file_that_is_none_is_not_quoted(
    database_url: str, home: Path, log: pytest.LogCaptureFixture
):
    file = home / "keys.json"
    for content in (KEY, b'{"current": "k1", "keys": {"k1": "' + KEY + b'"}}'):
        file.write_bytes(content)
        with pytest.raises(RegistryUnavailable) as raised:
            async with running(database_url, home):
                raise AssertionError("it cannot start")
        check_nowhere([KEY], [str(raised.value), log.text])
    assert not admin_token_file(home).exists()


async def test_a_defect_writes_no_secret_into_the_log(
    database_url: str, home: Path, log: pytest.LogCaptureFixture
):
    async with running(database_url, home) as api, owning(database_url) as owner:
        tool = await api.publish(a_contract(input_schema=SCHEMA))
        await owner.rows("ALTER TABLE effect_payload RENAME TO gone")
        plain = httpx.ASGITransport(api.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=plain, base_url=api.http.base_url, headers=api.http.headers
        ) as http:
            plan = {"run": "r", "effect": "e", "tool": tool, "arguments": {"card": CARD}}
            response = await http.post("/v1/effects", json=plan)
        assert response.status_code == 500
        token = api.token
    assert "UndefinedTable" in log.text
    check_nowhere([token, KEY, CARD], [response.text, log.text])
